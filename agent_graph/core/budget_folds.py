"""What the facts of budgets change in a run: its ledger, and what on_budget makes of a refusal."""

from __future__ import annotations

from typing import Any

from agent_graph.core import events as e
from agent_graph.core import spending
from agent_graph.core.budgets import ON_BUDGET, WALL_CLOCK, Ledger
from agent_graph.core.effects import ApprovalAnswer, ModelAnswer
from agent_graph.core.firing import Firing
from agent_graph.core.frame_tree import fail
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.places import admit, free
from agent_graph.core.run import PLACED, Gate, Run
from agent_graph.core.transfer import transfer

GONE = "the run's budget is used up, and it goes on elsewhere"


def started(run: Run, at_ms: int) -> None:
    """The run's time is counted from here on."""
    if run.ledger is not None and WALL_CLOCK in run.ledger.most:
        run.ledger.deadline_ms = at_ms + run.ledger.most[WALL_CLOCK]


def granted(_graph: Graph, run: Run, _event: e.Event, fact: e.BudgetGranted) -> None:
    """What was granted counts from here on, whether or not it is used."""
    ledger = run.ledger
    if ledger is None:
        return
    if fact.nodes:
        ledger.nodes += fact.nodes
        ledger.entered.add(fact.firing)
    if fact.llm_calls:
        ledger.calls += fact.llm_calls
        ledger.held[fact.firing] = fact.tokens


def settled(_graph: Graph, run: Run, _event: e.Event, fact: e.BudgetSettled) -> None:
    """What was held is spent as counted, kept where it was not, or given back."""
    ledger = run.ledger
    if ledger is None or ledger.held.pop(fact.firing, None) is None:
        return
    ledger.due.pop(fact.firing, None)
    ledger.calls -= 1 - fact.llm_calls
    if isinstance(fact.tokens, int):
        ledger.spent += fact.tokens
    else:
        ledger.kept += fact.held
        ledger.unreported += 1


def refused(_graph: Graph, run: Run, _event: e.Event, fact: e.BudgetRefused) -> None:
    """The run fails, asks for more, or goes elsewhere."""
    ledger = run.ledger
    if ledger is None:
        return
    if fact.then == "goto":
        ledger.transferred = True
        _transfer(run, ledger, fact)
    elif fact.then == "pause":
        ledger.refused = ledger.refused or fact.budget
        if firing := run.open.pop(fact.firing, None):
            ledger.parked[firing.path] = None
            free(run, firing)
            admit(run, run.frames[""])
        if fact.budget == WALL_CLOCK:
            _call_again(run)
    else:
        fail(run, run.frames[""], spending.error_of(run, fact))


def opened(run: Run, gate: Gate) -> None:
    """The run has asked for more."""
    if run.ledger is not None:
        run.ledger.round, run.ledger.asked_at_ms = gate.round, gate.opened_at_ms


def answered(run: Run, answer: ApprovalAnswer) -> None:
    """A further allotment of the same size, or none: then the run fails."""
    ledger = run.ledger
    if ledger is None or ledger.asked_at_ms is None:
        return
    if answer.decision == "approve":
        name, waited = ledger.refused, answer.at_ms - ledger.asked_at_ms
        ledger.most[name] += ledger.sizes[name]
        if ledger.deadline_ms is not None:
            anew = answer.at_ms + ledger.sizes[WALL_CLOCK]
            ledger.deadline_ms = anew if name == WALL_CLOCK else ledger.deadline_ms + max(0, waited)
        ledger.refused, ledger.asked_at_ms = "", None
        unpark(run, ledger)
    else:
        said = "was not decided in time" if answer.decision == "expired" else f"was rejected by {answer.by}"
        fail(run, run.frames[""], spending.unraised(run, ledger, said))


def unpark(run: Run, ledger: Ledger) -> None:
    """What was refused asks again, before those who wait for a place."""
    for firing in filter(None, map(run.firing, reversed(ledger.parked))):
        if firing.declared.type in PLACED:
            run.queue[firing.path] = firing
            run.queue.move_to_end(firing.path, last=False)
        else:
            run.open[firing.path] = firing
    ledger.parked.clear()
    admit(run, run.frames[""])


def _call_again(run: Run) -> None:
    """The calls in flight are closed with the run's time; when there is more of it they are made again."""
    for firing in run.out.values():
        firing.restart = True
    run.open, run.out = {**run.out, **run.open}, {}


def _transfer(run: Run, ledger: Ledger, fact: e.BudgetRefused) -> None:
    """All that is active ends, inner frames too; what it knew goes on as one token to each target."""
    root = run.frames[""]
    active = sorted(run.running, key=_place)
    for firing in active:
        if firing.approval_id and run.gates[firing.approval_id].status == "pending":
            ledger.untold.append(e.ApprovalWithdrawn(firing.path, firing.approval_id, GONE))
        ledger.untold.append(e.FiringCancelled(firing.path, GONE))
        ledger.settle(firing.path, firing.attempt, None)
    met = transfer(root, fact.targets)
    run.met += [e.WriteConflict(ON_BUDGET, c.key, c.winner, c.losers) for c in met]
    run.frames = {"": root}
    run.open, run.out, run.places = {}, {}, 0
    for waiting in (run.queue, run.pausing, run.waits, run.told, run.closing, run.losing, run.mutexes, run.parts,
                    run.taken, run.until):  # fmt: skip
        waiting.clear()
    admit(run, root)


def _place(firing: Firing) -> tuple[int, str, int, int, int]:
    """Those of inner frames before their owners."""
    return (-firing.path.count("/"), firing.frame.path, firing.depth, firing.node, firing.nth)


def told(run: Run, fact: e.Fact) -> None:
    """A transfer has told this."""
    if run.ledger is not None and fact in run.ledger.untold:
        run.ledger.untold.remove(fact)


def heard(run: Run, firing: Firing, answer: ModelAnswer | None) -> None:
    """A call has its answer: it took what its host counted, and nothing when another run has paid for it."""
    if run.ledger is not None and answer is None:
        run.ledger.give_back(firing.path, firing.attempt)
    elif run.ledger is not None and answer is not None:
        prompt, completion = answer.prompt_tokens, answer.completion_tokens
        took = None if prompt is None or completion is None else prompt + completion
        run.ledger.settle(firing.path, firing.attempt, took)


def failed(run: Run, firing: Firing, error: JsonObject) -> None:
    """A call has failed: what it took is not known, unless it reached nobody."""
    if run.ledger is not None:
        details: Any = error.get("details") or {}
        if error.get("class") == "unreachable" and details.get("reason") == "connect":
            run.ledger.give_back(firing.path, firing.attempt)
        else:
            run.ledger.settle(firing.path, firing.attempt, None)
