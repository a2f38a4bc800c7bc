"""Requests that lose the owner of the folder half-way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_graph.cli.desk import Desk
from agent_graph.errors import StoreBusy
from agent_graph.settings import Settings, load
from agent_graph.tools.socket_wire import SOCKET_NAME, listening


@pytest.fixture
def settings(data_dir: Path, script: Path) -> Settings:
    data_dir.mkdir()
    return load({"data_dir": str(data_dir)}, environ={"AGENT_GRAPH_SCRIPT": str(script)})


@pytest.fixture
async def dying(settings: Settings, data_dir: Path) -> AsyncIterator[asyncio.Server]:
    """An owner that goes at its first request."""

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline():
            server.close()
        writer.close()

    server = await asyncio.start_unix_server(hear, sock=listening(data_dir / SOCKET_NAME))
    yield server
    server.close()


@pytest.mark.parametrize("command", ["call", "resume"])
async def test_what_may_be_asked_twice_is_answered_by_whoever_owns_the_folder_next(
    settings: Settings, dying: asyncio.Server, command: str
) -> None:
    async with Desk(settings, drives=False, remark=print) as desk:
        assert not desk.owns
        answer = await (desk.call("graph_list", {}) if command == "call" else desk.resume("run-x"))
        assert desk.owns
    assert answer.get("error_code") == (None if command == "call" else "RUN_NOT_FOUND")


async def test_what_may_not_be_asked_twice_is_not(settings: Settings, dying: asyncio.Server) -> None:
    async with Desk(settings, drives=False, remark=print) as desk:
        with pytest.raises(StoreBusy, match="before it answered"):
            await desk.call("graph_list", {}, again=False)
        assert (await desk.call("graph_list", {}, again=False))["ok"]
