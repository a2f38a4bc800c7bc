"""What pruning takes and leaves, and that the file gives back what it no longer needs."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent_graph.errors import RunNotFound, RunPruned
from agent_graph.store.base import Answered, Commit
from agent_graph.store.connection import on_thread
from agent_graph.store.sqlite import SqliteStore, open_store
from tests.store.rows import AT_MS, answered, approval, begin, run, start, step

ALMOST = 1.2
"""The file after pruning, over what the same rows take in a file written anew."""


async def ended(
    store: SqliteStore, run_id: str, *, at_ms: int = AT_MS, note: Any = "text", status: str = "completed"
) -> None:
    """A run of five events that is over, with an approval, a snapshot and an answer."""
    await store.runs.commit(start(run_id, answered=answered(f"key of {run_id}", run_id=run_id)))
    await store.runs.commit(step(1, run_id, note=note))
    last = step(3, run_id, note=note, status=status, finished_at_ms=at_ms, final_state=("the result",))
    gate = approval(f"gate of {run_id}", run_id=run_id, status="approved")
    await store.runs.commit(Commit(last.run, 3, last.events, approvals=[gate], snapshot=b"a fold"))


async def test_ended_runs_are_listed_by_their_end_and_no_others(store: SqliteStore) -> None:
    await begin(store, "live")
    for run_id, at_ms in (("late", 3), ("early", 1), ("middle", 2), ("pinned", 0)):
        await ended(store, run_id, at_ms=at_ms, status="failed" if run_id == "middle" else "completed")
    for status in ("waiting", "interrupted", "accepted"):
        await store.runs.commit(start(status, status=status))
    assert await store.runs.pin("pinned", pinned=True)
    assert [(each.run_id, each.pruned) for each in await store.retention.ended()] == [
        ("early", False), ("middle", False), ("late", False),
    ]  # fmt: skip


async def test_pruning_leaves_the_row_the_result_and_the_answer_under_the_key(store: SqliteStore) -> None:
    await begin(store, "live")
    await ended(store, "old")
    before = await store.runs.get("old")
    assert await store.retention.weigh("old") > 500
    assert await store.retention.prune(["old"]) == ("old",)
    row = await store.runs.get("old")
    assert (row.status, row.final_state, row.seq, row.usage) == ("completed", ("the result",), 5, before.usage)
    assert (before.first_seq, row.first_seq) == (0, 5)
    assert await store.requests.get("key of old") == Answered(
        "key of old", "sha256:request", {"run_id": "old", "status": "accepted"}, "old"
    )
    assert await store.runs.events("old") == ()
    assert await store.approvals.list(run_id="old") == ((), None)
    assert await store.runs.verify_chain("old") is None
    assert await store.retention.weigh("old") == 0
    with pytest.raises(RunPruned) as refused:
        await store.runs.load("old")
    assert refused.value.code == "RUN_PRUNED"
    assert [each.pruned for each in await store.retention.ended()] == [True]
    assert (await store.runs.get("live")).seq == len(await store.runs.events("live")) == 1


async def test_forgetting_takes_the_row_and_the_key_too(store: SqliteStore) -> None:
    await begin(store)
    await ended(store, "old")
    await ended(store, "other")
    assert await store.retention.prune(["old"], forget=True) == ("old",)
    with pytest.raises(RunNotFound):
        await store.runs.get("old")
    assert await store.requests.get("key of old") is None
    assert await store.requests.get("key of other") is not None
    assert (await store.graphs.get("council")).graph_version == "sha256:v1"


async def test_what_lives_or_is_pinned_is_passed_over(store: SqliteStore) -> None:
    await begin(store, "live")
    await ended(store, "pinned")
    await ended(store, "old")
    await store.runs.commit(start("waits", status="waiting"))
    assert await store.runs.pin("pinned", pinned=True)
    assert not await store.runs.pin("pinned", pinned=True)
    assert (await store.runs.get("pinned")).pinned
    gone = await store.retention.prune(["live", "pinned", "waits", "old", "no such run"], forget=True)
    assert gone == ("old",)
    assert len(await store.runs.events("pinned")) == 5
    assert await store.runs.pin("pinned", pinned=False)
    assert await store.retention.prune(["pinned"]) == ("pinned",)
    with pytest.raises(RunNotFound):
        await store.runs.pin("no such run", pinned=True)
    assert await store.retention.weigh("no such run") == 0


async def test_a_pin_does_not_end_with_the_next_commit(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.pin("run-1", pinned=True)
    await store.runs.commit(step(1))
    row = await store.runs.get("run-1")
    assert (row.pinned, row.seq) == (True, 3)


def size(path: Path) -> int:
    return path.stat().st_size


def anew(path: Path) -> int:
    """Bytes of the same rows in a file written anew."""
    copy = path.with_name("copy.db")
    with sqlite3.connect(path) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    found = size(copy)
    copy.unlink()
    return found


@pytest.mark.parametrize("forget", [False, True])
async def test_after_pruning_the_file_is_hardly_larger_than_what_is_in_it(path: Path, forget: bool) -> None:
    async with await open_store(path) as store:
        await begin(store)
        runs = [f"run-{number}" for number in range(60)]
        await asyncio.gather(*(ended(store, run_id, note="x" * 20_000) for run_id in runs))
        before = (await store.retention.space()).file_bytes
        gone = [run_id for run_id in runs if not run_id.endswith("0")]
        assert len(await store.retention.prune(gone, forget=forget)) == 54
        held = await store.retention.space()
        assert held.used_bytes < held.file_bytes / 4
        await store.retention.compact()
        after = await store.retention.space()
        assert after.file_bytes == after.used_bytes == size(path) < before / 4
        assert size(path.with_name(path.name + "-wal")) == 0
        assert len(await store.runs.events("run-0")) == 5
        assert await store.runs.verify_chain("run-50") is None
    assert size(path) <= ALMOST * anew(path)


async def test_a_file_made_before_pages_could_be_given_back_shrinks_too(path: Path) -> None:
    async with await open_store(path) as store:
        await begin(store)
        await ended(store, "run-1", note="x" * 500_000)
    with sqlite3.connect(path, isolation_level=None) as old:
        old.execute("PRAGMA journal_mode = DELETE")
        old.execute("PRAGMA auto_vacuum = NONE")
        old.execute("VACUUM")
    old.close()
    async with await open_store(path) as store:
        assert await on_thread(store.database._writer, lambda c: c.execute("PRAGMA auto_vacuum").fetchone()) == (0,)
        await store.retention.prune(["run-1"])
        await store.retention.compact()
        assert size(path) < 200_000
        assert await on_thread(store.database._writer, lambda c: c.execute("PRAGMA auto_vacuum").fetchone()) == (2,)
        assert (await store.runs.get("run-1")).final_state == ("the result",)


async def test_room_that_was_given_up_is_used_again(path: Path) -> None:
    sizes = []
    async with await open_store(path) as store:
        await begin(store)
        for number in range(4):
            await ended(store, f"run-{number}", note="x" * 200_000)
            await store.retention.prune([f"run-{number}"])
            await store.retention.compact()
            sizes.append(size(path))
    assert max(sizes) - min(sizes) <= 3 * 4096


async def test_a_run_set_aside_reads_interrupted_until_it_moves(store: SqliteStore) -> None:
    await begin(store, "run-1")
    error = {"code": "STORE_FULL", "message": "no room"}
    await store.runs.set_aside("run-1", error)
    row = await store.runs.get("run-1")
    assert (row.status, row.error, row.seq) == ("interrupted", error, 1)
    assert (await store.runs.list(statuses=["interrupted"]))[0] == (row,)
    await store.runs.commit(step(1))
    moved = await store.runs.get("run-1")
    assert (moved.status, moved.error, moved.seq) == ("running", None, 3)
    assert await store.runs.verify_chain("run-1") is None


async def test_a_run_that_ended_is_not_set_aside(store: SqliteStore) -> None:
    await begin(store)
    await ended(store, "run-1")
    await store.runs.set_aside("run-1", {"code": "STORE_FULL", "message": "no room"})
    assert (await store.runs.get("run-1")).status == "completed"


async def test_a_run_is_set_aside_even_where_nothing_can_be_written(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")
    await ended(store, "run-3")
    error = {"code": "STORE_FULL", "message": "no room"}
    await on_thread(store.database._writer, lambda connection: connection.execute("PRAGMA query_only = ON"))
    for run_id in ("run-1", "run-3"):
        await store.runs.set_aside(run_id, error)
    assert [row.status for row in (await store.runs.list())[0]] == ["completed", "running", "interrupted"]
    assert (await store.runs.get("run-1")).error == error
    await on_thread(store.database._writer, lambda connection: connection.execute("PRAGMA query_only = OFF"))
    await store.runs.commit(step(1))
    assert await store.runs.get("run-1") == run("run-1", seq=3)
