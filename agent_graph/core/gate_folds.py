"""What the facts of approvals change in a run: its gates, and the firings that wait at them.

::

    pending --voted--> pending --decided--> approved | rejected | changes_requested
       |        (an edit changes what it asks about)
       +--reminded--> pending      +--expired--> expired      +--withdrawn--> withdrawn

The folds here are those of `core.folds`' table. A fact about a gate that is closed changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent_graph.core import barriers, budget_folds, forks
from agent_graph.core import events as e
from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.effects import ApprovalAnswer
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.run import OF_THE_RUN, ON_FORK, Gate, Run

STATUS_OF: Final = {
    "approve": "approved", "edit": "approved", "reject": "rejected", "request_changes": "changes_requested",
}  # fmt: skip


def opened(_graph: Graph, run: Run, event: e.Event, fact: e.ApprovalOpened) -> None:
    """A gate asks, and its firing wants nothing until there is an answer."""
    firing = run.firing(fact.firing)
    if firing is None and fact.firing not in OF_THE_RUN:
        return
    node_id = fact.firing if firing is None else firing.declared.id
    ends_ms = event.at_ms + fact.expiry_ms
    gate = run.gates[fact.approval_id] = Gate(
        approval_id=fact.approval_id, firing=fact.firing, node_id=node_id, round=fact.round,
        prompt=fact.prompt, subject=fact.subject, subject_digest=fact.subject_digest, audience=fact.audience,
        allowed_decisions=fact.allowed_decisions, quorum=fact.quorum, channels=fact.channels,
        opened_at_ms=event.at_ms, expires_at_ms=ends_ms, self_approval=fact.self_approval,
        subject_schema=fact.subject_schema,
    )  # fmt: skip
    if fact.remind_ms:
        run.reminders[fact.approval_id] = ends_ms - fact.remind_ms
    if firing is None:
        if gate.firing == ON_BUDGET:
            budget_folds.opened(run, gate)
        return
    firing.approval_id = fact.approval_id
    run.open.pop(firing.path, None)


def voted(_graph: Graph, run: Run, event: e.Event, fact: e.ApprovalVoted) -> None:
    """A vote is kept; an edit is what the gate asks about from here on."""
    gate = run.gates.get(fact.approval_id)
    if gate is None or gate.status != "pending":
        return
    gate.votes.append({**fact.vote, "at_ms": event.at_ms})
    if fact.vote.get("decision") == "edit":
        if not gate.edited:
            gate.edited, gate.original = True, gate.subject
        gate.subject, gate.subject_digest = fact.subject, str(fact.vote["subject_digest"])


def reminded(_graph: Graph, run: Run, _event: e.Event, fact: e.ApprovalReminded) -> None:
    """It is told of once."""
    run.reminders.pop(fact.approval_id, None)


def decided(_graph: Graph, run: Run, event: e.Event, fact: e.ApprovalDecided) -> None:
    """The firing has its answer."""
    decision: JsonObject = {
        "decision": fact.decision, "note": fact.note, "by": fact.by, "via": fact.via, "at_ms": event.at_ms,
    }  # fmt: skip
    answer = ApprovalAnswer(0, fact.decision, fact.note, fact.by, fact.via, event.at_ms)
    _close(run, fact.approval_id, STATUS_OF[fact.decision], decision, answer)


def expired(_graph: Graph, run: Run, event: e.Event, fact: e.ApprovalExpired) -> None:
    """The firing's answer is that nobody gave one."""
    _close(run, fact.approval_id, "expired", None, ApprovalAnswer(0, "expired", "", "", "", event.at_ms))


def withdrawn(_graph: Graph, run: Run, event: e.Event, fact: e.ApprovalWithdrawn) -> None:
    """Nobody is asked any more."""
    budget_folds.told(run, fact)
    gate = run.gates.get(fact.approval_id)
    if gate is not None and gate.status == "pending":
        gate.status, gate.closed_at_ms = "withdrawn", event.at_ms
        run.reminders.pop(fact.approval_id, None)


def _close(run: Run, approval_id: str, status: str, decision: JsonObject | None, answer: ApprovalAnswer) -> None:
    gate = run.gates.get(approval_id)
    if gate is None or gate.status != "pending":
        return
    gate.status, gate.decision, gate.closed_at_ms = status, decision, answer.at_ms
    run.reminders.pop(approval_id, None)
    if gate.firing == ON_BUDGET:
        budget_folds.answered(run, answer)
        return
    if gate.firing == ON_FORK:
        forks.answered(run, gate, answer)
        return
    firing = run.firing(gate.firing)
    if firing is not None and firing.approval_id == approval_id:
        firing.approval_id = ""
        if firing.barred:  # it asks whether it may begin, and its node hears nothing of that
            barriers.answered(run, firing, answer)
            return
        subject = gate.subject if answer.decision == "edit" else None
        firing.answers.append(replace(answer, round=gate.round, subject=subject))
        run.open[firing.path] = firing
