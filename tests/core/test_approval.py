"""What a vote on a gate does: facts, or a refusal after which nothing is to be recorded."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph import errors
from agent_graph.core import approval, checkpoint, waits
from agent_graph.core import events as e
from agent_graph.core.approval import Ballot
from agent_graph.core.jsonvalue import digest
from agent_graph.core.outcome import final_state
from tests.core.played import Played, accepted, compiled, folded, gate, llm, plain, play, stored

GATED = compiled(
    [plain("s"), gate("g", expiry_ms=500, allowed_decisions=["approve", "reject"]), llm("a")], "s>g s>a", output_key="g"
)
DIGEST = digest("hello")


def waiting(graph: Any = GATED, **started: Any) -> tuple[Played, str]:
    at = accepted(graph, **started).go(e.RunStarted())
    return at, at.run.open_approvals[0].approval_id


def gated(**config: Any) -> tuple[Played, str]:
    """A run that waits at one gate, with what is said of it."""
    return waiting(compiled([gate("g", **config)], "g>END", output_key="g"))


def vote(at: Played, approval_id: str, **more: Any) -> tuple[e.Fact, ...]:
    given = {"decision": "approve", "note": "fine", "by": "ann", "via": "cli", "client": "shell", **more}
    now_ms = given.pop("now_ms", 1_499)
    return approval.vote(at.run, approval_id, Ballot(**given), now_ms=now_ms)


def cast(at: Played, approval_id: str, by: str, decision: str = "approve", **more: Any) -> str:
    """Vote; the status of the gate after it."""
    at.go(*vote(at, approval_id, by=by, decision=decision, **more))
    return at.run.gates[approval_id].status


def refused(at: Played, approval_id: str, **more: Any) -> errors.AgentGraphError:
    log = len(at.log)
    with pytest.raises(errors.AgentGraphError) as caught:
        vote(at, approval_id, **more)
    assert len(at.log) == log
    return caught.value


def test_the_first_vote_decides_where_one_is_enough() -> None:
    at, name = waiting()
    facts = vote(at, name)
    ballot = {
        "decision": "approve", "decision_note": "fine", "decided_by": "ann", "via": "cli", "subject_digest": DIGEST,
    }  # fmt: skip
    assert facts == (
        e.ApprovalVoted("g#1", name, ballot), e.ApprovalDecided("g#1", name, "approve", "fine", "ann", "cli"),
    )  # fmt: skip
    at.go(*facts)
    assert at.run.gates[name].status == "approved"
    assert at.run.gates[name].closed_at_ms == 1_000


def test_a_vote_names_who_was_authenticated_and_in_whose_place_it_is() -> None:
    at, name = waiting()
    (voted, _) = vote(at, name, principal="ann@corp", on_behalf_of="bob")
    assert isinstance(voted, e.ApprovalVoted)
    assert (voted.vote["principal"], voted.vote["on_behalf_of"]) == ("ann@corp", "bob")


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


def test_an_old_yes_opens_no_later_gate_and_is_told_what_is_asked_now() -> None:
    at, first = gated()
    cast(at, first, "ann", "request_changes")
    (second,) = at.run.open_approvals
    assert second.approval_id != first
    error = refused(at, first)
    assert (error.code, error.details["asks_now"]) == ("APPROVAL_ALREADY_DECIDED", second.approval_id)


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
    assert at.run.gates[name].closed_at_ms == 1_000


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


# -- channels ------------------------------------------------------------------------------------------------------


def test_a_gate_closed_to_models_takes_no_word_of_one_and_says_who_can_decide() -> None:
    at, name = gated(channels=["console", "cli"])
    error = refused(at, name, via="assistant")
    assert error.code == "APPROVAL_CHANNEL_NOT_ALLOWED"
    assert error.details["channels"] == ["console", "cli"]
    assert f"agent-graph approvals decide {name}" in error.message
    assert "no model can" in error.message
    assert cast(at, name, "ann", via="console") == "approved"


def test_a_gate_takes_every_channel_where_none_is_named() -> None:
    for via in ("elicitation", "console", "cli", "assistant"):
        at, name = gated()
        assert cast(at, name, "ann", via=via) == "approved"


# -- quorum --------------------------------------------------------------------------------------------------------


def test_a_quorum_counts_people_and_not_votes() -> None:
    at, name = gated(quorum=2)
    assert cast(at, name, "Ann") == "pending"
    error = refused(at, name, by=" ann ")
    assert error.code == "APPROVAL_ALREADY_VOTED"
    assert error.details["vote"]["decided_by"] == "Ann"  # type: ignore[index,call-overload]
    assert approval.missing(at.run.gates[name]) == 1
    assert cast(at, name, "Bob") == "approved"
    assert approval.missing(at.run.gates[name]) == 0
    decided = at.facts(e.ApprovalDecided)
    assert [(fact.decision, fact.by) for fact in decided] == [("approve", "Bob")]
    assert [one["decided_by"] for one in at.run.gates[name].votes] == ["Ann", "Bob"]


def test_whoever_was_authenticated_counts_and_not_the_name_they_give() -> None:
    at, name = gated(quorum=2)
    assert cast(at, name, "Ann", principal="ann") == "pending"
    assert refused(at, name, by="Somebody else", principal="ann").code == "APPROVAL_ALREADY_VOTED"
    assert refused(at, name, by="ANN").code == "APPROVAL_ALREADY_VOTED"
    assert cast(at, name, "Ann", principal="bob") == "approved"


@pytest.mark.parametrize("against", ["reject", "request_changes"])
@pytest.mark.parametrize("by", ["Bob", "Ann"])
def test_one_vote_against_decides_whoever_it_is_of(against: str, by: str) -> None:
    at, name = gated(quorum=3, on_reject="continue", on_request_changes="continue")
    assert cast(at, name, "Ann") == "pending"
    assert cast(at, name, by, against) == {"reject": "rejected", "request_changes": "changes_requested"}[against]


def test_every_round_counts_anew() -> None:
    at, first = gated(quorum=2)
    cast(at, first, "Ann")
    cast(at, first, "Bob", "request_changes")
    (second,) = at.run.open_approvals
    assert cast(at, second.approval_id, "Bob") == "pending"
    assert cast(at, second.approval_id, "Ann") == "approved"


# -- who started the run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("started", "ballot"),
    [
        ({"principal": "ann"}, {"principal": "Ann"}),
        ({"principal": "ann"}, {"by": "ANN"}),
        ({"principal": "ann"}, {"principal": "bob", "on_behalf_of": "ann"}),
        ({"started_as": "ann"}, {"by": "ann"}),
        ({"started_as": "ann"}, {"principal": "ann"}),
        ({"started_as": "ann", "started_by": "an assistant"}, {"by": "bob", "client": "an assistant"}),
        ({}, {"by": "bob", "client": ""}),
    ],
)
def test_whoever_started_the_run_does_not_decide_where_the_gate_says_so(
    started: dict[str, Any], ballot: dict[str, Any]
) -> None:
    graph = compiled([gate("g", self_approval=False)], "g>END", output_key="g")
    at, name = waiting(graph, **started)
    assert refused(at, name, **ballot).code == "APPROVAL_SELF_DECISION"
    at, name = waiting(compiled([gate("g")], "g>END", output_key="g"), **started)
    at.go(*vote(at, name, **ballot))
    assert at.run.gates[name].status == "approved"


@pytest.mark.parametrize(
    ("started", "ballot"),
    [
        ({"principal": "ann", "started_by": "web"}, {"principal": "bob", "client": "web"}),
        ({"principal": "ann", "started_by": "web"}, {"by": "bob", "client": "web"}),
        ({"started_as": "ann", "started_by": "web"}, {"principal": "bob", "client": "web", "by": "ann"}),
        ({"started_as": "ann", "started_by": "an assistant"}, {"by": "bob", "client": "shell"}),
    ],
)
def test_anybody_else_decides(started: dict[str, Any], ballot: dict[str, Any]) -> None:
    at, name = waiting(compiled([gate("g", self_approval=False)], "g>END", output_key="g"), **started)
    at.go(*vote(at, name, **ballot))
    assert at.run.gates[name].status == "approved"


# -- edit ----------------------------------------------------------------------------------------------------------

EDITS = {"allowed_decisions": ["approve", "edit", "reject"]}
REWRITE = ({"op": "replace", "path": "", "value": "better"},)


def test_an_edit_is_a_yes_to_what_it_makes_of_the_subject() -> None:
    graph = compiled([gate("g", **EDITS), llm("a", "{input}")], "g>a a>END", output_key="g")
    at, name = waiting(graph)
    voted, decided = vote(at, name, decision="edit", patch=REWRITE)
    assert isinstance(voted, e.ApprovalVoted)
    assert isinstance(decided, e.ApprovalDecided)
    assert (voted.vote["patch"], voted.subject, voted.vote["subject_digest"]) == (
        [*REWRITE], "better", digest("better"),
    )  # fmt: skip
    assert decided.decision == "edit"
    at.go(voted, decided)
    kept = at.run.gates[name]
    assert (kept.status, kept.subject, kept.original, kept.edited) == ("approved", "better", "hello", True)
    assert at.prompt("a#1") == "better"
    at.answer_all()
    assert final_state(at.run)[0]["decision"] == "edit"  # type: ignore[index,call-overload]


def test_an_edit_starts_the_quorum_anew_and_nobody_says_yes_to_what_they_have_not_seen() -> None:
    at, name = gated(quorum=2, **EDITS)
    assert cast(at, name, "Ann") == "pending"
    assert cast(at, name, "Bob", "edit", patch=REWRITE) == "pending"
    assert approval.missing(at.run.gates[name]) == 1
    for seen in ({"subject_digest": DIGEST}, {}):
        error = refused(at, name, by="Ann", **seen)
        assert (error.code, error.details["subject_digest"]) == ("APPROVAL_STALE", digest("better"))
    assert refused(at, name, by="Bob", subject_digest=digest("better")).code == "APPROVAL_ALREADY_VOTED"
    assert cast(at, name, "Ann", subject_digest=digest("better")) == "approved"
    assert at.facts(e.ApprovalDecided)[0].decision == "edit"


def test_a_second_edit_starts_from_the_first_and_what_was_asked_about_is_kept() -> None:
    at, name = gated(quorum=2, **EDITS)
    cast(at, name, "Bob", "edit", patch=REWRITE)
    again = ({"op": "replace", "path": "", "value": "best"},)
    cast(at, name, "Bob", "edit", patch=again, subject_digest=digest("better"))
    kept = at.run.gates[name]
    assert (kept.subject, kept.original, kept.status) == ("best", "hello", "pending")
    assert cast(at, name, "Ann", subject_digest=digest("best")) == "approved"


def test_an_edit_that_brings_an_earlier_subject_back_starts_anew_too() -> None:
    at, name = gated(quorum=2, **EDITS)
    for by, value in (("Bob", "better"), ("Ann", "hello"), ("Ann", "better")):
        patch = ({"op": "replace", "path": "", "value": value},)
        seen = at.run.gates[name].subject_digest
        assert cast(at, name, by, "edit", patch=patch, subject_digest=seen) == "pending"
    assert cast(at, name, "Bob", subject_digest=digest("better")) == "approved"


def test_a_vote_against_needs_no_digest_but_is_held_to_one_it_gives() -> None:
    at, name = gated(quorum=2, on_reject="continue", **EDITS)
    cast(at, name, "Bob", "edit", patch=REWRITE)
    assert refused(at, name, by="Ann", decision="reject", subject_digest=DIGEST).code == "APPROVAL_STALE"
    assert cast(at, name, "Ann", "reject") == "rejected"
    assert at.facts(e.ApprovalDecided)[0].decision == "reject"


def test_a_vote_that_names_another_subject_is_stale() -> None:
    at, name = gated()
    assert refused(at, name, subject_digest="sha256:0").code == "APPROVAL_STALE"
    assert cast(at, name, "Ann", subject_digest=DIGEST) == "approved"


def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    at, name = gated(subject_schema={"type": "string", "maxLength": 6}, **EDITS)
    for patch in (
        (), ({"op": "test", "path": "", "value": "other"},), ({"op": "remove", "path": "/a"},),
        ({"op": "replace", "path": "", "value": "hello"},), ({"op": "replace", "path": "", "value": "far too long"},),
    ):  # fmt: skip
        assert refused(at, name, decision="edit", patch=patch).code == "APPROVAL_EDIT_INVALID"
    assert at.run.gates[name].subject == "hello"


def test_a_subject_is_edited_so_many_times_and_no_more() -> None:
    at, name = gated(quorum=2, **EDITS)
    for number in range(approval.EDITS):
        seen = at.run.gates[name].subject_digest
        patch = ({"op": "replace", "path": "", "value": number},)
        assert cast(at, name, "Bob", "edit", patch=patch, subject_digest=seen) == "pending"
    seen = at.run.gates[name].subject_digest
    error = refused(at, name, by="Ann", decision="edit", patch=REWRITE, subject_digest=seen)
    assert error.code == "APPROVAL_EDIT_INVALID"
    assert cast(at, name, "Ann", subject_digest=seen) == "approved"


def test_what_is_folded_anew_is_the_same() -> None:
    at, name = gated(quorum=3, subject_schema={"type": "string"}, **EDITS)
    cast(at, name, "Ann")
    cast(at, name, "Bob", "edit", patch=REWRITE)
    again = folded(at.graph, at.log)
    assert again.gates == at.run.gates
    loaded = checkpoint.load(at.graph, checkpoint.dump(at.run))
    assert (loaded.gates, loaded.reminders) == (at.run.gates, at.run.reminders)
    assert checkpoint.dump(loaded) == checkpoint.dump(at.run)
    assert [stored(event).fact for event in at.log] == [event.fact for event in at.log]


def test_a_vote_on_a_gate_that_is_closed_changes_nothing() -> None:
    at, name = gated()
    late = vote(at, name, by="late")
    cast(at, name, "Ann")
    before = checkpoint.dump(at.run)
    at.feed(*late)
    at.run.seq -= len(late)
    assert checkpoint.dump(at.run) == before
    at.feed(e.ApprovalVoted("g#1", "apr-none", {"decision": "approve"}))


# -- the clock -----------------------------------------------------------------------------------------------------


def test_gates_expire_when_their_time_is_over() -> None:
    at, name = waiting()
    assert approval.expired(at.run, 1_499) == ()
    assert approval.expired(at.run, 1_500) == (e.ApprovalExpired("g#1", name),)


def test_the_gate_of_a_firing_that_is_gone_does_not_expire() -> None:
    at, _ = waiting()
    at.feed(e.FiringCancelled("g#1", "over"))
    assert approval.expired(at.run, 9_999) == ()


def test_an_expired_gate_goes_where_it_is_told_to() -> None:
    graph = compiled(
        [gate("g", expiry_ms=500, on_expire={"goto": ["late"]}), llm("yes"), llm("late")], "g>yes", output_key="g"
    )
    at = play(graph)
    at.expire("g#1")
    assert [*at.calls] == ["late#1"]
    at.answer_all()
    assert at.run.status == "completed"
    assert final_state(at.run) == ({"decision": "expired", "note": "", "by": "", "via": "", "at_ms": 1_000},)


def test_a_gate_is_told_of_once_before_its_end() -> None:
    at, name = gated(expiry_ms=500, remind_ms=100)
    assert waits.wake_ms(at.run) == 1_400
    assert waits.next_due_ms(at.run) == 1_400
    assert waits.due(at.run, 1_399) == ()
    assert waits.due(at.run, 1_400) == (e.ApprovalReminded("g#1", name),)
    at.feed(*waits.due(at.run, 1_400))
    assert (waits.due(at.run, 1_499), waits.wake_ms(at.run)) == ((), None)
    assert at.run.status == "waiting"


def test_nobody_is_reminded_of_what_is_over() -> None:
    at, name = gated(expiry_ms=500, remind_ms=100)
    assert waits.due(at.run, 1_500) == (e.ApprovalExpired("g#1", name),)
    at, name = gated(expiry_ms=500, remind_ms=100)
    cast(at, name, "Ann")
    assert at.run.reminders == {}
    at, name = gated(expiry_ms=500, remind_ms=100)
    at.cancel()
    assert at.run.reminders == {}
    at.feed(e.ApprovalReminded("g#1", name))
