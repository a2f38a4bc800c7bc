"""The examples run with their scripts, through the tools, and give what their folders say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_graph import settings
from agent_graph.app import open_app
from agent_graph.tools import toolsets  # noqa: F401  (it fills the registry)
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import call
from tests.docs.driving import Drive, every_order, graph_of
from tests.docs.pages import ROOT

COUNCIL = ROOT / "examples" / "first_council"
QUESTION = "Should a team of five move to a four-day week?"
MEMBERS = ["advocate", "sceptic", "practitioner"]
SPECS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(COUNCIL.glob("council*.json"))}
EXPECTED = (COUNCIL / "expected.txt").read_text(encoding="utf-8")


def scripted(folder: Path) -> settings.Settings:
    return settings.load({"data_dir": ":memory:"}, environ={"AGENT_GRAPH_SCRIPT": str(folder / "script.json")})


async def told(deps: Deps, tool: str, **arguments: Any) -> Any:
    """The data of a tool's answer; a refusal fails the test."""
    answer: Any = await call(deps, tool, arguments, caller=Caller("cli", "tests"))
    assert answer["ok"], answer
    return answer["data"]


async def started(deps: Deps, name: str) -> str:
    made = await told(deps, "graph_create", spec=SPECS[name])
    assert made["issues"] == made["warnings"] == []
    return str((await told(deps, "graph_run_start", graph_id=made["graph_id"], input=QUESTION))["run_id"])


async def settled(deps: Deps, run_id: str) -> Any:
    waited = await told(deps, "graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    assert not waited["timed_out"]
    return await told(deps, "graph_run_get", run_id=run_id)


async def test_the_first_council_gives_the_expected_report() -> None:
    async with open_app(scripted(COUNCIL)) as deps:
        run = await settled(deps, await started(deps, "council"))
        assert run["status"] == "completed"
        assert run["final_state"] + "\n" == EXPECTED
        assert run["usage"]["llm_calls"] == 4


async def test_its_members_are_asked_together() -> None:
    async with open_app(scripted(COUNCIL)) as deps:
        run_id = await started(deps, "council")
        await settled(deps, run_id)
        events = (await told(deps, "graph_run_events", run_id=run_id, cursor=0))["events"]
        calls = [(each["type"], each["node_id"]) for each in events if each.get("node_id") in MEMBERS]
        assert {kind for kind, _ in calls[:3]} == {"node_started"}
        assert {node for _, node in calls[:3]} == set(MEMBERS)


@pytest.mark.parametrize(("decisions", "status"), [
    (["approve"], "completed"), (["request_changes", "approve"], "completed"), (["reject"], "failed"),
])  # fmt: skip
async def test_the_council_with_a_gate_waits_for_a_person(decisions: list[str], status: str) -> None:
    async with open_app(scripted(COUNCIL)) as deps:
        run_id = await started(deps, "council_with_gate")
        for decision in decisions:
            assert (await settled(deps, run_id))["status"] == "waiting"
            (approval,) = (await told(deps, "graph_approval_list", run_id=run_id))["approvals"]
            await told(
                deps, "graph_approval_decide", approval_id=approval["approval_id"], decision=decision,
                decision_note="name the months", decided_by="Kim",
            )  # fmt: skip
        run = await settled(deps, run_id)
        assert run["status"] == status
        if "request_changes" in decisions:
            assert run["final_state"].startswith("Try it for three months, from March to May")
        if status == "failed":
            assert run["error"]["code"] == "APPROVAL_REJECTED"


@pytest.mark.parametrize("name", SPECS)
def test_the_order_in_which_members_answer_changes_nothing(name: str) -> None:
    made = graph_of(SPECS[name])
    records = [drive.record_of_run for drive in every_order(lambda: Drive(made, QUESTION))]
    assert len(records) == 6
    assert all(record == records[0] for record in records)


async def test_the_citing_graph_is_told_where_its_words_stand_and_cites_what_was_captured() -> None:
    folder = ROOT / "examples" / "cite"
    given = json.loads((folder / "input.json").read_text(encoding="utf-8"))
    assert given["source"] == (folder / "bridge.md").read_text(encoding="utf-8")
    async with open_app(scripted(folder)) as deps:
        witness = await told(
            deps, "graph_source_witness_capture", locator="examples/cite/bridge.md", content=given["source"],
            media_type="text/markdown", authority_class="local_primary_capture", retrieved_at="2026-01-31T12:00:00Z",
        )  # fmt: skip
        assert witness["witness_id"] == given["witness_id"]
        made = await told(deps, "graph_create", spec=json.loads((folder / "cite.json").read_text(encoding="utf-8")))
        assert made["issues"] == made["warnings"] == []
        started = await told(deps, "graph_run_start", graph_id="cite", input=given)
        run = await settled(deps, started["run_id"])
        assert run["status"] == "completed"
        assert run["usage"]["llm_calls"] == 2
        quotes = [claim["quote"] for claim in run["final_state"]["claims"]]
        assert all(quote in given["source"] for quote in quotes)
