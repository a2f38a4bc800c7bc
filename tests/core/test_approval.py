"""What a vote on a gate does: facts, or a refusal after which nothing is to be recorded."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph import errors
from agent_graph.core import approval
from agent_graph.core import events as e
from tests.core.played import Played, compiled, gate, llm, plain, play

GATED = compiled(
    [plain("s"), gate("g", expiry_ms=500, allowed_decisions=["approve", "reject"]), llm("a")], "s>g s>a", output_key="g"
)


def waiting() -> tuple[Played, str]:
    at = play(GATED)
    return at, at.run.open_approvals[0].approval_id


def vote(at: Played, approval_id: str, **more: Any) -> tuple[e.Fact, ...]:
    given = {"decision": "approve", "note": "fine", "by": "ann", "via": "cli", "now_ms": 1_499, **more}
    return approval.vote(at.run, approval_id, **given)


def test_the_first_vote_decides() -> None:
    at, name = waiting()
    facts = vote(at, name)
    ballot = {"decision": "approve", "decision_note": "fine", "decided_by": "ann", "via": "cli"}
    assert facts == (
        e.ApprovalVoted("g#1", name, ballot), e.ApprovalDecided("g#1", name, "approve", "fine", "ann", "cli"),
    )  # fmt: skip
    at.go(*facts)
    assert at.run.gates[name].status == "approved"


def refused(at: Played, approval_id: str, **more: Any) -> errors.AgentGraphError:
    log = len(at.log)
    with pytest.raises(errors.AgentGraphError) as caught:
        vote(at, approval_id, **more)
    assert len(at.log) == log
    return caught.value


def test_an_unknown_approval_is_not_found() -> None:
    at, _ = waiting()
    assert refused(at, "apr-none").code == "APPROVAL_NOT_FOUND"


def test_the_second_to_decide_learns_what_the_first_decided() -> None:
    at, name = waiting()
    at.go(*vote(at, name))
    error = refused(at, name, decision="reject", by="eve")
    assert (error.code, error.message) == (
        "APPROVAL_ALREADY_DECIDED", "ann decided approve first; nothing was changed",
    )  # fmt: skip
    assert error.details["decision"]["note"] == "fine"  # type: ignore[index,call-overload]


@pytest.mark.parametrize("now_ms", [1_500, 99_000])
def test_a_vote_at_or_after_the_expiry_is_refused_even_if_nobody_has_looked(now_ms: int) -> None:
    at, name = waiting()
    assert refused(at, name, now_ms=now_ms).code == "APPROVAL_EXPIRED"


def test_an_expired_gate_takes_no_vote() -> None:
    at, name = waiting()
    at.feed(e.ApprovalExpired("g#1", name))
    assert refused(at, name, now_ms=1_001).code == "APPROVAL_EXPIRED"


def test_a_withdrawn_gate_takes_no_vote() -> None:
    at, name = waiting()
    at.cancel()
    assert refused(at, name).code == "APPROVAL_WITHDRAWN"


def test_a_gate_of_a_run_that_is_about_to_end_takes_no_vote() -> None:
    at, name = waiting()
    at.feed(e.RunCancelRequested("enough"))
    assert refused(at, name).code == "APPROVAL_WITHDRAWN"
    at, name = waiting()
    at.feed(e.NodeFailed("a#1", {"code": "X", "message": "y", "class": "bug"}))
    assert refused(at, name).code == "APPROVAL_WITHDRAWN"


def test_a_decision_the_gate_does_not_take_is_refused_and_those_it_takes_are_named() -> None:
    at, name = waiting()
    error = refused(at, name, decision="request_changes")
    assert (error.code, error.details["allowed_decisions"]) == ("APPROVAL_DECISION_NOT_ALLOWED", ["approve", "reject"])


def test_gates_expire_when_their_time_is_over() -> None:
    at, name = waiting()
    assert approval.expired(at.run, 1_499) == ()
    assert approval.expired(at.run, 1_500) == (e.ApprovalExpired("g#1", name),)


def test_the_gate_of_a_firing_that_is_gone_does_not_expire() -> None:
    at, _ = waiting()
    at.feed(e.FiringCancelled("g#1", "over"))
    assert approval.expired(at.run, 9_999) == ()
