"""The operator's tools: a pin, an export, a pruning; and how a pruned run reads afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.retention import DAY_MS, Policy, Retention, plan
from agent_graph.tools.registry import TOOLS
from agent_graph.tools.toolsets import ORDER, shown
from tests.fakes.opened import Tools, opened
from tests.specs import gate, llm, passthrough, spec

LINE = spec(llm("say", "say {input}", output_key="said"), edges="say>END", output_key="said", name="line")
GATED = spec(passthrough("s"), gate("h"), edges="s>h h>END", name="gated")


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.ms


async def ran(tools: Tools, count: int = 1) -> list[str]:
    """Ids of `count` runs that have ended, the first first."""
    await tools.envelope("graph_create", spec=LINE)
    return [(await tools.ended("line", f"word {number}"))["run_id"] for number in range(count)]


async def test_an_assistant_is_shown_none_of_them() -> None:
    ours = {name for name, tool in TOOLS.items() if tool.toolset == "operator"}
    assert ours == {
        "graph_run_pin", "graph_run_export", "graph_store_prune", "graph_template_promote", "graph_token_create",
        "graph_token_list", "graph_token_revoke", "graph_run_replay",
    }  # fmt: skip
    assert not ours & {tool.name for tool in shown(["core"])}
    assert not ours & set(ORDER)


async def test_a_pruned_run_keeps_its_result_and_says_that_its_events_are_gone() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        (run_id,) = await ran(tools)
        before = await tools.ok("graph_run_get", run_id=run_id)
        count = (await tools.ok("graph_run_events", run_id=run_id))["next_cursor"]
        pruned = await tools.ok("graph_store_prune", run_ids=[run_id])
        assert [run["run_id"] for run in pruned["runs"]] == [run_id]
        assert pruned["kept"] == []
        after = await tools.ok("graph_run_get", run_id=run_id, include_state=True)
        assert after == {**{k: v for k, v in before.items() if k != "skipped"}, "pruned": True}
        page = await tools.ok("graph_run_events", run_id=run_id)
        assert page["events"] == []
        assert (page["gap"], page["dropped"], page["next_cursor"], page["truncated"]) == (True, count, count, False)
        at_end = await tools.ok("graph_run_events", run_id=run_id, cursor=count, wait_ms=1_000)
        assert (at_end["gap"], at_end["dropped"]) == (False, 0)
        waited = await tools.ok("graph_run_wait", run_id=run_id)
        assert (waited["terminal"], waited["events"], waited["next_cursor"]) == (True, [], count)
        for name, more in (("graph_run_state", {}), ("graph_render", {}), ("graph_run_export", {})):
            refused = await tools.refused(name, run_id=run_id, **more)
            assert refused["error_code"] == "RUN_PRUNED", name
        assert (await tools.ok("graph_run_cancel", run_id=run_id, reason="late"))["terminal"]


async def test_reproduction_17_a_key_used_again_after_pruning_gives_the_original_answer() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        await ran(tools)
        asked: JsonObject = {"graph_id": "line", "input": "once", "idempotency_key": "k"}
        first = await tools.ok("graph_run_start", **asked)
        await tools.ok("graph_run_wait", run_id=first["run_id"])
        await tools.ok("graph_store_prune", run_ids=[first["run_id"]])
        assert await tools.ok("graph_run_start", **asked) == first
        other = await tools.refused("graph_run_start", **{**asked, "input": "another"})
        assert other["error_code"] == "IDEMPOTENCY_CONFLICT"
        await tools.ok("graph_store_prune", run_ids=[first["run_id"]], forget=True)
        assert (await tools.ok("graph_run_start", **asked))["run_id"] != first["run_id"]
        assert (await tools.refused("graph_run_get", run_id=first["run_id"]))["error_code"] == "RUN_NOT_FOUND"


async def test_reproduction_20_no_pass_ever_touches_a_graph() -> None:
    time = Time()
    async with opened(clock=time) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=LINE)
        graphs = await tools.ok("graph_list")
        time.ms += 10_000 * DAY_MS
        assert await Retention(deps.store, time, Policy(1, 1, 1)).apply() == ()
        assert await tools.ok("graph_list") == graphs
        (run_id,) = await ran(tools)
        time.ms += 10_000 * DAY_MS
        assert await Retention(deps.store, time, Policy(1, 1, 1)).apply() == (run_id,)
        assert (await tools.ended("line", "again"))["status"] == "completed"


async def test_what_waits_lives_or_is_pinned_is_kept_and_named() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        (pinned,) = await ran(tools)
        await tools.ok("graph_create", spec=GATED)
        waiting = await tools.run("gated")
        await tools.ok("graph_run_wait", run_id=waiting, until="waiting")
        assert await tools.ok("graph_run_pin", run_id=pinned) == {"run_id": pinned, "pinned": True, "changed": True}
        assert (await tools.ok("graph_run_get", run_id=pinned))["pinned"]
        answer = await tools.ok("graph_store_prune", run_ids=[pinned, waiting])
        assert (answer["runs"], answer["kept"]) == ([], sorted([pinned, waiting]))
        assert not (await tools.ok("graph_run_events", run_id=waiting))["gap"]
        assert (await tools.ok("graph_run_pin", run_id=pinned, pinned=False))["changed"]
        assert len((await tools.ok("graph_store_prune", run_ids=[pinned], dry_run=True))["runs"]) == 1
        assert not (await tools.ok("graph_run_events", run_id=pinned))["gap"]


async def test_each_bound_takes_the_runs_that_ended_first() -> None:
    time = Time()
    async with opened(clock=time) as deps:
        tools = Tools(deps)
        run_ids = []
        for _ in range(4):
            run_ids += await ran(tools)
            time.ms += DAY_MS

        async def chosen(**bounds: int) -> list[str]:
            planned = await plan(deps.store, Policy(**bounds), now_ms=time.ms)
            return [run.run_id for run in planned.runs]

        assert await chosen(days=4) == []
        assert await chosen(days=3) == run_ids[:1]
        assert await chosen(days=1) == run_ids[:3]
        assert await chosen(runs=3) == run_ids[:1]
        assert await chosen(runs=9) == []
        used = (await deps.store.retention.space()).used_bytes
        weight = await deps.store.retention.weigh(run_ids[0])
        assert await chosen(bytes=used) == []
        assert await chosen(bytes=used - weight - 1) == run_ids[:2]
        assert await chosen(bytes=1) == run_ids
        assert await chosen(days=3, runs=2) == run_ids[:2]
        assert await chosen() == []


async def test_a_policy_is_kept_to_while_the_folder_is_open() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        run_ids = await ran(tools, 3)
        retention = Retention(deps.store, deps.clock, Policy(runs=1))
        retention.watch()
        async with asyncio.timeout(10):
            while not (await deps.store.runs.get(run_ids[1])).first_seq:  # noqa: ASYNC110  (no event tells of it)
                await asyncio.sleep(0)
        await retention.stop()
        pruned = [bool((await deps.store.runs.get(run_id)).first_seq) for run_id in run_ids]
        assert pruned == [True, True, False]


async def test_an_export_holds_everything_there_is() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=GATED)
        run_id = await tools.run("gated", {"topic": "x"})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        (pending,) = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]
        decided = {"approval_id": pending["approval_id"], "decision": "approve", "decided_by": "Ada"}
        await tools.ok("graph_approval_decide", **decided)
        await tools.ok("graph_run_wait", run_id=run_id)
        document: Any = await Tools(deps).ok("graph_run_export", run_id=run_id)
        assert document["format"] == "agent-graph-run/1"
        assert document["run"]["status"] == "completed"
        assert [event["seq"] for event in document["events"]] == list(range(document["run"]["seq"]))
        assert [gate["status"] for gate in document["approvals"]] == ["approved"]
        version = document["graph"]["graph_version"]
        graph = await deps.store.graphs.get("gated", version)
        assert document["graph"]["spec"] == graph.spec
        assert document["run"]["graph_version"] == version


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("graph_store_prune", {}, "INVALID_ARGUMENT"),
        ("graph_store_prune", {"days": -1}, "INVALID_ARGUMENT"),
        ("graph_store_prune", {"forget": True}, "INVALID_ARGUMENT"),
        ("graph_store_prune", {"run_ids": ["run-x"]}, "RUN_NOT_FOUND"),
        ("graph_run_pin", {"run_id": "run-x"}, "RUN_NOT_FOUND"),
        ("graph_run_export", {"run_id": "run-x"}, "RUN_NOT_FOUND"),
    ],
)
async def test_what_cannot_be_done_is_refused_and_changes_nothing(name: str, arguments: Any, code: str) -> None:
    async with opened() as deps:
        tools = Tools(deps)
        await ran(tools)
        assert (await tools.refused(name, **arguments))["error_code"] == code
