"""Fan-out over data through the public door: maps, gates inside items, cancelling, a restart in the middle."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, asked, opened
from tests.scenarios.test_graphs_inside import refusals
from tests.specs import Json, gate, join, llm, node, passthrough, spec, subgraph


def each(node_id: str, path: str, entry: str = "", last: str = "", **config: Any) -> Json:
    named = {name: value for name, value in (("entry", entry), ("join", last)) if value}
    return node(node_id, "parallel", for_each={"path": path}, **named, **config)


MAP_REDUCE = spec(
    each("map", "parts", "draft", "take", output_key="drafts"), llm("draft", "draft {item}"),
    join("take", ["draft"], mode="first_non_null"), llm("reduce", "reduce {drafts|json}", output_key="said"),
    edges="draft>take take>reduce reduce>END", output_key="said",
)  # fmt: skip


async def test_each_part_is_drafted_once_and_the_drafts_go_on_in_their_order() -> None:
    model = ScriptedModel(Gates(answer="done"))
    async with opened(model) as room:
        row = await room.run(MAP_REDUCE, {"parts": ["b", "a", "c"]})
        assert row.final_state == ('done: reduce ["done: draft b","done: draft a","done: draft c"]',)
        events = (await room.data("graph_run_events", run_id=row.run_id, limit=100))["events"]
        inside = [one for one in events if one.get("node_path") == "map#1[1]/draft#1"]
        assert {one["node_id"] for one in inside} == {"draft"}
        assert (await room.data("graph_run_get", run_id=row.run_id))["skipped"] == []
        drawn = await room.data("graph_render", run_id=row.run_id)
        assert "draft" in drawn["text"]


async def test_an_item_that_failed_is_told_of_the_run_and_drawn() -> None:
    graph = spec(
        each("map", "parts", "draft", "take", fail_policy="collect_partial"), llm("draft", "draft {item}"),
        join("take", ["draft"], mode="first_non_null"), edges="draft>take",
    )  # fmt: skip
    broken: Json = {"code": "MODEL_REFUSED", "message": "not this one"}
    async with opened(ScriptedModel([Reply(when="draft b", error=broken)], default=Reply("fine"))) as room:
        row = await room.run(graph, {"parts": ["a", "b", "c"]})
        got = await room.data("graph_run_get", run_id=row.run_id)
        assert (got["status"], [*got["errors"]]) == ("completed", ["map"])
        assert got["errors"]["map"]["code"] == "ITEMS_FAILED"
        assert got["errors"]["map"]["message"].startswith("1 of 3 items failed (first: MODEL_REFUSED ")
        assert "ran 3 times, 1 failed" in (await room.data("graph_render", run_id=row.run_id))["text"]


async def test_an_empty_list_goes_on_and_what_is_no_list_fails_with_a_code() -> None:
    async with opened(ScriptedModel([Reply("fine")])) as room:
        empty = await room.run(MAP_REDUCE, {"parts": []})
        assert empty.status == "completed"
        assert (await room.data("graph_run_get", run_id=empty.run_id))["skipped"] == ["draft", "take"]
        row = await room.run(MAP_REDUCE, {"parts": "abc"})
        assert row.error is not None
        assert (row.status, row.error["code"], row.error["node_id"]) == ("failed", "FOR_EACH_NOT_A_LIST", "map")


async def test_finished_items_are_not_made_again_after_a_restart_in_the_middle(tmp_path: Path) -> None:
    gates = Gates("draft c")
    async with opened(ScriptedModel(gates), tmp_path) as room:
        run_id = await room.start(MAP_REDUCE, {"parts": ["a", "b", "c"]})
        await gates.reached("draft c")
        await room.supervisor.wait(run_id, timeout_ms=5_000, until=lambda row: row.seq > 12)
    second = ScriptedModel(Gates())
    async with opened(second, tmp_path) as room:
        row = await room.ended(run_id)
        assert (row.status, row.final_state) == (
            "completed", ('fine: reduce ["fine: draft a","fine: draft b","fine: draft c"]',)
        )  # fmt: skip
    assert asked(second, "draft a", "draft b", "draft c", "reduce") == [0, 0, 1, 1]


@pytest.mark.parametrize("restarted", [False, True])
async def test_gates_inside_items_wait_side_by_side_and_each_knows_its_item(tmp_path: Path, restarted: bool) -> None:
    graph = spec(
        each("map", "parts", "draft", "ok", output_key="said"), llm("draft", "draft {item}"),
        gate("ok", prompt="{item}?"), edges="draft>ok ok>END", output_key="said",
    )  # fmt: skip
    model = ScriptedModel([Reply("fine")])
    async with opened(model, tmp_path) as room:
        run_id = await room.start(graph, {"parts": ["a", "b"]})
        await room.reaches(run_id, "waiting")
        if not restarted:
            await decide_both(room, run_id)
    if restarted:
        async with opened(model, tmp_path) as room:
            await decide_both(room, run_id)
    assert asked(model, "draft") == [2]


async def decide_both(room: Any, run_id: str) -> None:
    pending = {one["node_path"]: one for one in await room.pending(run_id)}
    assert {path: one["prompt"] for path, one in pending.items()} == {"map#1[0]/ok#1": "a?", "map#1[1]/ok#1": "b?"}
    for path, by in (("map#1[1]/ok#1", "Bo"), ("map#1[0]/ok#1", "Ada")):
        assert (await room.decide(pending[path]["approval_id"], decided_by=by))["ok"]
    (said,) = (await room.ended(run_id)).final_state
    assert [one["by"] for one in said] == ["Ada", "Bo"]


async def test_cancelling_closes_the_calls_of_all_items() -> None:
    gates = Gates("draft a", "draft b")
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(MAP_REDUCE, {"parts": ["a", "b"]})
        await asyncio.gather(gates.reached("draft a"), gates.reached("draft b"))
        await room.data("graph_run_cancel", run_id=run_id, reason="enough")
        assert (await room.ended(run_id)).status == "cancelled"
        await room.at_rest()
        assert sorted(gates.cancelled) == ["draft a", "draft b"]
        cancelled = [fact.firing for fact in await room.facts(run_id, e.FiringCancelled)]
        assert cancelled == ["map#1[0]/draft#1", "map#1[1]/draft#1", "map#1"]


async def test_a_failed_item_closes_the_calls_of_the_others_and_the_run_says_which_it_was() -> None:
    gates = Gates("draft a")

    async def answer(call: Any) -> Any:
        if "draft b" in str(call.messages):
            await gates.reached("draft a")
            return Reply(error={"code": "MODEL_NOT_FOUND", "message": "no such model"})
        return await gates(call)

    async with opened(ScriptedModel(answer)) as room:
        row = await room.run(MAP_REDUCE, {"parts": ["a", "b"]})
        assert row.error is not None
        assert (row.status, row.error["node_path"]) == ("failed", "map#1[1]/draft#1")
        await room.at_rest()
        assert gates.cancelled == ["draft a"]


async def test_a_graph_runs_for_each_item_inside_a_graph_inside() -> None:
    inner = spec(llm("a", "{input}"), edges="a>END", name="inner")
    middle = spec(each("m", "", graph_name="inner"), edges="m>END", name="middle")
    async with opened(ScriptedModel(Gates(answer="r"))) as room:
        await room.create(inner)
        await room.create(middle)
        row = await room.run(spec(subgraph("s", "middle"), edges="s>END"), ["x", "y"])
        assert row.final_state == (["r: x", "r: y"],)
        assert [path for path, _ in await room.started(row.run_id)][:3] == ["s#1", "s#1/m#1", "s#1/m#1[0]/a#1"]


async def test_what_runs_for_an_item_has_one_way_in_and_one_way_out() -> None:
    open_ = spec(
        passthrough("s"), each("map", "parts", "draft", "take"), llm("draft"), join("take", ["draft"]),
        edges="s>map s>draft draft>take take>END",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        assert "REGION_NOT_CLOSED" in await refusals(room, open_)
