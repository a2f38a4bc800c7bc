"""The tools as the SDK's own client sees them, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import MCPError

from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.mcp_server.instructions import INSTRUCTIONS
from tests.fakes.opened import opened
from tests.mcp_server.conftest import ERAS, connected
from tests.mcp_server.whole_path import CORE, walk
from tests.sizes import size
from tests.tools.specs import echo, keep


@pytest.mark.parametrize("era", ERAS)
async def test_a_council_and_two_decisions_with_every_tool_of_the_toolset(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        assert await walk(assistant) == set(CORE)


@pytest.mark.parametrize("era", ERAS)
async def test_the_client_is_told_how_to_work_with_it(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        client = assistant.client
        assert client.instructions == INSTRUCTIONS
        assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[era]
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == list(CORE)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("graph_run_start", {"graph_id": "nobody"}, "GRAPH_NOT_FOUND"),
        ("graph_run_start", {"graph_idd": "keep"}, "UNKNOWN_ARGUMENT"),
        ("graph_run_start", {}, "INVALID_ARGUMENT"),
        ("graph_run_start", {"graph_id": "keep", "input": {"__x": 1}}, "RESERVED_KEY"),
        ("graph_run_start", {"graph_id": "keep", "input": "x" * 10_000_000}, "INPUT_TOO_LARGE"),
        ("graph_run_get", {"run_id": "run-none"}, "RUN_NOT_FOUND"),
        ("graph_approval_get", {"approval_id": "apr-none"}, "APPROVAL_NOT_FOUND"),
        ("graph_create", {"spec": {"name": "x"}}, "SPEC_INVALID"),
        ("graph_create", {"action": "explode"}, "INVALID_ACTION"),
        ("graph_render", {}, "RENDER_SOURCE_REQUIRED"),
        ("graph_status", {"resource": "weather"}, "INVALID_RESOURCE"),
        ("graph_no_such_tool", {}, "TOOL_NOT_FOUND"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
async def test_MC02_a_refusal_fits_the_published_schema(era: str, tool: str, arguments: Any, code: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=keep())
        before = await deps.store.runs.counts()
        assert await assistant.refused(tool, **arguments) == code
        assert await deps.store.runs.counts() == before


@pytest.mark.parametrize("era", ERAS)
async def test_MC01_an_object_may_come_as_a_string(era: str) -> None:
    import json

    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=json.dumps(keep()))
        for given in ({"topic": "x"}, '{"topic": "x"}'):
            run = await assistant.ok("graph_run_start", graph_id="keep", input=given)
            await assistant.ok("graph_run_wait", run_id=run["run_id"])
            assert (await assistant.ok("graph_run_get", run_id=run["run_id"]))["final_state"] == {"topic": "x"}


async def test_integers_of_any_size_come_back_as_they_went() -> None:
    async with opened() as deps, connected(deps) as assistant:
        await assistant.ok("graph_create", spec=keep())
        run = await assistant.ok("graph_run_start", graph_id="keep", input={"n": 10**40, "x": 0.1})
        await assistant.ok("graph_run_wait", run_id=run["run_id"])
        assert (await assistant.ok("graph_run_get", run_id=run["run_id"]))["final_state"] == {"n": 10**40, "x": 0.1}


class Held:
    """A model that answers when it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.model = ScriptedModel(self._answer)

    async def _answer(self, call: CallModel) -> str:
        await self.go.wait()
        return "at last"


@pytest.mark.parametrize("era", ERAS)
async def test_MC05_progress_reaches_a_client_that_asked_for_it(era: str) -> None:
    held, told = Held(), []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        held.go.set()

    async with opened(held.model) as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=echo())
        run_id = (await assistant.ok("graph_run_start", graph_id="echo"))["run_id"]
        result = await assistant.client.call_tool("graph_run_wait", {"run_id": run_id}, progress_callback=tell)
        count = len(told)
        assert result.structured_content["data"]["status"] == "completed"
        assert told == sorted(set(told))
        assert told
        await assistant.ok("graph_status")
        assert len(told) == count


@pytest.mark.parametrize("era", ERAS)
async def test_MC04_a_client_that_gives_up_waiting_ends_the_wait_and_not_the_run(era: str) -> None:
    held = Held()
    async with opened(held.model) as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=echo())
        run_id = (await assistant.ok("graph_run_start", graph_id="echo"))["run_id"]
        with pytest.raises(MCPError):
            await assistant.client.call_tool("graph_run_wait", {"run_id": run_id}, read_timeout_seconds=0.05)
        assert len((await assistant.client.list_tools()).tools) == len(CORE)
        assert (await assistant.ok("graph_run_get", run_id=run_id))["status"] == "running"
        held.go.set()
        assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("era", ERAS)
async def test_MC04_cancelling_around_the_moment_of_the_answer_hurts_nobody(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=echo())
        for number in range(size(200, 2_000)):
            run_id = (await assistant.ok("graph_run_start", graph_id="echo", input=str(number)))["run_id"]
            waiting = asyncio.create_task(assistant.client.call_tool("graph_run_wait", {"run_id": run_id}))
            for _ in range(number % 40):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
        assert await deps.store.runs.counts() == {"completed": size(200, 2_000)}


async def test_five_waits_at_once_do_not_keep_others_from_an_answer() -> None:
    held = Held()
    async with opened(held.model) as deps, connected(deps) as assistant:
        await assistant.ok("graph_create", spec=echo())
        run_id = (await assistant.ok("graph_run_start", graph_id="echo"))["run_id"]
        waits = [asyncio.create_task(assistant.ok("graph_run_wait", run_id=run_id)) for _ in range(5)]
        await asyncio.sleep(0)
        assert (await assistant.ok("graph_run_get", run_id=run_id))["run_id"] == run_id
        assert not any(wait.done() for wait in waits)
        held.go.set()
        assert {one["status"] for one in await asyncio.gather(*waits)} == {"completed"}


async def test_the_run_remembers_which_client_started_it() -> None:
    from mcp.types import Implementation

    async with opened() as deps, connected(deps, "legacy", client_info=Implementation(name="desk", version="1")) as it:
        await it.ok("graph_create", spec=keep())
        run_id = (await it.ok("graph_run_start", graph_id="keep"))["run_id"]
        accepted = (await it.ok("graph_run_events", run_id=run_id))["events"][0]
        assert accepted["started_by"] == "desk"
