"""Writers share transactions, and nobody fails for another; memory and file alike."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Literal

import pytest

from agent_graph.errors import RunNotFound, SequenceConflict, StoreBusy, StoreCorrupt, StoreFull, StoreUnusable
from agent_graph.store.base import Commit
from agent_graph.store.connection import on_thread
from agent_graph.store.sqlite import SqliteStore, open_store
from agent_graph.store.sqlite_errors import store_error
from tests.store.rows import answered, begin, events, run, start, step


async def test_commits_made_at_once_share_a_transaction(path: Path) -> None:
    store = await open_store(path)
    await begin(store, *(f"run-{number}" for number in range(200)))
    before = store.database.transactions
    for seq in (1, 3, 5):
        await asyncio.gather(*(store.runs.commit(step(seq, f"run-{number}")) for number in range(200)))
    assert store.database.transactions - before <= 6  # one goes ahead, the others follow together
    assert await store.runs.counts() == {"running": 200}
    for number in range(200):
        assert await store.runs.verify_chain(f"run-{number}") is None
    await store.aclose()


@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_a_run_alone_has_one_transaction_for_each_commit(
    path: Path, synchronous: Literal["full", "normal"]
) -> None:
    store = await open_store(path, synchronous=synchronous)
    await begin(store, "run-1")
    before = store.database.transactions
    for seq in (1, 3, 5):
        await store.runs.commit(step(seq))
    assert store.database.transactions - before == 3
    assert await store.runs.verify_chain("run-1") is None
    await store.aclose()


async def test_one_refused_commit_does_not_sink_the_others_of_its_group(store: SqliteStore) -> None:
    await begin(store, *(f"run-{number}" for number in range(6)))
    bug = Commit(run("run-5"), 1, (), snapshot="text where bytes belong")  # type: ignore[arg-type]
    commits = [step(1, "run-0"), step(9, "run-1"), step(1, "nobody"), start("run-2"), step(1, "run-3"), bug]
    results = await asyncio.gather(*map(store.runs.commit, commits), return_exceptions=True)
    kinds = [type(result) for result in results]
    assert kinds == [int, SequenceConflict, RunNotFound, SequenceConflict, int, TypeError]
    assert [(await store.runs.get(f"run-{number}")).seq for number in range(6)] == [3, 1, 1, 3, 1, 1]
    assert await store.runs.verify_chain("run-3") is None


async def test_half_of_a_refused_commit_is_not_left_behind_in_its_group(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM events")
        connection.execute("INSERT INTO requests VALUES ('key', '', '{}', 'no such run', '')")

    lead, broken, other = await asyncio.gather(
        store.runs.commit(step(1, "run-1")),
        store.database.write(half),
        store.runs.commit(step(1, "run-2")),
        return_exceptions=True,
    )
    assert (type(lead), type(other)) == (int, int)
    assert isinstance(broken, sqlite3.IntegrityError)
    assert await store.runs.verify_chain("run-1") is None
    assert await store.runs.verify_chain("run-2") is None
    assert await store.requests.get("key") is None


async def test_of_two_writers_of_one_run_one_wins(store: SqliteStore) -> None:
    await begin(store, "run-1")
    for seq in (1, 3, 5, 7):
        attempts = (store.runs.commit(step(seq, note=number)) for number in range(5))
        results = await asyncio.gather(*attempts, return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["SequenceConflict"] * 4 + ["int"]
    assert (await store.runs.get("run-1")).seq == 9
    assert await store.runs.verify_chain("run-1") is None


async def test_a_commit_that_was_refused_can_be_made_again(store: SqliteStore) -> None:
    await begin(store, "run-1")
    with pytest.raises(SequenceConflict):
        await store.runs.commit(step(5))
    await store.runs.commit(step(1))
    await store.runs.commit(step(3))
    assert await store.runs.verify_chain("run-1") is None


async def test_a_cancelled_caller_holds_nobody_up(path: Path) -> None:
    store = await open_store(path)
    await begin(store, "run-1", "run-2", "run-3")
    tasks = [asyncio.create_task(store.runs.commit(step(1, f"run-{number}"))) for number in (1, 2, 3)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # the one on its way to the disk
    tasks[1].cancel()  # one that waits
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError, asyncio.CancelledError, int]
    assert (await store.runs.get("run-2")).seq == 1  # it had not begun
    assert (await store.runs.get("run-3")).seq == 3
    row = await store.runs.get("run-1")
    await store.runs.commit(step(row.seq, "run-1"))
    assert await store.runs.verify_chain("run-1") is None
    await store.aclose()


async def test_closing_finishes_what_is_queued(path: Path) -> None:
    store = await open_store(path)
    await begin(store, *(f"run-{number}" for number in range(20)))
    commits = [asyncio.create_task(store.runs.commit(step(1, f"run-{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    await store.aclose()
    await store.aclose()
    await asyncio.gather(*commits)
    async with await open_store(path) as again:
        rows, _ = await again.runs.list()
        assert {row.seq for row in rows} == {3}


@pytest.mark.parametrize("place", ["memory", "file"])
async def test_a_closed_store_leaves_no_thread_and_no_sidecar_file(path: Path, place: str) -> None:
    before = set(threading.enumerate())
    store = await open_store(":memory:" if place == "memory" else path)
    await begin(store, "run-1")
    await store.runs.get("run-1")
    assert set(threading.enumerate()) > before
    await store.aclose()
    assert set(threading.enumerate()) == before
    assert [file.name for file in path.parent.glob("*")] == ([path.name] if place == "file" else [])


async def test_a_full_disk_is_said_and_nothing_is_written(path: Path) -> None:
    store = await open_store(path)
    await begin(store, "run-1", "run-2", "run-3")

    def limit(connection: sqlite3.Connection, *, spare: int) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + spare}")

    await on_thread(store.database._writer, lambda connection: limit(connection, spare=2))
    for _ in range(2):
        with pytest.raises(StoreFull, match="No space is left") as refused:
            await store.runs.commit(step(1, note="x" * 100_000))
        assert (refused.value.code, refused.value.retryable) == ("STORE_FULL", True)
    large = (store.runs.commit(step(1, name, note="x" * 100_000)) for name in ("run-1", "run-2"))
    results = await asyncio.gather(*large, store.runs.commit(step(1, "run-3")), return_exceptions=True)
    assert [type(result) for result in results] == [StoreFull, StoreFull, int]
    assert [(await store.runs.get(name)).seq for name in ("run-1", "run-2", "run-3")] == [1, 1, 3]
    await on_thread(store.database._writer, lambda connection: limit(connection, spare=1_000))
    await store.runs.commit(step(1, note="x" * 100_000))
    assert await store.runs.verify_chain("run-1") is None
    await store.aclose()


async def test_a_database_held_by_another_program_is_busy_and_can_be_read(path: Path) -> None:
    async with await open_store(path) as store:
        await begin(store, "run-1", "run-2", "run-3")
        await on_thread(store.database._writer, lambda connection: connection.execute("PRAGMA busy_timeout = 30"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        commits = [store.runs.commit(step(1, name)) for name in ("run-1", "run-2", "run-3")]
        results = await asyncio.gather(*commits, return_exceptions=True)
        assert [type(result) for result in results] == [StoreBusy] * 3
        assert {(result.code, result.retryable) for result in results} == {("STORE_BUSY", True)}  # type: ignore[union-attr]
        assert (await store.runs.get("run-1")).seq == 1
        other.execute("ROLLBACK")
        other.close()
        await store.runs.commit(step(1, "run-1"))


@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_a_writer_waits_for_another_program_while_readers_do_not(
    path: Path, synchronous: Literal["full", "normal"]
) -> None:
    async with await open_store(path, synchronous=synchronous) as store:
        await begin(store, "run-1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        commit = asyncio.create_task(store.runs.commit(step(1)))
        for _ in range(50):
            assert (await store.runs.get("run-1")).seq == 1
        assert not commit.done()
        other.execute("COMMIT")
        other.close()
        await commit
        assert (await store.runs.get("run-1")).seq == 3


@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_a_brief_job_alone_keeps_to_the_loops_thread_until_a_disk_it_waits_for_stalls(
    path: Path, synchronous: Literal["full", "normal"]
) -> None:
    async with await open_store(path, synchronous=synchronous) as store:
        database, here = store.database, threading.get_ident()
        database._slowest_s = 0.0
        assert await database.write(lambda _: threading.get_ident(), brief=True) == here
        assert await database.write(lambda _: threading.get_ident()) != here
        database._slowest_s = 1.0
        stalled = await database.write(lambda _: threading.get_ident(), brief=True)
        assert (stalled == here) == (synchronous == "normal")
        assert 0.5 < database._slowest_s < 1.0  # trusted again after some that were prompt


async def test_readers_see_each_commit_whole(path: Path) -> None:
    async with await open_store(path, synchronous="normal") as store:
        await begin(store, "run-1")

        async def write() -> None:
            for seq in range(1, 101, 2):
                await store.runs.commit(step(seq))

        writing = asyncio.create_task(write())
        while not writing.done():
            _, log, _ = await store.runs.load("run-1")
            assert len(log) % 2 == 1
        await writing


async def test_a_key_raced_for_within_one_group_is_taken_once(store: SqliteStore) -> None:
    await begin(store)
    starts = (start(f"run-{number}", answered=answered(run_id=f"run-{number}")) for number in range(4))
    results = await asyncio.gather(*map(store.runs.commit, starts), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["AlreadyAnswered"] * 3 + ["int"]


async def test_events_that_carry_nothing_new_are_no_commit_of_their_own(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(Commit(run(status="waiting"), 1, events(1)))
    row = await store.runs.get("run-1")
    assert (row.status, row.seq) == ("waiting", 1)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_BUSY, StoreBusy),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy),
        (sqlite3.SQLITE_LOCKED, StoreBusy),
        (sqlite3.SQLITE_CORRUPT, StoreCorrupt),
        (sqlite3.SQLITE_NOTADB, StoreCorrupt),
        (sqlite3.SQLITE_IOERR_WRITE, StoreUnusable),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreUnusable),
        (sqlite3.SQLITE_CANTOPEN, StoreUnusable),
    ],
)
def test_what_sqlite_says_becomes_an_error_of_ours(code: int, kind: type[Exception]) -> None:
    error = sqlite3.OperationalError("the reason")
    error.sqlite_errorcode = code  # type: ignore[misc]
    assert type(store_error(error, Path("a.db"))) is kind
    assert "a.db" in str(store_error(error, Path("a.db")))


def test_a_wrong_statement_stays_a_bug() -> None:
    error = sqlite3.ProgrammingError("no such column")
    assert store_error(error, None) is error
