"""What a vote on a gate does: facts to record, or a refusal; nothing is changed here."""

from __future__ import annotations

from agent_graph.core import events as e
from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.run import Gate, Run
from agent_graph.errors import (
    ApprovalAlreadyDecided,
    ApprovalDecisionNotAllowed,
    ApprovalExpired,
    ApprovalNotFound,
    ApprovalWithdrawn,
)


def vote(
    run: Run, approval_id: str, *, decision: str, note: str, by: str, via: str, now_ms: int, principal: str = ""
) -> tuple[e.Fact, ...]:
    """The facts one decision makes (quorum 1: the first vote decides); `principal` is who was authenticated.

    Raises `ApprovalNotFound`, `ApprovalAlreadyDecided` (details.decision is the winner's), `ApprovalExpired`,
    `ApprovalWithdrawn` or `ApprovalDecisionNotAllowed`; then nothing is to be recorded.
    """
    gate = run.gates.get(approval_id)
    if gate is None:
        raise ApprovalNotFound(f"there is no approval {approval_id!r} in run {run.run_id!r}", approval_id=approval_id)
    if gate.status == "withdrawn" or (gate.status == "pending" and run.ending):
        raise ApprovalWithdrawn("the run ended before this was decided", approval_id=approval_id)
    if gate.status == "expired" or (gate.status == "pending" and now_ms >= gate.expires_at_ms):
        raise ApprovalExpired("this approval expired before it was decided", approval_id=approval_id)
    if gate.status != "pending":
        known = gate.decision or {}
        message = f"{known.get('by')!s} decided {known.get('decision')!s} first; nothing was changed"
        raise ApprovalAlreadyDecided(message, approval_id=approval_id, decision=known)
    if decision not in gate.allowed_decisions:
        allowed = ", ".join(gate.allowed_decisions)
        message = f"this gate takes {allowed}; {decision!r} is not one of them"
        raise ApprovalDecisionNotAllowed(
            message, approval_id=approval_id, allowed_decisions=list(gate.allowed_decisions)
        )
    ballot: JsonObject = {"decision": decision, "decision_note": note, "decided_by": by, "via": via}
    if principal:
        ballot["principal"] = principal
    return (
        e.ApprovalVoted(gate.firing, approval_id, ballot),
        e.ApprovalDecided(gate.firing, approval_id, decision, note, by, via),
    )


def expired(run: Run, now_ms: int) -> tuple[e.Fact, ...]:
    """The facts of gates whose time is over."""
    return tuple(
        e.ApprovalExpired(gate.firing, gate.approval_id)
        for gate in run.open_approvals
        if now_ms >= gate.expires_at_ms and _asks(run, gate)
    )


def _asks(run: Run, gate: Gate) -> bool:
    if gate.firing == ON_BUDGET:
        return True
    firing = run.firing(gate.firing)
    return firing is not None and firing.approval_id == gate.approval_id
