"""In memory a run's steps are written when somebody reads them, and nobody can tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agent_graph.errors import SequenceConflict
from agent_graph.store import volatile
from agent_graph.store.sqlite import SqliteStore, open_store
from tests.store.rows import approval, begin, run, start, step


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    opened = await open_store(":memory:")
    yield opened
    await opened.aclose()


def written(store: SqliteStore) -> int:
    """How many events the database itself holds."""
    assert isinstance(store.database, volatile.MemoryDatabase)
    return store.database.peek(lambda connection: int(connection.execute("SELECT count(*) FROM events").fetchone()[0]))


async def test_the_row_of_a_run_is_level_while_its_steps_are_not_written(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")
    await store.runs.commit(step(1))
    await store.runs.commit(step(3, graph_id="another", created_at_ms=1, usage={"nodes": 2}))
    assert await store.runs.get("run-1") == run(seq=5, usage={"nodes": 2})
    assert (await store.runs.get("run-2")).seq == 1
    assert written(store) == 2


@pytest.mark.parametrize("look", ["load", "events", "verify_chain"])
async def test_whoever_reads_the_log_finds_all_of_it(store: SqliteStore, look: str) -> None:
    await begin(store, "run-1")
    await store.runs.commit(step(1))
    await store.runs.commit(step(3, status="completed"))
    await getattr(store.runs, look)("run-1")
    assert written(store) == 5
    assert [event.seq for event in await store.runs.events("run-1")] == [0, 1, 2, 3, 4]
    assert await store.runs.verify_chain("run-1") is None
    assert await store.runs.get("run-1") == run(seq=5, status="completed")


async def test_lists_and_counts_know_what_was_put_off(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")
    await store.runs.commit(step(1, status="completed"))
    assert await store.runs.counts() == {"completed": 1, "running": 1}
    rows, _ = await store.runs.list(statuses=["completed"])
    assert [(row.run_id, row.seq) for row in rows] == [("run-1", 3)]


async def test_steps_put_off_come_before_what_follows_them(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(step(1))
    opened = step(3)
    await store.runs.commit(replace(opened, approvals=[approval()]))
    await store.runs.commit(step(5))
    assert (await store.approvals.get("approval-1")).status == "pending"
    assert len(await store.runs.events("run-1")) == 7
    assert await store.runs.verify_chain("run-1") is None


async def test_a_commit_that_is_not_next_is_refused_and_changes_nothing(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(step(1))
    for wrong in (step(1), step(5), start()):
        with pytest.raises(SequenceConflict):
            await store.runs.commit(wrong)
    await store.runs.commit(step(3))
    assert (await store.runs.get("run-1")).seq == 5
    assert await store.runs.verify_chain("run-1") is None


async def test_no_more_is_put_off_than_memory_bears(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volatile, "MOST_PUT_OFF", 4)
    await begin(store, "run-1")
    for seq in (1, 3, 5, 7):
        await store.runs.commit(step(seq))
    assert written(store) == 7
    assert (await store.runs.get("run-1")).seq == 9
    assert await store.runs.verify_chain("run-1") is None
