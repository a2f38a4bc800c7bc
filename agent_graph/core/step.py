"""Asks one firing's node what to do now and says it as actions; whatever a step raises becomes a fact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from agent_graph.core import events as e
from agent_graph.core import spending
from agent_graph.core.effects import AskApproval, CallModel, Done
from agent_graph.core.failure import follow_up
from agent_graph.core.firing import Firing
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, digest
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.outcome import check_bounds, finished
from agent_graph.core.run import Run
from agent_graph.core.view import View
from agent_graph.errors import NodeFailure


@dataclass(frozen=True, slots=True)
class Record:
    """A fact to fold and commit."""

    fact: e.Fact


@dataclass(frozen=True, slots=True)
class Perform:
    """An effect to perform; its answer is a `ModelAnswered` or `NodeFailed` fact about `firing`."""

    firing: str
    attempt: int
    effect: CallModel


Action: TypeAlias = Record | Perform


def step(run: Run, firing: Firing) -> list[Action]:
    """Ask a firing's node what to do now."""
    actions: list[Action] = []
    attempt = firing.attempt or 1
    if run.ledger is not None and (fact := spending.for_node(run.ledger, firing)):
        actions.append(Record(fact))
        if isinstance(fact, e.BudgetRefused):
            return actions
    if not firing.attempt:
        if firing.conflicts:
            met = [e.WriteConflict(firing.path, c.key, c.winner, c.losers) for c in firing.conflicts]
            actions += [Record(fact) for fact in untold(run, firing.path, met)]
        actions.append(Record(e.NodeStarted(firing.path, attempt)))
    node, limit = firing.declared, firing.frame.graph.max_iterations
    if firing.depth > limit:
        message = f"node {node.id!r} would be step {firing.depth} of a chain, over max_iterations {limit}"
        error = _error("MAX_ITERATIONS_EXCEEDED", message, "invalid", {"limit": limit})
        return [*actions, Record(e.NodeFailed(firing.path, error, attempt))]  # whatever `on_error` says: it must end
    view = View(firing, limits=run.limits)
    try:
        answer = NODE_TYPES[node.type].step(node, view, firing.answers)
        facts: Sequence[e.Fact] = ()
        if isinstance(answer, Done):
            check_bounds(run, firing, answer)
            facts = finished(firing, answer, attempt)
    except NodeFailure as failure:
        error = _error(failure.code, failure.message, failure.failure_class, dict(failure.details))
        return [*actions, Record(follow_up(run, e.NodeFailed(firing.path, error, attempt)))]
    except Exception as bug:  # a bug in one node is that node's failure, not the server's
        error = _error("INTERNAL", f"a bug in node type {node.type}: {type(bug).__name__}: {bug}", "bug", {})
        return [*actions, Record(follow_up(run, e.NodeFailed(firing.path, error, attempt)))]
    if isinstance(answer, CallModel):
        if firing.model:
            answer = replace(answer, model=firing.model)
        return [*actions, *_call(run, firing, answer)]
    if isinstance(answer, AskApproval):
        return [*actions, Record(_open_gate(run, firing, answer))]
    actions += [Record(fact) for fact in untold(run, firing.path, facts)]
    return actions


def _call(run: Run, firing: Firing, call: CallModel) -> list[Action]:
    """The call, as a new attempt where it may have been made before; or what the run's budgets say of it."""
    attempt = (firing.attempt or 1) + firing.restart
    actions: list[Action] = []
    if run.ledger is not None:
        said = spending.for_call(run.ledger, firing, call, attempt=attempt)
        if not isinstance(said, bool):
            actions.append(Record(said))
        if said is False or isinstance(said, e.BudgetRefused):
            return actions
    if firing.restart:
        actions.append(Record(e.NodeStarted(firing.path, attempt, firing.model)))
    return [*actions, Perform(firing.path, attempt, call)]


def untold(run: Run, name: str, facts: Sequence[e.Fact]) -> Sequence[e.Fact]:
    """Those of `facts` about a firing that the log does not hold yet: it may end in the middle of a step's facts."""
    told = run.told.get(name)
    return [fact for fact in facts if fact not in told] if told else facts


def _error(code: str, message: str, failure_class: str, details: JsonObject) -> JsonObject:
    error: JsonObject = {"code": code, "message": message, "class": failure_class}
    if details:
        error["details"] = details
    return error


def _open_gate(run: Run, firing: Firing, ask: AskApproval) -> e.ApprovalOpened:
    # The id is drawn from what the gate is, so that deciding stays pure and every round of every run has its own.
    name = digest([run.run_id, firing.path, ask.round]).removeprefix("sha256:")[:24]
    return e.ApprovalOpened(
        firing=firing.path, approval_id=f"apr-{name}", round=ask.round, prompt=ask.prompt, subject=ask.subject,
        subject_digest=digest(ask.subject), audience=ask.audience, allowed_decisions=ask.allowed_decisions,
        expiry_ms=ask.expiry_ms, quorum=ask.quorum, channels=ask.channels,
    )  # fmt: skip
