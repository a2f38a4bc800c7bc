"""A process that dies at a named point, the first or a later time it gets there: the next goes on as if it had not."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_graph.core.limits import DEFAULTS
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import SystemClock
from agent_graph.engine.keys import keys_of, open_keys
from agent_graph.engine.receipts import issue
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.store import migrate
from agent_graph.store.sqlite import open_store
from tests.engine.room import Room, opened
from tests.fakes.ollama_server import OllamaServer, Request, Response, answer
from tests.process.fatal_program import ENDS, STATEMENTS
from tests.process.shapes import says
from tests.process.test_chaos import Batch, Tally, at_once, check
from tests.store.rows import begin

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

PROGRAM = Path(__file__).parent / "fatal_program.py"
ROOT = Path(__file__).parents[2]
NOWHERE = "nowhere"


async def respond(request: Request) -> Response:
    return answer(says(request.prompt), chunks=2)


@asynccontextmanager
async def model_and_room() -> AsyncIterator[tuple[OllamaServer, Room]]:
    async with OllamaServer(responder=respond) as server, opened(ScriptedModel(at_once)) as room:
        yield server, room


async def lives(point: str, nth: int, folder: Path, url: str, tags: Sequence[str]) -> bool:
    """Whether the process saw the end of its runs; else it died where it should."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), point, str(nth), str(folder), url, *tags, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        _, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode in (0, -9), err.decode()
    return process.returncode == 0


POINTS = [
    ("after the effect, before the commit", "fan_out", (1, 2, 3)),
    ("after the commit, before the acknowledgement", "gated", (1, 2, 1)),
    ("inside a commit", "nested", (1, 5, 9)),
    ("before its end", "loop", (3, 6, 9)),
    ("inside a snapshot", "long", (1, 1, 2)),
]


@pytest.mark.parametrize(("point", "shape", "times"), POINTS, ids=[point for point, _, _ in POINTS])
async def test_a_process_that_dies_there_three_times_in_a_row_loses_and_repeats_nothing(
    tmp_path: Path, point: str, shape: str, times: tuple[int, ...]
) -> None:
    async with model_and_room() as (server, room):
        batch = Batch(tmp_path / "data", [f"{shape}-1"])
        for nth in times:
            assert not await lives(point, nth, batch.folder, server.url, batch.tags)
            batch.kills += 1
        assert await lives(NOWHERE, 0, batch.folder, server.url, batch.tags)
        async with await open_store(batch.folder / "agent-graph.db", ring=keys_of(batch.folder)) as store:
            (row,) = (await store.runs.list())[0]
        batch.run_ids[batch.tags[0]] = row.run_id
        await check(batch, server, room, Tally())


@pytest.mark.parametrize("point", ENDS)
async def test_a_run_ends_and_is_sealed_at_once_or_not_at_all(tmp_path: Path, point: str) -> None:
    async with model_and_room() as (server, _):
        batch = Batch(tmp_path / "data", ["chain-1"])
        path = batch.folder / "agent-graph.db"
        assert not await lives(point, 1, batch.folder, server.url, batch.tags)
        with sqlite3.connect(path) as left:
            [(status, seal)] = left.execute("SELECT status, seal FROM runs").fetchall()
        left.close()
        assert (status == "completed") is (seal is not None) is (point == ENDS[2])
        assert await lives(NOWHERE, 0, batch.folder, server.url, batch.tags)
    async with await open_store(path, ring=keys_of(path.parent)) as store:
        (row,) = (await store.runs.list())[0]
        log = await store.seals.of(row.run_id)
        graph = await Catalog(store, clock=SystemClock(), limits=DEFAULTS).get(row.graph_id, row.graph_version)
    receipt = issue(graph, log, open_keys(batch.folder, now_ms=0)).receipt
    assert (receipt["status"], log.seal is not None) == ("completed", True)
    assert (log.seal or {})["late"] is False


@pytest.mark.parametrize("point", [name for name in STATEMENTS if "migration" in name])
async def test_a_process_that_dies_in_a_migration_leaves_the_schema_before_it(tmp_path: Path, point: str) -> None:
    folder = tmp_path / "data"
    async with model_and_room() as (server, room):
        batch = Batch(folder, ["chain-1"], kills=1)
        assert not await lives(point, 1, folder, server.url, batch.tags)
        with sqlite3.connect(folder / "agent-graph.db") as left:
            assert left.execute("SELECT name FROM sqlite_master").fetchall() == []
        left.close()
        assert await lives(NOWHERE, 0, folder, server.url, batch.tags)
        async with await open_store(folder / "agent-graph.db", ring=keys_of(folder)) as store:
            batch.run_ids["chain-1"] = (await store.runs.list())[0][0].run_id
        await check(batch, server, room, Tally())


async def test_a_folder_of_the_version_before_is_brought_forward_although_the_first_try_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data" / "agent-graph.db"
    files = migrate._files()
    async with await open_store(tmp_path / "now" / "agent-graph.db", ring=keys_of(tmp_path / "now")) as store:
        await begin(store, "run-of-old")
    with monkeypatch.context() as earlier:
        earlier.setattr(migrate, "_files", lambda: files[:1])
        async with await open_store(path, ring=keys_of(path.parent)):
            pass
    copied(tmp_path / "now" / "agent-graph.db", path)
    async with model_and_room() as (server, _):
        assert not await lives("inside a later migration", 1, path.parent, server.url, ["chain-1"])
        assert _version(path) == 1
        assert await lives(NOWHERE, 0, path.parent, server.url, ["chain-1"])
    assert _version(path) == len(files)
    async with await open_store(path, ring=keys_of(path.parent)) as store:
        assert [row.run_id for row in (await store.runs.list())[0]][1:] == ["run-of-old"]
        assert await store.runs.verify_chain("run-of-old") is None


def copied(source: Path, target: Path) -> None:
    """What `source` holds into an empty database of an earlier schema, as far as that has columns for it."""
    with sqlite3.connect(target) as connection:
        connection.execute("ATTACH ? AS source", (str(source),))
        tables = [name for (name,) in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
        for table in tables:
            names = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM source.{table}")
    connection.close()


def _version(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(version)
