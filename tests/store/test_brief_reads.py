"""Which thread a read is made on: a look-up by key on the loop's own while reading is prompt, and never out of turn."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

from agent_graph.store.sqlite import open_store
from tests.store.rows import begin

LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT count(*) FROM n"


def state_of(file: Path) -> tuple[bytes, int]:
    return file.read_bytes(), file.stat().st_mtime_ns


def where(_: sqlite3.Connection) -> int:
    return threading.get_ident()


async def test_a_brief_read_is_made_here_and_any_other_on_the_readers_thread(path: Path) -> None:
    async with await open_store(path) as store:
        assert await store.database.read(where, brief=True) == threading.get_ident()
        assert await store.database.read(where) != threading.get_ident()


async def test_after_a_slow_read_brief_ones_are_made_on_the_readers_thread_until_some_were_prompt(path: Path) -> None:
    async with await open_store(path) as store:
        await store.database.read(lambda connection: connection.execute(LONG).fetchone())
        assert await store.database.read(where, brief=True) != threading.get_ident()
        for _ in range(10_000):
            if await store.database.read(where, brief=True) == threading.get_ident():
                break
        else:
            raise AssertionError("the loop's thread is never used again")


async def test_a_brief_read_waits_for_the_read_that_is_under_way_and_keeps_the_loop_free(path: Path) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    order: list[str] = []

    def held(_: sqlite3.Connection) -> None:
        begun.set()
        goes_on.wait()
        order.append("held")

    def behind(connection: sqlite3.Connection) -> int:
        order.append("behind")
        return where(connection)

    async with await open_store(path) as store:
        first = asyncio.create_task(store.database.read(held))
        await asyncio.to_thread(begun.wait)
        second = asyncio.create_task(store.database.read(behind, brief=True))
        asyncio.get_running_loop().call_soon(goes_on.set)  # after the second has asked; a loop that waits never does it
        await first
        assert await second != threading.get_ident()
    assert order == ["held", "behind"]


async def test_a_brief_read_sees_what_was_committed_before_it(path: Path) -> None:
    async with await open_store(path) as store:
        for number in range(20):
            await begin(store, f"run-{number}")
            assert (await store.runs.get(f"run-{number}")).status == "running"


async def test_opening_a_folder_that_is_there_writes_nothing(path: Path) -> None:
    await (await open_store(path)).aclose()
    before = state_of(path)
    async with await open_store(path) as store:
        assert state_of(path.with_name(path.name + "-wal"))[0] == b""
        assert await store.runs.counts() == {}
    assert state_of(path) == before
