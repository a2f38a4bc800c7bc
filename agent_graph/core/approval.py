"""What a vote on a gate does: facts to record, or a refusal; nothing is changed here.

Who may vote: whoever comes by a channel the gate takes and, where it says so, did not start the run. What counts:
approvals of the very subject the gate asks about now, of as many different people as its quorum says; one vote against
decides at once, also that of somebody who approved before.
"""

from __future__ import annotations

from typing import Final

from agent_graph.core import events as e
from agent_graph.core.deciding import how_to_decide
from agent_graph.core.editing import edited
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.core.run import OF_THE_RUN, Gate, Run
from agent_graph.errors import (
    ApprovalAlreadyDecided,
    ApprovalAlreadyVoted,
    ApprovalChannelNotAllowed,
    ApprovalDecisionNotAllowed,
    ApprovalEditInvalid,
    ApprovalExpired,
    ApprovalNotFound,
    ApprovalSelfDecision,
    ApprovalStale,
    ApprovalWithdrawn,
)

FOR: Final = ("approve", "edit")
"""The decisions that let a run go on as it was meant to; of any other one is enough."""
EDITS: Final = 20
"""Edits of one gate's subject."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """One person's vote, as it comes in."""

    decision: str
    by: str
    """Whose decision it is, as whoever brings it says."""
    via: str
    note: str = ""
    principal: str = ""
    """Who was authenticated; "" is the local user, or somebody they speak for."""
    client: str = ""
    """What the program that brings it calls itself."""
    on_behalf_of: str = ""
    """Who asked them to decide in their place."""
    patch: tuple[JsonObject, ...] = ()
    """The JSON Patch of an edit."""
    subject_digest: str = ""
    """Of the subject they saw; "" where that is not told."""
    console: str = ""
    """The address at which the console is served, for what a refusal says."""


def vote(run: Run, approval_id: str, ballot: Ballot, *, now_ms: int) -> tuple[e.Fact, ...]:
    """The facts one vote makes.

    Raises `ApprovalNotFound`, `ApprovalAlreadyDecided` (details.decision is the winner's), `ApprovalExpired`,
    `ApprovalWithdrawn`, `ApprovalChannelNotAllowed`, `ApprovalDecisionNotAllowed`, `ApprovalSelfDecision`,
    `ApprovalStale`, `ApprovalAlreadyVoted` or `ApprovalEditInvalid`; then nothing is to be recorded.
    """
    gate = run.gates.get(approval_id)
    if gate is None:
        raise ApprovalNotFound(f"there is no approval {approval_id!r} in run {run.run_id!r}", approval_id=approval_id)
    _check_open(run, gate, now_ms)
    _check_voter(run, gate, ballot)
    _check_seen(gate, ballot)
    subject, subject_digest = gate.subject, gate.subject_digest
    if ballot.decision == "edit":
        subject = _edited(run, gate, ballot)
        subject_digest = digest(subject)
    paper = _paper(ballot, subject_digest)
    facts: list[e.Fact] = [
        e.ApprovalVoted(gate.firing, approval_id, paper, subject if ballot.decision == "edit" else None)
    ]
    decision = ballot.decision
    if decision in FOR:
        decision = "edit" if gate.edited or decision == "edit" else "approve"
        others = set() if ballot.decision == "edit" else {_identity(one) for one in _approvals(gate)}
        if len(others | {_identity(paper)}) < gate.quorum:
            return tuple(facts)
    facts.append(e.ApprovalDecided(gate.firing, approval_id, decision, ballot.note, ballot.by, ballot.via))
    return tuple(facts)


def missing(gate: Gate) -> int:
    """How many more people have to approve what it asks about now."""
    have = {_identity(one) for one in _approvals(gate)}
    return max(0, gate.quorum - len(have))


def expired(run: Run, now_ms: int) -> tuple[e.Fact, ...]:
    """The facts of gates whose time is over."""
    return tuple(
        e.ApprovalExpired(gate.firing, gate.approval_id)
        for gate in run.open_approvals
        if now_ms >= gate.expires_at_ms and _asks(run, gate)
    )


# -- who may, and on what ------------------------------------------------------------------------------------------


def _check_open(run: Run, gate: Gate, now_ms: int) -> None:
    name = gate.approval_id
    if gate.status == "withdrawn" or (gate.status == "pending" and run.ending):
        raise ApprovalWithdrawn("the run ended before this was decided", approval_id=name)
    if gate.status == "expired" or (gate.status == "pending" and now_ms >= gate.expires_at_ms):
        raise ApprovalExpired("this approval expired before it was decided", approval_id=name)
    if gate.status == "pending":
        return
    known = gate.decision or {}
    message = f"{known.get('by')!s} decided {known.get('decision')!s} first; nothing was changed"
    details: JsonObject = {"approval_id": name, "decision": known}
    later = [one.approval_id for one in run.open_approvals if one.firing == gate.firing]
    if later:
        message += f"; the gate asks anew: {later[0]}"
        details["asks_now"] = later[0]
    raise ApprovalAlreadyDecided(message, **details)


def _check_voter(run: Run, gate: Gate, ballot: Ballot) -> None:
    how = how_to_decide(
        gate.approval_id, channels=gate.channels, decisions=gate.allowed_decisions, console=ballot.console,
        self_approval=gate.self_approval,
    )  # fmt: skip
    if gate.channels and ballot.via not in gate.channels:
        message = f"this gate takes no decision that comes by {ballot.via}: {how}"
        raise ApprovalChannelNotAllowed(
            message, approval_id=gate.approval_id, via=ballot.via, channels=list(gate.channels), how_to_decide=how
        )
    if ballot.decision not in gate.allowed_decisions:
        allowed = ", ".join(gate.allowed_decisions)
        message = f"this gate takes {allowed}; {ballot.decision!r} is not one of them"
        raise ApprovalDecisionNotAllowed(
            message, approval_id=gate.approval_id, allowed_decisions=list(gate.allowed_decisions)
        )
    if not gate.self_approval and started(run, ballot):
        message = "whoever started the run may not decide this; somebody else has to, under a name of their own"
        raise ApprovalSelfDecision(message, approval_id=gate.approval_id, how_to_decide=how)


def started(run: Run, ballot: Ballot) -> bool:
    """Whether a ballot comes from whoever started the run, as far as anybody can tell.

    Names decide where they are known; where nobody was authenticated, so does the program: what an assistant has
    started, the same assistant does not wave through.
    """
    starter = _plain(run.principal or run.started_as)
    if starter and starter in (_plain(ballot.principal or ballot.by), _plain(ballot.on_behalf_of)):
        return True
    return not run.principal and not ballot.principal and run.started_by == ballot.client


def _check_seen(gate: Gate, ballot: Ballot) -> None:
    """Nobody votes for what they have not seen, and nobody twice for the same."""
    unseen = bool(ballot.subject_digest) and ballot.subject_digest != gate.subject_digest
    if unseen or (gate.edited and not ballot.subject_digest and ballot.decision in FOR):
        message = "what would happen was edited since it was first shown; look at it again, and name its subject_digest"
        if unseen:
            message = "what would happen is not what the subject_digest names, or not any more; look at it again"
        raise ApprovalStale(message, approval_id=gate.approval_id, subject_digest=gate.subject_digest)
    if ballot.decision == "approve":
        mine = [one for one in _approvals(gate) if _identity(one) == _plain(_name(ballot))]
        if mine:
            message = f"{_name(ballot)} has approved this already; {missing(gate)} more have to"
            raise ApprovalAlreadyVoted(message, approval_id=gate.approval_id, vote=mine[0])


def _edited(run: Run, gate: Gate, ballot: Ballot) -> JsonValue:
    if sum(one["decision"] == "edit" for one in gate.votes) >= EDITS:
        raise ApprovalEditInvalid(f"this was edited {EDITS} times already; approve it, or decide against it")
    return edited(gate.subject, ballot.patch, subject_schema=gate.subject_schema, limits=run.limits)


# -- votes ---------------------------------------------------------------------------------------------------------


def _paper(ballot: Ballot, subject_digest: str) -> JsonObject:
    """The vote as the log keeps it."""
    body: JsonObject = {
        "decision": ballot.decision, "decision_note": ballot.note, "decided_by": ballot.by, "via": ballot.via,
        "subject_digest": subject_digest,
    }  # fmt: skip
    if ballot.principal:
        body["principal"] = ballot.principal
    if ballot.on_behalf_of:
        body["on_behalf_of"] = ballot.on_behalf_of
    if ballot.decision == "edit":
        body["patch"] = list(ballot.patch)
    return body


def _approvals(gate: Gate) -> list[JsonObject]:
    """The votes for what it asks about now: from the latest edit on, also where that brought back an earlier one."""
    edits = [place for place, one in enumerate(gate.votes) if one["decision"] == "edit"]
    return [one for one in gate.votes[edits[-1] if edits else 0 :] if one["decision"] in FOR]


def _name(ballot: Ballot) -> str:
    return ballot.principal or ballot.by


def _identity(paper: JsonObject) -> str:
    """Who a vote is of: whoever was authenticated, else the name that was given."""
    return _plain(str(paper.get("principal") or paper["decided_by"]))


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def _asks(run: Run, gate: Gate) -> bool:
    if gate.firing in OF_THE_RUN:
        return True
    firing = run.firing(gate.firing)
    return firing is not None and firing.approval_id == gate.approval_id
