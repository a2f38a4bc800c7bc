"""A limit on the size of files, as a quota or a full disk: runs read interrupted and go on when there is room."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.keys import keys_of
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.store.sqlite import open_store
from agent_graph.tools.socket_client import Owner
from tests.engine.room import opened
from tests.fakes.ollama_server import OllamaServer
from tests.process.test_chaos import Batch, Tally, at_once, check
from tests.process.test_fatal_points import NOWHERE, lives, respond

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

PROGRAM = Path(__file__).parent / "full_program.py"
ROOT = Path(__file__).parents[2]
TIGHT_BYTES = 220000
"""Room for the schema and the first steps of a run, not for all of it."""


async def set_aside(folder: Path) -> JsonObject:
    """Ask the owner until a run is set aside; its row."""
    owner = Owner(folder, "test")
    while True:
        try:
            answer = await owner.call("graph_run_list", {"status": ""})
        except ConnectionError:  # it is not there yet
            await asyncio.sleep(0.02)
            continue
        assert answer["ok"], answer
        for run in answer["data"]["runs"]:  # type: ignore[index,call-overload,union-attr]  # a list of rows
            if run["status"] == "interrupted":  # type: ignore[index,call-overload]  # as above
                return run  # type: ignore[return-value]  # as above
        await asyncio.sleep(0.02)  # another process: there is nothing to be woken by


@pytest.mark.parametrize("ends", ["goes on when there is room", "is killed while there is none"])
async def test_a_run_that_finds_no_room(tmp_path: Path, ends: str) -> None:
    batch = Batch(tmp_path / "data", ["long-1"])
    async with OllamaServer(responder=respond) as server, opened(ScriptedModel(at_once)) as room:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), str(TIGHT_BYTES), str(batch.folder), server.url, *batch.tags, cwd=ROOT,
            env={"PYTHONPATH": str(ROOT)}, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(60):
                row = await set_aside(batch.folder)
            assert row["error"]["code"] == "STORE_FULL"  # type: ignore[index,call-overload]  # an object
            batch.run_ids["long-1"] = str(row["run_id"])
            if ends.startswith("goes on"):
                out, err = await process.communicate(b"room\n")
                said = [json.loads(text)["event"] for text in out.splitlines()]
                assert said == ["ready", "started", "room", "ended"], err.decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if not ends.startswith("goes on"):
            assert await lives(NOWHERE, 0, batch.folder, server.url, batch.tags)
        await check(batch, server, room, Tally())
    async with await open_store(batch.folder / "agent-graph.db", ring=keys_of(batch.folder)) as store:
        assert (await store.runs.get(batch.run_ids["long-1"])).error is None
