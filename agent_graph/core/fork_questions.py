"""What people are asked before a fork goes on: whatever was decided, or was to be, that the fork may not take as it is.

Three things lead to a question, each on the terms of those who were asked before: a decision that is not taken along,
a gate that was placed in the run and may stand off the way of another version, more of a budget that nobody granted.
Asks nobody itself, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from agent_graph.core import events as e
from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.classes import dataclass
from agent_graph.core.fork_changes import LISTED, Changed
from agent_graph.core.forks import Question
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.core.run import ON_FORK, Gate, Run


@dataclass(frozen=True, slots=True)
class Forker:
    """Who forks, and the run that it makes."""

    run_id: str
    via: str
    started_by: str = ""
    principal: str = ""
    started_as: str = ""
    thread_id: str = ""
    budgets: JsonObject = field(default_factory=dict)
    policy: JsonObject = field(default_factory=dict)
    decides: bool = True
    """It is allowed to decide at gates at all."""
    proven: bool = True
    """Behind a shell or a browser a person is known to be; an assistant can have either."""


def questions(
    log: Sequence[e.Event], count: int, there: Run, *, forker: Forker, changed: Changed, version: str
) -> list[Question]:
    """What is asked of a fork of the run with that log, which stands as `there` after `count` events; `version` is the
    one it goes on in, where that is not the one in which it went there."""
    found = [*_of_decisions(there, forker, changed, version)]
    placed = [one.fact for one in log[count:] if isinstance(one.fact, e.GatePlaced)]
    if version:
        told = {(one.node_id, one.channels) for one in found}
        gates = {**there.barriers, **{gate.node: gate for gate in placed}}
        found += [_of_placed(there, gate, changed, version) for gate in gates.values() if (gate.node, ()) not in told]
    return [*found, *_of_budget(log, there, changed, version)]


def went_in(log: Sequence[e.Event], count: int, own: str) -> str:
    """The graph version in which the first `count` events happened, of a run that now goes on in the version `own`: a
    fork that took them over into another says in which one they were recorded."""
    later = (one.fact for one in log[count:] if isinstance(one.fact, e.RunForked))
    return next((fact.version for fact in later if fact.version), own)


# -- decisions -----------------------------------------------------------------------------------------------------


def _of_decisions(there: Run, forker: Forker, changed: Changed, version: str) -> Iterator[Question]:
    """One for each node at which people decided what the fork may not take over as it is."""
    closed = (gate for gate in there.gates.values() if gate.status not in ("pending", "withdrawn"))
    again = [gate for gate in closed if gate.firing != ON_BUDGET]  # of budgets the fork has its own
    if not (changed.anything or version):
        again = [gate for gate in again if not _stays(there, gate, forker)]
    by_node: dict[tuple[str, tuple[str, ...]], list[Gate]] = {}
    for gate in again:
        by_node.setdefault((gate.node_id, gate.channels), []).append(gate)
    for (node_id, channels), gates in by_node.items():
        latest = gates[-1]
        decided: list[JsonValue] = [
            {"node_path": gate.firing, "status": gate.status, "subject_digest": gate.subject_digest} for gate in gates
        ]
        subject: JsonObject = {
            "node_id": node_id, "decided": decided[-LISTED:], "decisions": len(decided),
            "decisions_digest": digest(decided), "subject": latest.subject, "changes": changed.to_json(version),
        }  # fmt: skip
        what = "with these changes" if changed.anything or version else "once more, by somebody who may not decide it"
        prompt = f"A fork of run {there.run_id} goes on {what} after this was decided: {latest.prompt}"
        yield Question(
            node_id, prompt, subject, latest.audience, max(gate.quorum for gate in gates), channels,
            all(gate.self_approval for gate in gates),
        )  # fmt: skip


def _stays(there: Run, gate: Gate, forker: Forker) -> bool:
    """A decision is taken along only by somebody who could bring one to that gate, and, where whoever starts the run
    may not decide, by whoever started the origin."""
    closed = bool(gate.channels) and "assistant" not in gate.channels
    if not forker.decides or (gate.channels and forker.via not in gate.channels) or (closed and not forker.proven):
        return False
    mine = (forker.principal, forker.started_as, forker.started_by)
    return gate.self_approval or mine == (there.principal, there.started_as, there.started_by)


# -- what nobody had decided ---------------------------------------------------------------------------------------


def _of_placed(there: Run, gate: e.GatePlaced, changed: Changed, version: str) -> Question:
    """Another version can have the node off its way, and do elsewhere what it did."""
    subject: JsonObject = {"node_id": gate.node, "placed": gate.prompt, "changes": changed.to_json(version)}
    prompt = (
        f"A fork of run {there.run_id} goes on in another version of the graph, whose way may not lead by the gate that"
        f" was placed before {gate.node!r}: {gate.prompt}"
    )
    return Question(gate.node, prompt, subject, gate.audience)


def _of_budget(log: Sequence[e.Event], there: Run, changed: Changed, version: str) -> Iterator[Question]:
    """A fork has budgets of its own: where more was asked for and nobody has said yes, it would just help itself."""
    asked = next((one.fact for one in reversed(log) if _asks_for_more(one.fact)), None)
    if not isinstance(asked, e.ApprovalOpened) or _was_granted(log, asked.approval_id):
        return
    if there.fork is not None and any(ask.get("node_id") == ON_BUDGET for ask in there.fork.asks.values()):
        return  # it is asked already
    of_fork: Any = asked.subject if asked.firing == ON_FORK else {"subject": asked.subject}
    subject: JsonObject = {
        "node_id": ON_BUDGET, "subject": of_fork["subject"], "changes": changed.to_json(version),
    }  # fmt: skip
    prompt = (
        f"A fork of run {there.run_id} goes on with budgets of its own, although more was asked for there and nobody"
        f" has granted it: {asked.prompt}"
    )
    yield Question(
        ON_BUDGET, prompt, subject, asked.audience, asked.quorum, asked.channels, asked.self_approval,
    )  # fmt: skip


def _asks_for_more(fact: e.Fact) -> bool:
    """Of a budget: the run itself, or a fork whether it may have budgets of its own."""
    if not isinstance(fact, e.ApprovalOpened) or fact.firing not in (ON_BUDGET, ON_FORK):
        return False
    return fact.firing == ON_BUDGET or (isinstance(fact.subject, dict) and fact.subject.get("node_id") == ON_BUDGET)


def _was_granted(log: Sequence[e.Event], approval_id: str) -> bool:
    decided = (one.fact for one in log if isinstance(one.fact, e.ApprovalDecided))
    return any(fact.approval_id == approval_id and fact.decision == "approve" for fact in decided)
