"""What a gate asks of whoever decides it: another person, more of them, another channel, the very subject they saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_graph.engine import approvers
from agent_graph.tools.deps import Caller, local_user
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools, opened
from tests.tools.specs import gated

REWRITE = [{"op": "replace", "path": "", "value": "Dear Eve"}]


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def tools(hands: Hands) -> AsyncIterator[Tools]:
    async with opened(clock=hands) as deps:
        yield Tools(deps)


async def waiting(tools: Tools, spec: dict[str, Any] | None = None, **config: Any) -> Any:
    """The approval of a run that waits at one gate."""
    await tools.ok("graph_create", spec=spec or gated(**config), overwrite=True)
    run_id = await tools.run("gated", {"draft": "Dear Dana"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    return (await tools.ok("graph_approval_list", run_id=run_id))["approvals"][0]


def through(tools: Tools, via: Any, **who: Any) -> Tools:
    return Tools(tools.deps, Caller(via, who.pop("client", "another program"), **who))


def vote(shown: Any, by: str, decision: str = "approve", **more: Any) -> dict[str, Any]:
    return {"approval_id": shown["approval_id"], "decision": decision, "decided_by": by, **more}


async def test_two_of_three_have_to_approve_and_nobody_counts_twice(tools: Tools) -> None:
    shown = await waiting(tools, quorum=2)
    assert shown["quorum"] == 2
    first = await tools.ok("graph_approval_decide", **vote(shown, "Ada"))
    assert (first["approval"]["status"], first["run"]["status"]) == ("pending", "waiting")
    again = await tools.refused("graph_approval_decide", **vote(shown, "ada"))
    assert again["error_code"] == "APPROVAL_ALREADY_VOTED"
    second = await through(tools, "console").ok("graph_approval_decide", **vote(shown, "Bob"))
    assert second["approval"]["status"] == "approved"
    assert [(one["decided_by"], one["via"]) for one in second["approval"]["votes"]] == [
        ("Ada", "assistant"), ("Bob", "console"),
    ]  # fmt: skip
    late = await tools.refused("graph_approval_decide", **vote(shown, "Carl"))
    assert late["error_code"] == "APPROVAL_ALREADY_DECIDED"


async def test_one_who_is_against_ends_the_vote(tools: Tools) -> None:
    shown = await waiting(tools, quorum=3, on_reject="continue")
    await tools.ok("graph_approval_decide", **vote(shown, "Ada"))
    decided = await tools.ok("graph_approval_decide", **vote(shown, "Bob", "reject"))
    assert decided["approval"]["status"] == "rejected"


async def test_ten_deciders_over_three_channels_and_one_wins(tools: Tools) -> None:
    shown = await waiting(tools, on_reject="continue")
    doors = [through(tools, via) for via in ("assistant", "console", "cli")]
    answers = await asyncio.gather(
        *(
            doors[n % 3].envelope("graph_approval_decide", **vote(shown, f"P{n}", ("approve", "reject")[n % 2]))
            for n in range(10)
        )
    )
    (won,) = [answer["data"] for answer in answers if answer["ok"]]
    lost = [answer for answer in answers if not answer["ok"]]
    assert [answer["error_code"] for answer in lost] == ["APPROVAL_ALREADY_DECIDED"] * 9
    assert all(answer["details"]["decision"] == won["approval"]["decision"] for answer in lost)  # type: ignore[index,call-overload]
    waited = await tools.ok("graph_run_wait", run_id=shown["run_id"])
    assert len([event for event in waited["events"] if event["type"] == "approval_decided"]) == 1


async def test_whoever_started_the_run_does_not_decide_it(tools: Tools) -> None:
    shown = await waiting(tools, self_approval=False)
    assert shown["self_approval"] is False
    for door, by in (
        (tools, "Ada"),  # the program that started it
        (through(tools, "elicitation", client=tools.caller.client), "Ada"),
        (through(tools, "cli"), local_user()),  # whoever it runs as
        (through(tools, "cli", principal=local_user()), "Ada"),
    ):
        refusal = await door.refused("graph_approval_decide", **vote(shown, by))
        assert refusal["error_code"] == "APPROVAL_SELF_DECISION"
    proxy = await through(tools, "cli").refused(
        "graph_approval_decide", **vote(shown, "Ada", on_behalf_of=local_user())
    )
    assert proxy["error_code"] == "APPROVAL_SELF_DECISION"
    decided = await through(tools, "cli").ok("graph_approval_decide", **vote(shown, "Ada", on_behalf_of="Bob"))
    assert decided["approval"]["votes"][0]["on_behalf_of"] == "Bob"


async def test_an_authenticated_starter_does_not_decide_under_another_name(tools: Tools) -> None:
    ann = Tools(tools.deps, Caller("assistant", "a client", principal="ann"))
    shown = await waiting(ann, self_approval=False)
    refusal = await ann.refused("graph_approval_decide", **vote(shown, "Somebody else"))
    assert refusal["error_code"] == "APPROVAL_SELF_DECISION"
    bob = Tools(tools.deps, Caller("assistant", "a client", principal="bob"))
    assert (await bob.ok("graph_approval_decide", **vote(shown, "Bob")))["approval"]["status"] == "approved"


async def test_a_gate_closed_to_models_takes_no_plain_call_and_says_who_can(tools: Tools) -> None:
    shown = await waiting(tools, channels=["elicitation", "console", "cli"])
    refusal = await tools.refused("graph_approval_decide", **vote(shown, "Ada"))
    assert refusal["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
    assert f"agent-graph approvals decide {shown['approval_id']}" in refusal["details"]["how_to_decide"]
    assert "no model can" in shown["how_to_decide"]
    assert (await through(tools, "cli").ok("graph_approval_decide", **vote(shown, "Ada")))["run"]


@pytest.mark.parametrize("via", ["cli", "console"])
async def test_at_a_closed_gate_a_shell_or_a_browser_proves_a_person_once_somebody_can(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, via: Any
) -> None:
    monkeypatch.setattr(approvers, "_COST", {"n": 2**4, "r": 8, "p": 1})
    book = approvers.Approvers(tmp_path)
    with_book = Tools(replace(tools.deps, approvers=book))
    shown = await waiting(with_book, channels=["elicitation", "console", "cli"])
    await book.add(approvers.Proof("ada", "correct horse"), voucher=None, now_ms=0)
    refusal = await through(with_book, via).refused("graph_approval_decide", **vote(shown, "Ada"))
    assert (refusal["error_code"], refusal["details"]["approvers"]) == ("APPROVER_REQUIRED", ["ada"])
    (tmp_path / approvers.FILE_NAME).write_text("damaged", encoding="utf-8")
    damaged = await through(with_book, via).refused("graph_approval_decide", **vote(shown, "Ada"))
    assert damaged["error_code"] == "STORE_UNUSABLE"
    decided = await through(with_book, via, approver="ada").ok("graph_approval_decide", **vote(shown, "Ada"))
    assert decided["approval"]["votes"][0]["principal"] == "ada"


async def test_where_a_console_is_served_its_page_is_named(tools: Tools) -> None:
    served = Tools(replace(tools.deps, console="http://127.0.0.1:8765"))
    shown = await waiting(served, channels=["console", "cli"])
    assert f"http://127.0.0.1:8765/approvals/{shown['approval_id']}" in shown["how_to_decide"]
    got = await served.ok("graph_approval_get", approval_id=shown["approval_id"])
    assert got["approval"]["how_to_decide"] == shown["how_to_decide"]
    refusal = await served.refused("graph_approval_decide", **vote(shown, "Ada"))
    assert f"http://127.0.0.1:8765/approvals/{shown['approval_id']}" in refusal["details"]["how_to_decide"]


async def test_an_edit_goes_on_in_place_of_the_subject(tools: Tools) -> None:
    shown = await waiting(
        tools, allowed_decisions=["approve", "edit"], subject_schema={"type": "string", "maxLength": 9}
    )
    assert shown["subject_schema"] == {"type": "string", "maxLength": 9}
    decided = await tools.ok("graph_approval_decide", **vote(shown, "Ada", "edit", patch=REWRITE))
    approval = decided["approval"]
    assert (approval["subject"], approval["original_subject"]) == ("Dear Eve", "Dear Dana")
    assert approval["votes"][0]["patch"] == REWRITE
    assert approval["decision"]["decision"] == "edit"
    run = await tools.ok("graph_run_wait", run_id=shown["run_id"])
    assert run["status"] == "completed"
    state = await tools.ok("graph_run_state", run_id=shown["run_id"], path="/draft")
    assert state["value"] == "Dear Eve"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"decision": "edit"}, "APPROVAL_EDIT_INVALID"),
        ({"decision": "edit", "patch": [{"op": "remove", "path": "/nothing"}]}, "APPROVAL_EDIT_INVALID"),
        ({"decision": "edit", "patch": [{"op": "replace", "path": "", "value": 3}]}, "APPROVAL_EDIT_INVALID"),
        ({"decision": "edit", "patch": REWRITE * 101}, "INVALID_ARGUMENT"),
        ({"decision": "edit", "patch": "remove it"}, "INVALID_ARGUMENT"),
        ({"decision": "approve", "patch": REWRITE}, "INVALID_ARGUMENT"),
        ({"decision": "approve", "subject_digest": "sha256:0"}, "APPROVAL_STALE"),
    ],
)
async def test_refused_and_nothing_is_changed(tools: Tools, more: dict[str, Any], code: str) -> None:
    shown = await waiting(tools, allowed_decisions=["approve", "edit"], subject_schema={"type": "string"})
    refusal = await tools.refused("graph_approval_decide", **{**vote(shown, "Ada"), **more})
    assert refusal["error_code"] == code


async def test_a_patch_sent_as_a_text_is_read(tools: Tools) -> None:
    shown = await waiting(tools, allowed_decisions=["edit"])
    text = '[{"op": "replace", "path": "", "value": "Dear Eve"}]'
    decided = await tools.ok("graph_approval_decide", **vote(shown, "Ada", "edit", patch=text))
    assert decided["approval"]["subject"] == "Dear Eve"


async def test_a_gate_of_many_asks_anew_for_what_one_of_them_edited(tools: Tools) -> None:
    shown = await waiting(tools, allowed_decisions=["approve", "edit"], quorum=2)
    await tools.ok("graph_approval_decide", **vote(shown, "Ada"))
    edited = await tools.ok("graph_approval_decide", **vote(shown, "Bob", "edit", patch=REWRITE))
    assert edited["approval"]["status"] == "pending"
    stale = await tools.refused("graph_approval_decide", **vote(shown, "Ada", subject_digest=shown["subject_digest"]))
    assert stale["error_code"] == "APPROVAL_STALE"
    now = edited["approval"]["subject_digest"]
    assert stale["details"]["subject_digest"] == now
    decided = await tools.ok("graph_approval_decide", **vote(shown, "Ada", subject_digest=now))
    assert decided["approval"]["status"] == "approved"


async def test_a_gate_tells_of_its_end_beforehand_and_then_goes_where_it_is_told_to(tools: Tools, hands: Hands) -> None:
    spec = gated(expiry_ms=60_000, remind_ms=5_000, on_expire={"goto": ["late"]})
    spec["nodes"].append({"id": "late", "type": "passthrough"})
    shown = await waiting(tools, spec)
    run_id = shown["run_id"]

    async def at(moment_ms: int, kind: str) -> list[str]:
        hands.at_ms = 1_800_000_000_000 + moment_ms
        tools.deps.supervisor.shell.notify.gates.set()
        seen: list[str] = []
        while kind not in seen:
            got = await tools.ok("graph_run_events", run_id=run_id, cursor=len(seen), wait_ms=2_000)
            seen += [event["type"] for event in got["events"]]
        return seen

    assert "approval_expired" not in await at(55_000, "approval_reminded")
    told = await at(60_000, "run_completed")
    assert told.count("approval_reminded") == told.count("approval_expired") == 1
    assert (await tools.ok("graph_approval_get", approval_id=shown["approval_id"]))["approval"]["status"] == "expired"
    run = await tools.ok("graph_run_get", run_id=run_id)
    assert run["final_state"]["decision"] == "expired"
