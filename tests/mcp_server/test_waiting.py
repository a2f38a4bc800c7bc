"""Long work: bounded waits with signs of life, and nothing a client does about its call reaches the run."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from mcp import MCPError, types

from agent_graph.core.limits import DEFAULTS
from agent_graph.tools import waiting
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import ERAS, connected
from tests.mcp_server.test_server import Held
from tests.mcp_server.wire import wired
from tests.tools.specs import echo, gated


@pytest.mark.parametrize("era", ERAS)
async def test_a_wait_shows_signs_of_life_though_nothing_moves(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert waiting.PROGRESS_MS <= 10_000
    monkeypatch.setattr(waiting, "PROGRESS_MS", 20)
    monkeypatch.setattr(waiting, "PAUSE_MS", 5)
    held, told = Held(), []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        if len(told) == 5:
            held.go.set()

    async with opened(held.model) as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=echo())
        run_id = (await assistant.ok("graph_run_start", graph_id="echo"))["run_id"]
        result = await assistant.client.call_tool("graph_run_wait", {"run_id": run_id}, progress_callback=tell)
        assert result.structured_content["data"]["status"] == "completed"
        assert len(told) >= 5
        assert told == sorted(set(told))


async def test_signs_of_life_rise_also_over_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that the clock wakes is waited for in several stretches; their signs are one row."""
    spec = {
        "spec_version": "2", "name": "naps", "entry": "nap",
        "nodes": [{"id": "nap", "type": "timer", "config": {"delay_ms": 40}},
                  {"id": "again", "type": "timer", "config": {"delay_ms": 40}}],
        "edges": [{"from": "nap", "to": "again"}],
    }  # fmt: skip
    monkeypatch.setattr(waiting, "PAUSE_MS", 0)
    monkeypatch.setattr(waiting, "PROGRESS_MS", 5)
    told: list[float] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with opened() as deps, connected(deps) as assistant:
        await assistant.ok("graph_create", spec=spec)
        run_id = (await assistant.ok("graph_run_start", graph_id="naps"))["run_id"]
        await assistant.client.call_tool(
            "graph_run_wait", {"run_id": run_id, "until": "waiting"}, progress_callback=tell
        )
        assert told == sorted(set(told)) != []


@pytest.mark.parametrize("era", ERAS)
async def test_MC05_progress_is_sent_for_a_token_and_for_nothing_else(era: str) -> None:
    async with opened() as deps, wired(deps, era) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated())
        run_id = await tools.run("gated", {"draft": "x"})
        await wire.call(1, "graph_run_wait", run_id=run_id, timeout_ms=30)
        await wire.answer(1)
        assert wire.progress() == []
        await wire.call(2, "graph_run_wait", {"progressToken": "p"}, run_id=run_id, timeout_ms=30)
        await wire.answer(2)
        told = wire.progress()
        assert {one["progressToken"] for one in told} == {"p"}
        await wire.call(3, "graph_run_list")
        await wire.answer(3)
        assert wire.progress() == told, "none after the answer"


@pytest.mark.parametrize("era", ERAS)
async def test_MC05_what_takes_longer_hands_back_its_run_id(era: str) -> None:
    held = Held()
    async with opened(held.model, limits=replace(DEFAULTS, wait_ms=50)) as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=echo())
        answer = await assistant.ok("graph_execute", graph_id="echo")
        assert (answer["timed_out"], answer["status"], answer["terminal"]) == (True, "running", False)
        waited = await assistant.ok("graph_run_wait", run_id=answer["run_id"], timeout_ms=600_000)
        assert (waited["status"], waited["timed_out"]) == ("timeout", True)
        held.go.set()
        assert (await Tools(deps).ended("echo"))["status"] == "completed"


@pytest.mark.parametrize("era", ERAS)
async def test_MC05_others_are_answered_while_calls_wait(era: str) -> None:
    held = Held()
    async with opened(held.model) as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=echo())
        waits = [asyncio.create_task(assistant.ok("graph_execute", graph_id="echo"))]
        (run,) = await _runs(assistant, 1)
        waits += [asyncio.create_task(assistant.ok("graph_run_wait", run_id=run["run_id"])) for _ in range(5)]
        assert (await assistant.ok("graph_run_get", run_id=run["run_id"]))["status"] in ("accepted", "running")
        if era == "legacy":
            await assistant.client.session.send_request(types.PingRequest(), types.EmptyResult)
        assert not any(one.done() for one in waits)
        held.go.set()
        assert {one["status"] for one in await asyncio.gather(*waits)} == {"completed"}


async def _runs(assistant: Any, count: int) -> list[Any]:
    """The runs as soon as there are `count`."""
    while True:
        rows: list[Any] = (await assistant.ok("graph_run_list"))["runs"]
        if len(rows) == count:
            return rows


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tool", ["graph_run_wait", "graph_execute", "graph_run_events"])
async def test_MC04_a_client_that_gives_up_or_goes_leaves_the_run_alone(era: str, tool: str) -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        arguments: dict[str, Any] = {"graph_id": "echo"}
        if tool == "graph_run_wait":
            arguments = {"run_id": await tools.run("echo"), "timeout_ms": 40_000}
        elif tool == "graph_run_events":
            arguments = {"run_id": await tools.run("echo"), "wait_ms": 40_000, "cursor": 1_000}
        async with connected(deps, era) as assistant:
            with pytest.raises(MCPError):
                await assistant.client.call_tool(tool, arguments, read_timeout_seconds=0.05)
            (run,) = await _runs(assistant, 1)
        run_id = run["run_id"]
        async with wired(deps, era) as wire:
            again = arguments if tool != "graph_execute" else {"run_id": run_id}
            await wire.call(1, tool if tool != "graph_execute" else "graph_run_wait", **again)
            await wire.call(2, "graph_run_get", run_id=run_id)
            await wire.answer(2)
        assert (await tools.ok("graph_run_get", run_id=run_id))["status"] == "running"
        held.go.set()
        assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


@pytest.mark.parametrize("era", ERAS)
async def test_MC04_nothing_is_answered_to_a_call_that_was_cancelled(era: str) -> None:
    async with opened() as deps, wired(deps, era) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated())
        run_id = await tools.run("gated", {"draft": "x"})
        await wire.call(7, "graph_run_wait", {"progressToken": 7}, run_id=run_id, timeout_ms=20_000)
        await wire.call(8, "graph_run_get", run_id=run_id)
        await wire.answer(8)
        await wire.send("notifications/cancelled", requestId=7)
        await wire.send("notifications/cancelled", requestId=99)
        count = len(wire.progress())
        await wire.call(9, "graph_run_get", run_id=run_id)
        got = await wire.answer(9)
        assert json.loads(got["result"]["content"][0]["text"])["data"]["status"] == "waiting"
        await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
        await wire.call(10, "graph_run_wait", run_id=run_id)
        await wire.answer(10)
        assert 7 not in [message.get("id") for message in wire.seen]
        assert len(wire.progress()) <= count + 1
