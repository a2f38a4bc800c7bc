"""Asks one firing's node what to do now and says it as actions; whatever a step raises becomes a fact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from agent_graph.core import barriers, forks, spending, tool_facts
from agent_graph.core import events as e
from agent_graph.core.asking import asked
from agent_graph.core.early import outermost
from agent_graph.core.effects import CallModel, CallTool, CheckEvidence, Done, Effect, OpenFrames
from agent_graph.core.failure import follow_up
from agent_graph.core.firing import Firing
from agent_graph.core.frozen import dataclass
from agent_graph.core.graph import END_RUN
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.nesting import DEEPEST
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
    """An effect to perform; its answer is a `ModelAnswered`, `ToolAnswered`, `EvidenceChecked` or `NodeFailed` fact
    about `firing`."""

    firing: str
    attempt: int
    effect: CallModel | CallTool | CheckEvidence


CALLS: Final = (CallModel, CallTool, CheckEvidence)
"""The effects a driver performs."""

Action: TypeAlias = Record | Perform


def step(run: Run, firing: Firing) -> list[Action]:
    """Ask a firing's node what to do now."""
    if firing.barred:
        return [Record(fact) for fact in barriers.asked(run, firing)]
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
        if firing.closed_by is not None:
            closed = [e.JoinClosed(firing.path, firing.closed_by, firing.short)]
            actions += [Record(fact) for fact in untold(run, firing.path, closed)]
        actions.append(Record(e.NodeStarted(firing.path, attempt)))
    node, limit = firing.declared, firing.frame.graph.max_iterations
    if firing.depth > limit:
        message = f"node {node.id!r} would be step {firing.depth} of a chain, over max_iterations {limit}"
        error = _error("MAX_ITERATIONS_EXCEEDED", message, "invalid", {"limit": limit})
        return [*actions, Record(e.NodeFailed(firing.path, error, attempt))]  # whatever `on_error` says: it must end
    answer = _asked(run, firing, attempt)
    if isinstance(answer, Done):
        actions += [Record(fact) for fact in untold(run, firing.path, finished(firing, answer, attempt))]
        return actions
    if isinstance(answer, e.NodeFailed):
        return [*actions, Record(follow_up(run, answer))]
    if isinstance(answer, CALLS):
        return [*actions, *_perform(run, firing, answer, attempt=attempt)]
    return [*actions, Record(asked(run, firing, answer))]


def call_of(run: Run, firing: Firing) -> CallModel | None:
    """The model call that a firing stands at; None when it stands at none. Nothing is changed."""
    answer = _asked(run, firing, firing.attempt or 1)
    return answer if isinstance(answer, CallModel) else None


def check_of(run: Run, firing: Firing) -> CheckEvidence | None:
    """What a firing wants compared with captured sources; None when it wants nothing so. Nothing is changed."""
    if not getattr(firing.declared.config, "evidence_required", False):
        return None
    answer = _asked(run, firing, firing.attempt or 1)
    return answer if isinstance(answer, CheckEvidence) else None


def _asked(run: Run, firing: Firing, attempt: int) -> Done | Effect | e.NodeFailed:
    """What the node says, within the bounds of the run; whatever it raises is its failure."""
    node = firing.declared
    if firing.owned is not None and firing.owned.failure is not None:
        return e.NodeFailed(firing.path, firing.owned.failure, attempt)
    try:
        if firing.closed_by == ():
            raise NodeFailure("JOIN_NO_INPUTS", f"join {node.id!r}: no branch came to its end")
        answer = NODE_TYPES[node.type].step(node, View(firing, limits=run.limits), firing.answers)
        if isinstance(answer, Done):
            if firing.owned is not None and firing.owned.stopped:
                answer = replace(answer, targets=(END_RUN,))
            check_bounds(run, firing, answer)
        elif isinstance(answer, OpenFrames):
            _check_depth(firing)
        elif run.fork is not None and isinstance(answer, CallModel):
            answer = replace(answer, model=run.fork.models.get(node.id, answer.model))
    except NodeFailure as failure:
        error = _error(failure.code, failure.message, failure.failure_class, dict(failure.details))
        return e.NodeFailed(firing.path, error, attempt)
    except Exception as bug:  # a bug in one node is that node's failure, not the server's
        error = _error("INTERNAL", f"a bug in node type {node.type}: {type(bug).__name__}: {bug}", "bug", {})
        return e.NodeFailed(firing.path, error, attempt)
    return answer


def _check_depth(firing: Firing) -> None:
    depth, frame = 1, outermost(firing.frame)  # a region has a path of its own and is no frame inside
    while frame.owner is not None:
        depth, frame = depth + 1, outermost(frame.owner.frame)
    if depth > DEEPEST:
        message = f"node {firing.declared.id!r} would open a frame {DEEPEST + 1} deep; the limit is {DEEPEST}"
        raise NodeFailure("NESTING_TOO_DEEP", message, limit=DEEPEST)


def _perform(run: Run, firing: Firing, effect: CallModel | CallTool | CheckEvidence, *, attempt: int) -> list[Action]:
    """The call, as a new attempt where it may have been made before; or what the run's budgets say of it."""
    actions: list[Action] = []
    attempt += firing.restart
    if run.fork is not None and isinstance(effect, CallModel) and (said := forks.handed(run.fork, firing, attempt)):
        return [Record(e.NodeStarted(firing.path, attempt)), Record(said)] if firing.restart else [Record(said)]
    if run.ledger is not None and isinstance(effect, CallModel):
        let = spending.for_call(run.ledger, firing, effect, attempt=attempt)
        if not isinstance(let, bool):
            actions.append(Record(let))
        if let is False or isinstance(let, e.BudgetRefused):
            return actions
    if firing.restart:
        actions.append(Record(e.NodeStarted(firing.path, attempt, firing.model)))
    if isinstance(effect, CallTool):
        fact, effect = tool_facts.called(firing, effect, attempt)
        actions += [] if fact is None else [Record(fact)]
        return [*actions, Perform(firing.path, attempt, effect)]
    if isinstance(effect, CheckEvidence):
        return [*actions, Perform(firing.path, attempt, effect)]
    if firing.model:
        effect = replace(effect, model=firing.model)
    if effect.cache and (firing.model or firing.tries):
        effect = replace(effect, fresh=True)
    return [*actions, Perform(firing.path, attempt, effect)]


def untold(run: Run, name: str, facts: Sequence[e.Fact]) -> Sequence[e.Fact]:
    """Those of `facts` about a firing that the log does not hold yet: it may end in the middle of a step's facts."""
    told = run.told.get(name)
    return [fact for fact in facts if fact not in told] if told else facts


def _error(code: str, message: str, failure_class: str, details: JsonObject) -> JsonObject:
    error: JsonObject = {"code": code, "message": message, "class": failure_class}
    if details:
        error["details"] = details
    return error
