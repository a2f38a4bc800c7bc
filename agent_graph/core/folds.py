"""One function per fact: what it changes in a run. Facts about what is no longer there change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from agent_graph.core import budget_folds, budgets, statepath
from agent_graph.core import events as e
from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.effects import MISSING, ApprovalAnswer, Done, Write, answer_from_json
from agent_graph.core.firing import Firing
from agent_graph.core.frames import Frame
from agent_graph.core.graph import END, Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import of_record
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.outcome import to_done
from agent_graph.core.run import PLACED, Gate, Run
from agent_graph.core.weights import most_held

Told: TypeAlias = e.WriteConflict | e.Warned | e.LoopExhausted | e.RouteTaken
STATUS_OF: Final = {"approve": "approved", "reject": "rejected", "request_changes": "changes_requested"}


def _accepted(graph: Graph, run: Run, event: e.Event, fact: e.RunAccepted) -> None:
    run.run_id, run.graph_version, run.input = fact.run_id, fact.graph_version, fact.input
    run.thread_id, run.model, run.limits = fact.thread_id, fact.model, of_record(fact.limits)
    run.lifecycle, run.accepted_at_ms = "accepted", event.at_ms
    run.ledger = budgets.ledger(fact.budgets or graph.budgets)
    frame = run.frames[""] = Frame(graph, run_input=fact.input)
    frame.state.base_current = fact.input
    start = spread(graph, fact.input)
    frame.state.base.update(start)
    frame.state.tally.base = most_held(start)


def spread(graph: Graph, value: JsonValue) -> JsonObject:
    """The state an input starts with: an object's members, less those only a gate may write."""
    if not isinstance(value, dict):
        return {}
    guarded = {
        key
        for node in graph.nodes
        if node.type == "human_approval"
        for path in NODE_TYPES[node.type].writes(node.id, node.config)
        for key in _first_keys(path)
    }
    return {key: member for key, member in value.items() if key not in guarded}


def _first_keys(path: str) -> set[str]:
    """The top-level keys in which a path can start: each dotted beginning may be one flat key."""
    segments = statepath.split(path)
    return {".".join(segments[:count]) for count in range(1, 2 if path.startswith("/") else len(segments) + 1)}


def _started(graph: Graph, run: Run, event: e.Event, fact: e.RunStarted) -> None:
    run.lifecycle, run.started_at_ms = "running", event.at_ms
    budget_folds.started(run, event.at_ms)
    frame = run.frames[""]
    frame.enter()
    _admit(graph, run, frame)


def _interrupted(graph: Graph, run: Run, event: e.Event, fact: e.RunInterrupted) -> None:
    run.lifecycle = "interrupted"
    run.error = fact.error or {"code": "INTERRUPTED", "message": fact.reason}
    if fact.error.get("class") == "unreachable":
        _begin_anew(run)


def _begin_anew(run: Run) -> None:
    """The host was away, so what failed says nothing of it: whoever resumes the run gives every call all attempts."""
    for firing in run.running:
        firing.model, firing.tries = "", 0
    run.pausing = dict.fromkeys(run.pausing, 0)


def _resumed(graph: Graph, run: Run, event: e.Event, fact: e.RunResumed) -> None:
    run.lifecycle, run.error = "running", None
    run.open = {**run.out, **run.open}
    run.out = {}
    for firing in run.open.values():
        # A call that is wanted still is made again as a new attempt; one that was answered only needs its step.
        firing.restart = firing.attempt > 0


def _cancel_requested(graph: Graph, run: Run, event: e.Event, fact: e.RunCancelRequested) -> None:
    run.cancel_reason = fact.reason


def _ended(lifecycle: str) -> Callable[..., None]:
    def fold(graph: Graph, run: Run, event: e.Event, fact: Any) -> None:
        run.lifecycle, run.finished_at_ms = lifecycle, event.at_ms
        run.open, run.out = {}, {}
        run.queue.clear()
        run.pausing.clear()
        if isinstance(fact, e.RunFailed):
            run.error = fact.error
        elif isinstance(fact, e.RunCancelled):
            run.error = {"code": "CANCELLED", "message": fact.reason}

    return fold


def _node_started(graph: Graph, run: Run, event: e.Event, fact: e.NodeStarted) -> None:
    firing = run.firing(fact.firing)
    if firing is not None:
        firing.attempt, firing.restart, firing.conflicts = fact.attempt, False, ()
        if run.ledger is not None:
            run.ledger.entered.discard(firing.path)


def _told(graph: Graph, run: Run, event: e.Event, fact: Told) -> None:
    budget_folds.told(run, fact)
    if fact.firing == END or run.firing(fact.firing) is not None:
        run.told.setdefault(fact.firing, []).append(fact)


def _model_answered(graph: Graph, run: Run, event: e.Event, fact: e.ModelAnswered) -> None:
    answer = answer_from_json(fact.answer)
    usage = run.usage
    usage.llm_calls += 1
    usage.prompt_tokens += answer.prompt_tokens or 0
    usage.completion_tokens += answer.completion_tokens or 0
    usage.unreported += answer.prompt_tokens is None or answer.completion_tokens is None
    firing = run.firing(fact.firing)
    if firing is not None and firing.attempt == fact.attempt and firing.path not in run.pausing:
        budget_folds.answered_call(run, firing, answer)
        firing.answers.append(answer)
        run.out.pop(firing.path, None)
        run.open[firing.path] = firing


def _node_finished(graph: Graph, run: Run, event: e.Event, fact: e.NodeFinished) -> None:
    firing = run.firing(fact.firing)
    if firing is not None:
        run.usage.nodes += 1
        _remove(run, firing)
        frame, done = firing.frame, to_done(fact)
        if frame.failed(firing.node, firing.past) is not MISSING:  # an earlier round failed, and this one has not
            done = replace(done, writes=(*done.writes, Write("delete", ("errors", firing.declared.id))))
        frame.finish(firing, done)
        _admit(graph, run, frame)


def _node_failed(graph: Graph, run: Run, event: e.Event, fact: e.NodeFailed) -> None:
    firing = run.firing(fact.firing)
    if firing is None or firing.attempt != fact.attempt:
        return
    budget_folds.failed(run, firing, fact.error)
    _remove(run, firing)
    node_id = firing.declared.id
    if fact.targets is not None:
        mark = Write("set", ("errors", node_id), {name: fact.error[name] for name in ("code", "message")})
        firing.frame.finish(firing, Done((mark,), targets=fact.targets))
        _admit(graph, run, firing.frame)
        return
    firing.frame.drop(firing)
    if run.failure is None:
        run.failure = {**fact.error, "node_id": node_id, "node_path": firing.path, "attempts": fact.attempt}


def _node_retried(graph: Graph, run: Run, event: e.Event, fact: e.NodeRetried) -> None:
    """A failed attempt leaves nothing behind: no answers, no place. Its firing pauses."""
    firing = run.firing(fact.firing)
    if firing is None or firing.attempt != fact.attempt or firing.path in run.pausing:
        return
    budget_folds.failed(run, firing, fact.error)
    _remove(run, firing)
    firing.answers.clear()
    firing.restart = True
    firing.tries = firing.tries + 1 if firing.model == fact.model else 0
    firing.model = fact.model
    run.pausing[firing.path] = event.at_ms + fact.delay_ms
    _admit(graph, run, firing.frame)


def _timer_fired(graph: Graph, run: Run, event: e.Event, fact: e.TimerFired) -> None:
    firing = run.firing(fact.firing)
    if firing is not None and run.pausing.pop(firing.path, None) is not None:
        run.queue[firing.path] = firing
        run.queue.move_to_end(firing.path, last=False)  # it has waited
        _admit(graph, run, firing.frame)


def _frame_failed(graph: Graph, run: Run, event: e.Event, fact: e.FrameFailed) -> None:
    run.failure, run.frame_failed = fact.error, True


def _firing_cancelled(graph: Graph, run: Run, event: e.Event, fact: e.FiringCancelled) -> None:
    budget_folds.told(run, fact)
    firing = run.firing(fact.firing)
    if firing is not None:
        budget_folds.failed(run, firing, {})
        _remove(run, firing)
        firing.frame.drop(firing)


def _opened(graph: Graph, run: Run, event: e.Event, fact: e.ApprovalOpened) -> None:
    firing = run.firing(fact.firing)
    if firing is None and fact.firing != ON_BUDGET:
        return
    gate = run.gates[fact.approval_id] = Gate(
        approval_id=fact.approval_id, firing=fact.firing,
        node_id=firing.declared.id if firing else ON_BUDGET, round=fact.round,
        prompt=fact.prompt, subject=fact.subject, subject_digest=fact.subject_digest, audience=fact.audience,
        allowed_decisions=fact.allowed_decisions, quorum=fact.quorum, channels=fact.channels,
        opened_at_ms=event.at_ms, expires_at_ms=event.at_ms + fact.expiry_ms,
    )  # fmt: skip
    if firing is None:
        budget_folds.opened(run, gate)
        return
    firing.approval_id = fact.approval_id
    run.open.pop(firing.path, None)


def _voted(graph: Graph, run: Run, event: e.Event, fact: e.ApprovalVoted) -> None:
    gate = run.gates.get(fact.approval_id)
    if gate is not None:
        gate.votes.append({**fact.vote, "at_ms": event.at_ms})


def _decided(graph: Graph, run: Run, event: e.Event, fact: e.ApprovalDecided) -> None:
    decision: JsonObject = {
        "decision": fact.decision, "note": fact.note, "by": fact.by, "via": fact.via, "at_ms": event.at_ms,
    }  # fmt: skip
    answer = ApprovalAnswer(0, fact.decision, fact.note, fact.by, fact.via, event.at_ms)
    _close(run, fact.approval_id, STATUS_OF[fact.decision], decision, answer)


def _expired(graph: Graph, run: Run, event: e.Event, fact: e.ApprovalExpired) -> None:
    _close(run, fact.approval_id, "expired", None, ApprovalAnswer(0, "expired", "", "", "", event.at_ms))


def _withdrawn(graph: Graph, run: Run, event: e.Event, fact: e.ApprovalWithdrawn) -> None:
    gate = run.gates.get(fact.approval_id)
    if gate is not None and gate.status == "pending":
        gate.status = "withdrawn"
    budget_folds.told(run, fact)


def _close(run: Run, approval_id: str, status: str, decision: JsonObject | None, answer: ApprovalAnswer) -> None:
    gate = run.gates.get(approval_id)
    if gate is None or gate.status != "pending":
        return
    gate.status, gate.decision = status, decision
    if gate.firing == ON_BUDGET:
        budget_folds.answered(run, answer)
        _fill(run)
        return
    firing = run.firing(gate.firing)
    if firing is not None and firing.approval_id == approval_id:
        firing.approval_id = ""
        firing.answers.append(replace(answer, round=gate.round))
        run.open[firing.path] = firing


def _granted(graph: Graph, run: Run, event: e.Event, fact: e.BudgetGranted) -> None:
    budget_folds.granted(run, fact)


def _settled(graph: Graph, run: Run, event: e.Event, fact: e.BudgetSettled) -> None:
    budget_folds.settled(run, fact)


def _refused(graph: Graph, run: Run, event: e.Event, fact: e.BudgetRefused) -> None:
    budget_folds.refused(run, fact)
    for frame in run.frames.values():
        _admit(graph, run, frame)


def _remove(run: Run, firing: Firing) -> None:
    path = firing.path
    run.told.pop(path, None)
    placed = firing.declared.type in PLACED
    if run.open.pop(path, None) is not None or run.out.pop(path, None) is not None:
        run.places -= placed
    else:
        run.queue.pop(path, None)
        run.pausing.pop(path, None)
        if run.ledger is not None:
            run.ledger.parked.pop(path, None)


def _admit(graph: Graph, run: Run, frame: Frame) -> None:
    """Give newly enabled firings their turn; calls to models wait for one of the run's places, in order."""
    enabled = frame.enabled
    if len(enabled) > 1:
        enabled.sort(key=lambda firing: firing.node)  # as declared: it is also how places are given
    for firing in enabled:
        if firing.declared.type in PLACED:
            run.queue[firing.path] = firing
        else:
            run.open[firing.path] = firing
    frame.enabled = []
    _fill(run)


def _fill(run: Run) -> None:
    """Give the run's free places to those who wait for one."""
    most = run.frames[""].graph.max_parallelism
    while run.queue and run.places < most:
        _, firing = run.queue.popitem(last=False)
        run.places += 1
        run.open[firing.path] = firing


FOLDS: Final[dict[type[e.Fact], Callable[[Graph, Run, e.Event, Any], None]]] = {
    e.RunAccepted: _accepted,
    e.RunStarted: _started,
    e.RunInterrupted: _interrupted,
    e.RunResumed: _resumed,
    e.RunCancelRequested: _cancel_requested,
    e.RunCompleted: _ended("completed"),
    e.RunFailed: _ended("failed"),
    e.RunCancelled: _ended("cancelled"),
    e.NodeStarted: _node_started,
    e.ModelAnswered: _model_answered,
    e.NodeFinished: _node_finished,
    e.NodeFailed: _node_failed,
    e.NodeRetried: _node_retried,
    e.TimerFired: _timer_fired,
    e.FrameFailed: _frame_failed,
    e.WriteConflict: _told,
    e.Warned: _told,
    e.LoopExhausted: _told,
    e.RouteTaken: _told,
    e.FiringCancelled: _firing_cancelled,
    e.ApprovalOpened: _opened,
    e.ApprovalVoted: _voted,
    e.ApprovalDecided: _decided,
    e.ApprovalExpired: _expired,
    e.ApprovalWithdrawn: _withdrawn,
    e.BudgetGranted: _granted,
    e.BudgetSettled: _settled,
    e.BudgetRefused: _refused,
}
"""`route_taken`, `loop_exhausted`, `write_conflict` and `warning` tell people; nothing depends on them."""
