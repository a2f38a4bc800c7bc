"""A run that begins with another's events: what `run_forked` changes, and what it asks before it goes on.

The events before `run_forked` were paid for by the origin: what they used is kept apart, budgets and the run's time
start anew there. Bounds of time go on with what was left of them; a timer keeps its moment, for a fork makes no hour
shorter. Changes of the state are seen by all that is active in the root frame. While a fork asks, nothing begins.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

from agent_graph.core import budget_folds, budgets
from agent_graph.core import events as e
from agent_graph.core.early import outermost
from agent_graph.core.effects import MISSING, ApprovalAnswer, ModelAnswer, answer_from_json, answer_to_json
from agent_graph.core.firing import Firing
from agent_graph.core.frame_tree import fail, owned
from agent_graph.core.frames import Frame
from agent_graph.core.graph import END, Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact, digest
from agent_graph.core.run import ON_FORK, Fork, Gate, Run, Usage, approval_id
from agent_graph.errors import NodeFailure

DECISIONS = ("approve", "reject")
EXPIRY_MS = 7 * 86_400_000
"""How long somebody has to answer; as at any gate."""


class Question(NamedTuple):
    """What somebody who could decide the gate `node_id` is asked anew, on the terms of that gate."""

    node_id: str
    prompt: str
    subject: JsonValue
    audience: tuple[str, ...] = ()
    quorum: int = 1
    channels: tuple[str, ...] = ()
    self_approval: bool = True

    def to_json(self) -> JsonObject:
        """As `RunForked.asks` holds it."""
        body: dict[str, Any] = self._asdict()
        return {**body, "audience": list(self.audience), "channels": list(self.channels)}

    @staticmethod
    def from_json(body: Any) -> Question:
        return Question(**{**body, "audience": tuple(body["audience"]), "channels": tuple(body["channels"])})


def asking(run: Run, fork: Fork) -> list[e.Fact]:
    """The questions that nobody has been asked yet."""
    found: list[e.Fact] = []
    for number, body in fork.asks.items():
        name = approval_id(run.run_id, ON_FORK, number)
        if name not in run.gates:
            ask = Question.from_json(body)
            found.append(e.ApprovalOpened(
                firing=ON_FORK, approval_id=name, round=number, prompt=ask.prompt, subject=ask.subject,
                subject_digest=digest(ask.subject), audience=ask.audience, allowed_decisions=DECISIONS,
                expiry_ms=EXPIRY_MS, quorum=ask.quorum, channels=ask.channels, self_approval=ask.self_approval,
                remind_ms=EXPIRY_MS // 10,
            ))  # fmt: skip
    return found


def handed(fork: Fork, firing: Firing, attempt: int) -> e.AnswerGiven | None:
    """The output that was handed in for this firing, if it is about to be asked for the first time."""
    name = _given_to(fork, firing)
    if not name or any(isinstance(answer, ModelAnswer) for answer in firing.answers):
        return None
    value = fork.given[name]
    text = value if isinstance(value, str) else compact(value)
    answer = answer_to_json(ModelAnswer(text, performer="given:fork", prompt_tokens=0, completion_tokens=0))
    return e.AnswerGiven(firing.path, answer, attempt)


def unused(run: Run) -> list[e.Fact]:
    """At the end of a run: that outputs were handed in which no firing asked for."""
    if run.fork is None or not run.fork.given:
        return []
    names = sorted(run.fork.given)
    message = f"handed in and never asked for, the run did not come there: {', '.join(names)}"
    return [e.Warned(END, "OUTPUT_NOT_TAKEN", message, {"outputs": [*names]})]


def _given_to(fork: Fork, firing: Firing) -> str:
    return next((name for name in (firing.path, firing.declared.id) if name in fork.given), "")


def changed_frame(run: Run, fact: e.RunForked) -> Frame | None:
    """The frame whose state the fork changes; None where it changes none."""
    return run.frames.get(f"{fact.frame}/" if fact.frame else "") if fact.put or fact.gone else None


def owners_in(run: Run, frame: Frame) -> list[Firing]:
    """The firings that read the state of `frame` and have frames inside."""
    return [one for one in run.running if one.owned is not None and outermost(one.frame) is frame]


def opens_the_same(run: Run, firing: Firing) -> bool:
    """Whether an owner, asked now, would open the frames that it has opened."""
    try:
        return firing.owned is None or owned(run, firing).asked == firing.owned.asked
    except NodeFailure:
        return False


# -- a snapshot ----------------------------------------------------------------------------------------------------


def to_json(fork: Fork) -> JsonObject:
    """What `from_json` needs."""
    body: dict[str, Any] = {f.name: getattr(fork, f.name) for f in fields(Fork)}
    body["inherited"] = {f.name: getattr(fork.inherited, f.name) for f in fields(Usage)}
    body["asks"] = [list(pair) for pair in fork.asks.items()]
    return body


def from_json(body: Any) -> Fork:
    return Fork(**{**body, "inherited": Usage(**body["inherited"]), "asks": dict(body["asks"])})


# -- folds ---------------------------------------------------------------------------------------------------------


def forked(graph: Graph, run: Run, event: e.Event, fact: e.RunForked) -> None:
    """From here on the run is its own."""
    before = run.fork
    fork = run.fork = Fork(fact.run_id, fact.last, run.usage)
    if before is not None:  # a fork of a fork
        fork.models, fork.given = dict(before.models), dict(before.given)
        fork.asks, fork.asked = dict(before.asks), before.asked
    fork.models.update({name: str(model) for name, model in fact.models.items()})
    fork.given.update(fact.outputs)
    run.model = fact.model or run.model
    for ask in fact.asks:
        fork.asks[fork.asked] = ask
        fork.asked += 1
    run.usage = Usage()
    _change(run, fact)
    _begin_anew(graph, run, event.at_ms, fact)


def _change(run: Run, fact: e.RunForked) -> None:
    """Put what was patched; what is not opened yet of frames inside begins with it."""
    frame = changed_frame(run, fact)
    if frame is None:
        return
    for key, value in fact.put.items():
        frame.state.overwrite(key, value)
    for key in fact.gone:
        frame.state.overwrite(key, MISSING)
    for firing in owners_in(run, frame):
        if firing.owned is not None and opens_the_same(run, firing):
            again = owned(run, firing)
            mine = firing.owned
            mine.asked, mine.start, mine.start_bytes = again.asked, again.start, again.start_bytes


def _begin_anew(graph: Graph, run: Run, at_ms: int, fact: e.RunForked) -> None:
    """The run's times and budgets start here; calls in flight are made again, as new attempts."""
    later = max(0, at_ms - run.at_ms)
    run.pausing = {path: due_ms + later for path, due_ms in run.pausing.items()}
    run.until = {path: due_ms + later for path, due_ms in run.until.items()}
    for path, wait in run.waits.items():
        firing = run.firing(path)
        timer = not wait.name and (firing is None or firing.owned is None)
        if wait.due_ms is not None and not timer:
            wait.due_ms += later
    run.accepted_at_ms, started = at_ms, run.started_at_ms is not None
    run.started_at_ms = at_ms if started else None
    if run.ledger is not None:
        budget_folds.unpark(run, run.ledger)
    untold = [] if run.ledger is None else run.ledger.untold
    run.ledger = budgets.ledger(fact.budgets or graph.budgets, policy=fact.policy)
    if run.ledger is not None:
        run.ledger.untold = untold
    if not started:
        return
    budget_folds.started(run, at_ms)
    run.lifecycle, run.error = "running", None
    run.open, run.out = {**run.out, **run.open}, {}
    for firing in run.open.values():
        firing.restart = firing.attempt > 0


def given(_graph: Graph, run: Run, _event: e.Event, fact: e.AnswerGiven) -> None:
    """The firing has its answer, and nobody was paid."""
    firing = run.firing(fact.firing)
    if firing is None or run.fork is None or firing.attempt != fact.attempt:
        return
    run.fork.given.pop(_given_to(run.fork, firing), None)
    firing.answers.append(answer_from_json(fact.answer))
    run.hear(firing)


def answered(run: Run, gate: Gate, answer: ApprovalAnswer) -> None:
    """The run goes on, as far as this question goes; or it fails, for what was changed may not pass."""
    if run.fork is None:
        return
    if answer.decision == "approve":
        run.fork.asks.pop(gate.round, None)
        return
    said = "was not decided in time" if answer.decision == "expired" else f"was rejected by {answer.by}"
    code = "APPROVAL_EXPIRED" if answer.decision == "expired" else "APPROVAL_REJECTED"
    error: JsonObject = {"code": code, "message": f"that the fork may go on {said}", "class": "refused"}
    fail(run, run.frames[""], error)
