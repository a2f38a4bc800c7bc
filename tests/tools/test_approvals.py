"""graph_approval_list, _get, _decide: what a person is shown, what a decision does, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.hands import Hands
from tests.fakes.opened import Tools, opened
from tests.tools.specs import gated, keep

APPROVAL = {
    "approval_id", "run_id", "graph_id", "graph_version", "node_id", "node_path", "audience", "prompt", "subject",
    "subject_digest", "allowed_decisions", "quorum", "channels", "status", "created_at_ms", "expires_at_ms", "votes",
}  # fmt: skip


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def tools(hands: Hands) -> AsyncIterator[Tools]:
    async with opened(clock=hands) as deps:
        yield Tools(deps)


async def _pending(tools: Tools, **config: Any) -> Any:
    """The approval of a run that waits."""
    await tools.ok("graph_create", spec=gated(**config), overwrite=True)
    run_id = await tools.run("gated", {"draft": "Dear Dana", "secret_plan": "x"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    return (await tools.ok("graph_approval_list", run_id=run_id))["approvals"][0]


async def test_an_approval_shows_what_would_happen_and_nothing_else(tools: Tools) -> None:
    shown = await _pending(tools, audience=["ops"])
    assert set(shown) == APPROVAL | {"how_to_decide"}
    assert (shown["prompt"], shown["subject"], shown["status"]) == ("May this be sent?", "Dear Dana", "pending")
    assert (shown["node_id"], shown["audience"]) == ("gate", ["ops"])
    assert "secret_plan" not in str(shown)
    assert (await tools.ok("graph_approval_get", approval_id=shown["approval_id"]))["approval"] == shown


@pytest.mark.parametrize(
    ("decision", "status"), [("approve", "approved"), ("reject", "rejected"), ("request_changes", "changes_requested")]
)
async def test_a_decision_is_recorded_and_the_run_goes_on(tools: Tools, decision: str, status: str) -> None:
    allowed = ["approve", "reject", "request_changes"]
    shown = await _pending(tools, allowed_decisions=allowed, on_reject="continue", on_request_changes="continue")
    answer = await tools.ok(
        "graph_approval_decide", approval_id=shown["approval_id"], decision=decision, decided_by="Ada",
        decision_note="because",
    )  # fmt: skip
    assert set(answer) == {"run_id", "approval", "run"}
    assert answer["run"]["run_id"] == shown["run_id"]
    decided = answer["approval"]
    assert set(decided) == APPROVAL | {"decision", "closed_at_ms"}
    assert decided["status"] == status
    (vote,) = decided["votes"]
    assert vote == {
        "decision": decision, "decision_note": "because", "decided_by": "Ada", "via": "assistant",
        "subject_digest": shown["subject_digest"], "at_ms": 1_800_000_000_000,
    }  # fmt: skip
    waited = await tools.ok("graph_run_wait", run_id=shown["run_id"])
    assert waited["status"] == "completed"
    listed = await tools.ok("graph_approval_list", status=status)
    assert [row["approval_id"] for row in listed["approvals"]] == [shown["approval_id"]]
    assert (await tools.ok("graph_approval_list"))["approvals"] == []


async def test_a_second_decision_is_refused_and_shows_the_first(tools: Tools) -> None:
    shown = await _pending(tools)
    decide = {"approval_id": shown["approval_id"], "decision": "approve", "decided_by": "Ada"}
    await tools.ok("graph_approval_decide", **decide)
    await tools.ok("graph_run_wait", run_id=shown["run_id"])
    refusal = await tools.refused("graph_approval_decide", **{**decide, "decided_by": "Bob"})
    assert refusal["error_code"] == "APPROVAL_ALREADY_DECIDED"
    assert "Ada" in str(refusal["details"]["decision"])


async def test_of_two_decisions_at_once_one_counts(tools: Tools) -> None:
    shown = await _pending(tools, on_reject="continue")
    envelopes = await asyncio.gather(
        *(
            tools.envelope("graph_approval_decide", approval_id=shown["approval_id"], decision=word, decided_by=who)
            for word, who in (("approve", "Ada"), ("reject", "Bob"))
        )
    )
    assert sorted(str(envelope.get("error_code", "ok")) for envelope in envelopes) == ["APPROVAL_ALREADY_DECIDED", "ok"]
    waited = await tools.ok("graph_run_wait", run_id=shown["run_id"])
    decided = [event for event in waited["events"] if event["type"] == "approval_decided"]
    assert len(decided) == 1


async def test_a_decision_the_gate_does_not_allow_is_refused(tools: Tools) -> None:
    shown = await _pending(tools, allowed_decisions=["approve"])
    refusal = await tools.refused(
        "graph_approval_decide", approval_id=shown["approval_id"], decision="reject", decided_by="Ada"
    )
    assert refusal["error_code"] == "APPROVAL_DECISION_NOT_ALLOWED"
    assert refusal["details"]["allowed_decisions"] == ["approve"]


async def test_an_approval_whose_time_is_over_reads_expired_and_takes_no_decision(tools: Tools, hands: Hands) -> None:
    shown = await _pending(tools, expiry_ms=60_000)
    hands.at_ms += 60_000
    assert (await tools.ok("graph_approval_get", approval_id=shown["approval_id"]))["approval"]["status"] == "expired"
    assert (await tools.ok("graph_approval_list"))["approvals"] == []
    refusal = await tools.envelope(
        "graph_approval_decide", approval_id=shown["approval_id"], decision="approve", decided_by="Ada"
    )
    assert refusal["error_code"] == "APPROVAL_EXPIRED"


async def test_an_approval_of_a_cancelled_run_is_withdrawn(tools: Tools) -> None:
    shown = await _pending(tools)
    await tools.ok("graph_run_cancel", run_id=shown["run_id"], reason="enough")
    await tools.ok("graph_run_wait", run_id=shown["run_id"])
    refusal = await tools.refused(
        "graph_approval_decide", approval_id=shown["approval_id"], decision="approve", decided_by="Ada"
    )
    assert refusal["error_code"] == "APPROVAL_WITHDRAWN"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("graph_approval_get", {"approval_id": "apr-none"}, "APPROVAL_NOT_FOUND"),
        ("graph_approval_get", {}, "INVALID_ARGUMENT"),
        (
            "graph_approval_decide",
            {"approval_id": "apr-none", "decision": "approve", "decided_by": "Ada"},
            "APPROVAL_NOT_FOUND",
        ),
        ("graph_approval_decide", {"approval_id": "apr-none", "decision": "approve"}, "INVALID_ARGUMENT"),
        (
            "graph_approval_decide",
            {"approval_id": "apr-none", "decision": "maybe", "decided_by": "A"},
            "INVALID_ARGUMENT",
        ),
        ("graph_approval_list", {"status": "open"}, "INVALID_ARGUMENT"),
        ("graph_approval_list", {"limit": 201}, "INVALID_ARGUMENT"),
        ("graph_approval_list", {"cursor": "x"}, "INVALID_ARGUMENT"),
    ],
)
async def test_refused(tools: Tools, tool: str, arguments: dict[str, Any], code: str) -> None:
    assert (await tools.refused(tool, **arguments))["error_code"] == code


async def test_lists_page_and_filter_by_audience(tools: Tools) -> None:
    ops = await _pending(tools, audience=["ops"])
    legal = await _pending(tools, audience=["legal"])
    first = await tools.ok("graph_approval_list", limit=1)
    assert [row["approval_id"] for row in first["approvals"]] == [ops["approval_id"]]
    assert first["truncated"] is True
    rest = await tools.ok("graph_approval_list", cursor=first["next_cursor"])
    assert [row["approval_id"] for row in rest["approvals"]] == [legal["approval_id"]]
    for_legal = await tools.ok("graph_approval_list", audience="legal")
    assert [row["approval_id"] for row in for_legal["approvals"]] == [legal["approval_id"]]
    assert (await tools.ok("graph_approval_list", run_id="run-none"))["approvals"] == []


async def test_what_is_refused_to_a_run_that_never_was_changes_no_other(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run = await tools.ended("keep")
    assert run["pending_approvals"] == []
