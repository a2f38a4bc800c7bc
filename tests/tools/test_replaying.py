"""graph_run_replay: which recorded runs would go another way, and whether a record holds by itself."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.fakes.opened import Tools, opened
from tests.specs import gate, llm, put, router, rule, spec
from tests.tools.test_checkpoints import long


def triage(threshold: int = 10, **more: Any) -> dict[str, Any]:
    """Small sums are noted, large ones looked at."""
    return spec(
        llm("read", "Read {text}"), router("size", rule("sum", "lt", threshold, "note"), default=["look"]),
        llm("note", "Note {text}", output_key="said"), llm("look", "Look at {text}", output_key="said"),
        edges="read>size note>END look>END", output_key="said", name="triage", **more,
    )  # fmt: skip


@pytest.fixture
async def model() -> ScriptedModel:
    return ScriptedModel([], default=Reply(text="fine"))


async def test_of_twenty_recorded_runs_exactly_those_are_listed_whose_way_changes(
    tools: Tools, model: ScriptedModel
) -> None:
    await tools.ok("graph_create", spec=triage())
    runs = {(await tools.ended("triage", {"text": "t", "sum": n}))["run_id"]: n for n in range(20)}
    assert len(model.calls) == 40
    asked = len(model.calls)
    differ = {}
    for run_id, number in runs.items():
        same = await tools.ok("graph_run_replay", run_id=run_id)
        assert same["same"], same
        other = await tools.ok("graph_run_replay", run_id=run_id, spec=triage(threshold=7))
        if not other["same"]:
            differ[number] = other
    assert sorted(differ) == [7, 8, 9]
    one = differ[8]
    assert one["divergence"]["node_id"] == "size"
    assert one["divergence"]["recorded"]["targets"] == ["note"]
    assert one["divergence"]["instead"]["targets"] == ["look"]
    assert one["unanswered"] == [{"node_path": "look#1", "why": "the recorded answer is not there"}]
    assert len(model.calls) == asked, "a model was asked"


async def test_a_changed_prompt_is_told_although_the_way_is_the_same(tools: Tools) -> None:
    await tools.ok("graph_create", spec=triage())
    run_id = (await tools.ended("triage", {"text": "t", "sum": 1}))["run_id"]
    changed = triage()
    changed["nodes"][0]["config"]["prompt"] = "Read this: {text}"
    await tools.ok("graph_create", spec=changed, overwrite=True)
    told = await tools.ok("graph_run_replay", run_id=run_id, graph_id="triage")
    assert (told["same"], told["asked_otherwise"], told["unanswered"]) == (True, ["read#1"], [])


async def test_what_ends_otherwise_says_how(tools: Tools) -> None:
    await tools.ok("graph_create", spec=triage())
    run_id = (await tools.ended("triage", {"text": "t" * 3000, "sum": 1}))["run_id"]
    broken = spec(
        llm("read", "Read {text}"), put("size", big="x" * 3000), llm("note", "{missing}", output_key="said"),
        edges="read>size size>note note>END", output_key="said", name="triage",
    )  # fmt: skip
    broken["input_schema"] = {"type": "object", "properties": {"missing": {}}}
    told = await tools.ok("graph_run_replay", run_id=run_id, spec=broken)
    assert (told["status"], told["error"]["code"]) == ("failed", "PROMPT_VALUE_MISSING")
    assert set(told["divergence"]["instead"]) >= {"type", "digest"}


async def test_a_record_is_checked_against_itself(tmp_path: Path) -> None:
    async with opened(folder=tmp_path) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=long())
        run_id = (await tools.ended("long", {"text": "x", "items": []}))["run_id"]
        held = await tools.ok("graph_run_replay", run_id=run_id, level="verify")
        assert held["same"]
        assert held["checks"] == {"chain": True, "follows": True, "row": True, "snapshot": True}
        assert held["record_digest"].startswith("sha256:")
        with sqlite3.connect(tmp_path / "agent-graph.db") as other:
            ((number, body),) = other.execute(
                "SELECT event_no, body FROM events WHERE body LIKE '%node_finished%' LIMIT 1"
            ).fetchall()
            changed = {**json.loads(body), "writes": [["operand", ["items"], ["y"]]]}
            other.execute("UPDATE events SET body = ? WHERE event_no = ?", (json.dumps(changed), number))
        other.close()
        for level in ("verify", "replay"):  # nothing of a log that does not hold together is told
            refusal = await tools.refused("graph_run_replay", run_id=run_id, level=level)
            assert (refusal["error_code"], "writes" in json.dumps(refusal)) == ("STORE_CORRUPT", False)


async def test_a_waiting_run_is_the_same_and_waits(tools: Tools) -> None:
    await tools.ok("graph_create", spec=spec(gate("g"), edges="g>END", name="asks"))
    run_id = await tools.run("asks", "x")
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    told = await tools.ok("graph_run_replay", run_id=run_id)
    assert (told["same"], told["status"]) == (True, "waiting")
    assert (await tools.ok("graph_run_replay", run_id=run_id, level="verify"))["checks"]["snapshot"] == "none"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"run_id": "run-none"}, "RUN_NOT_FOUND"),
        ({"graph_id": "triage", "spec": triage()}, "SOURCE_AMBIGUOUS"),
        ({"spec": {"name": "x", "entry": "no", "nodes": []}}, "SPEC_INVALID"),
        ({"graph_id": "nobody"}, "GRAPH_NOT_FOUND"),
        ({"level": "rerun"}, "INVALID_ARGUMENT"),
    ],
)
async def test_what_cannot_be_replayed_is_refused(tools: Tools, arguments: Any, code: str) -> None:
    await tools.ok("graph_create", spec=triage())
    run_id = (await tools.ended("triage", {"text": "t", "sum": 1}))["run_id"]
    assert (await tools.refused("graph_run_replay", **{"run_id": run_id} | arguments))["error_code"] == code


async def test_a_pruned_run_cannot_be_replayed_nor_its_state_be_told(tools: Tools) -> None:
    await tools.ok("graph_create", spec=triage())
    run_id = (await tools.ended("triage", {"text": "t", "sum": 1}))["run_id"]
    await tools.ok("graph_store_prune", run_ids=[run_id])
    for name, more in (("graph_run_replay", {}), ("graph_run_state", {"at": 3})):
        assert (await tools.refused(name, run_id=run_id, **more))["error_code"] == "RUN_PRUNED"
