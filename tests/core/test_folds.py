"""What single facts change in a run: input, usage, gates."""

from __future__ import annotations

import pytest

from agent_graph.core import events as e
from agent_graph.core.folds import FOLDS, spread
from agent_graph.core.run import Usage
from tests.core.played import accepted, compiled, gate, llm, plain, play


def test_an_input_object_is_spread_into_top_level_keys_and_is_the_current_value() -> None:
    at = accepted(compiled([plain("a")]), {"k": 1, "": 2})
    assert at.run.frame is not None
    assert at.run.frame.state.whole(0) == {"k": 1, "": 2}
    assert at.run.frame.state.base_current == at.run.input == {"k": 1, "": 2}


@pytest.mark.parametrize("value", ["text", None, [1], 3])
def test_any_other_input_is_the_current_value_alone(value: object) -> None:
    assert spread(compiled([plain("a")]), value) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({}, ["a", "a.b", "a.b.c"]),
        ({"output_key": "a"}, ["a.b", "a.b.c", "g"]),
        ({"output_key": "a.b"}, ["a.b.c", "g"]),
        ({"output_key": "/a.b/c"}, ["a", "a.b.c", "g"]),
    ],
)
def test_what_a_gate_writes_is_not_trusted_in_the_input(config: dict[str, str], kept: list[str]) -> None:
    value = {"a": {}, "a.b": 1, "a.b.c": 2, "g": 3}
    assert sorted(spread(compiled([gate("g", **config)]), value)) == kept  # type: ignore[arg-type]


def test_a_gate_whose_id_has_dots_writes_one_flat_key() -> None:
    assert spread(compiled([gate("a.b")]), {"a": 1, "a.b": 2}) == {"a": 1}


def test_usage_is_counted_from_facts_and_tokens_nobody_told_are_counted_apart() -> None:
    at = play(compiled([llm("a"), llm("b")], "a>b"))
    at.answer("a#1", prompt_tokens=3, completion_tokens=0).answer("b#1", prompt_tokens=4)
    assert at.run.usage == Usage(llm_calls=2, prompt_tokens=7, completion_tokens=0, unreported=1, nodes=2)


def test_times_come_from_events_alone() -> None:
    at = play(compiled([plain("a")]))
    assert (at.run.accepted_at_ms, at.run.started_at_ms, at.run.finished_at_ms) == (1_000, 1_000, 1_000)


def test_a_gate_holds_what_was_asked_and_how_it_ended() -> None:
    at = play(compiled([gate("g", expiry_ms=500, audience="legal")]))
    (open_,) = at.run.open_approvals
    assert (open_.opened_at_ms, open_.expires_at_ms, open_.audience, open_.node_id) == (1_000, 1_500, ("legal",), "g")
    at.at_ms = 1_200
    at.feed(e.ApprovalVoted("g#1", open_.approval_id, {"decision": "approve"})).vote("g#1", "approve", note="ok")
    assert open_.votes == [{"decision": "approve", "at_ms": 1_200}]
    assert (open_.status, open_.decision) == (
        "approved", {"decision": "approve", "note": "ok", "by": "ann", "via": "cli", "at_ms": 1_200},
    )  # fmt: skip


def test_a_gate_is_decided_once() -> None:
    at = play(compiled([gate("g", on_reject="continue"), gate("h")], "g>h"))
    (first,) = at.run.open_approvals
    at.vote("g#1", "reject")
    at.go(e.ApprovalDecided("g#1", first.approval_id, "approve", "", "eve", "cli"))
    at.go(e.ApprovalExpired("g#1", first.approval_id), e.ApprovalWithdrawn("g#1", first.approval_id, "late"))
    assert first.status == "rejected"
    assert [one.firing for one in at.run.open_approvals] == ["h#1"]


def test_every_round_of_a_gate_is_a_new_approval_and_an_old_yes_opens_no_later_one() -> None:
    at = play(compiled([gate("g")]))
    (first,) = at.run.open_approvals
    at.vote("g#1", "request_changes")
    (second,) = at.run.open_approvals
    assert (first.round, second.round) == (1, 2)
    assert first.approval_id != second.approval_id
    at.go(e.ApprovalDecided("g#1", first.approval_id, "approve", "", "ann", "cli"))
    assert at.run.status == "waiting"
    assert at.vote("g#1", "approve").run.status == "completed"


def test_an_expired_gate_reads_expired_and_fails_the_run() -> None:
    at = play(compiled([gate("g")])).expire("g#1")
    assert at.run.error is not None
    assert ([one.status for one in at.run.gates.values()], at.run.error["code"]) == (["expired"], "APPROVAL_EXPIRED")


def test_an_approval_decided_while_the_run_ends_changes_only_the_gate() -> None:
    at = play(compiled([plain("s"), gate("g"), llm("a")], "s>g s>a", output_key="g"))
    (open_,) = at.run.open_approvals
    at.feed(e.FiringCancelled("g#1", "over"), e.ApprovalDecided("g#1", open_.approval_id, "approve", "", "x", "cli"))
    assert open_.status == "approved"
    assert at.run.firing("g#1") is None


def test_every_fact_has_a_fold() -> None:
    assert set(FOLDS) == set(e.FACTS.values())
