"""The MCP Inspector, which validates answers as the TypeScript clients do, lists the tools and calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.acceptance.inspectors import Inspector, on_http, on_stdio
from tests.fakes.council import write_script
from tests.fakes.opened import opened
from tests.mcp_server.process import ROOT, SERVER
from tests.mcp_server.served import made, on_a_port
from tests.mcp_server.whole_path import CORE, walk
from tests.sizes import FULL, size

pytestmark = [pytest.mark.process, pytest.mark.timeout(size(180, 900))]

DOORS = {
    "0.15 on stdio": (False, "stdio", "legacy"),
    "2.12 on stdio": (True, "stdio", "legacy"),
    "2.12 on stdio, modern": (True, "stdio", "modern"),
    "0.15 on HTTP": (False, "http", "legacy"),
    "2.12 on HTTP": (True, "http", "legacy"),
    "2.12 on HTTP, modern": (True, "http", "modern"),
}


@asynccontextmanager
async def door(name: str, folder: Path) -> AsyncIterator[Inspector]:
    """An Inspector at one of the doors of a server with a scripted council."""
    newer, transport, era = DOORS[name]
    if transport == "stdio":
        script = write_script(folder / "script.json")
        environment = {"PYTHONPATH": str(ROOT), "AGENT_GRAPH_SCRIPT": str(script)}
        command = (*SERVER, "--data-dir", str(folder / "data"))
        yield on_stdio(command, folder, newer=newer, environment=environment, era=era)
    else:
        async with opened() as deps, on_a_port(made(deps, auth="none", rate="0")) as url:
            yield on_http(url, folder, newer=newer, era=era)


@pytest.mark.parametrize("name", DOORS)
async def test_it_lists_every_tool_without_a_finding_and_calls_core_ones(name: str, tmp_path: Path) -> None:
    async with door(name, tmp_path) as inspector:
        assert [tool["name"] for tool in await inspector.tools()] == list(CORE)
        if FULL:
            assert await walk(inspector) == set(CORE)
            return
        await inspector.ok("graph_create", template={"id": "parallel_council", "name": "council"})
        run_id = (await inspector.ok("graph_run_start", graph_id="council", input="Should we?"))["run_id"]
        waited = await inspector.ok("graph_run_wait", run_id=run_id)
        assert waited["status"] == "completed", waited
        assert await inspector.refused("graph_run_get", run_id="run-none") == "RUN_NOT_FOUND"
