"""Requests that lose the owner of the folder half-way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_graph.cli.desk import Desk
from agent_graph.errors import OwnerSettingsDiffer, StoreBusy
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


@pytest.mark.parametrize("drives", [True, False])
async def test_a_flag_that_the_owner_is_not_set_up_with_is_refused_and_a_variable_is_remarked_on_by_who_drives(
    data_dir: Path, script: Path, drives: bool
) -> None:
    remarks: list[str] = []
    with_script = load({"data_dir": str(data_dir)}, environ={"AGENT_GRAPH_SCRIPT": str(script)})
    by_variable = load({"data_dir": str(data_dir)}, environ={"AGENT_GRAPH_PROVIDER": "embedded"})
    by_flag = load({"data_dir": str(data_dir), "model": "other"}, environ={"AGENT_GRAPH_SCRIPT": str(script)})
    async with Desk(with_script, drives=True, remark=print) as owner:
        async with Desk(by_variable, drives=drives, remark=remarks.append) as desk:
            assert not desk.owns
        with pytest.raises(OwnerSettingsDiffer, match="model is '' there and 'other' here \\(--model\\)"):
            await Desk(by_flag, drives=drives, remark=remarks.append).open()
        async with Desk(by_flag, drives=drives, remark=remarks.append, sends=("model",)) as desk:
            assert (await desk.call("graph_list", {}))["ok"]
        assert owner.owns
    said = f"process {os.getpid()} owns the data folder, and its settings hold: provider is 'scripted' there and "
    assert remarks == ([said + "'embedded' here (AGENT_GRAPH_PROVIDER)"] if drives else [])


async def test_what_may_not_be_asked_twice_is_not(settings: Settings, dying: asyncio.Server) -> None:
    async with Desk(settings, drives=False, remark=print) as desk:
        with pytest.raises(StoreBusy, match="before it answered"):
            await desk.call("graph_list", {}, again=False)
        assert (await desk.call("graph_list", {}, again=False))["ok"]
