"""The contract of outcomes: one count a run, in the transaction that ends it; the same in memory and in a file."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from agent_graph.core.events import RunCompleted, RunFailed
from agent_graph.errors import SequenceConflict
from agent_graph.store import migrate
from agent_graph.store.base import Commit, Outcome
from agent_graph.store.sqlite import SqliteStore, open_store
from tests.store.rows import AT_MS, begin, events, graph, run, start

MIGRATIONS = Path(migrate.__file__).parent / "migrations"
USAGE = {"llm_calls": 2, "prompt_tokens": 10, "completion_tokens": 5, "nodes": 3}
UNKNOWN = {"llm_calls": 1, "prompt_tokens": "unknown", "completion_tokens": "unknown", "nodes": 1}


def done(run_id: str, *, usage: dict[str, object] = USAGE, took_ms: int = 40) -> Commit:
    ended = run(
        run_id, status="completed", usage=usage, started_at_ms=AT_MS, finished_at_ms=AT_MS + took_ms, final_state=(1,)
    )
    return Commit(ended, 1, events(1, RunCompleted()))


async def test_runs_that_end_alike_are_added_up(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2", "run-3")
    assert await store.outcomes.of_own_graphs() == ()
    await store.runs.commit(done("run-1"))
    await store.runs.commit(done("run-2", usage=UNKNOWN, took_ms=60))
    error = {"code": "MODEL_REFUSED", "message": "no"}
    failed = run("run-3", status="failed", error=error, usage=USAGE, started_at_ms=AT_MS, finished_at_ms=AT_MS + 5)
    await store.runs.commit(Commit(failed, 1, events(1, RunFailed(error))))
    own = await store.outcomes.of_own_graphs()
    assert own == (
        Outcome("council", "sha256:v1", "completed", "", 2, 3, 15, 1, 100, AT_MS + 40, AT_MS + 60),
        Outcome("council", "sha256:v1", "failed", "MODEL_REFUSED", 1, 2, 15, 1, 5, AT_MS + 5, AT_MS + 5),
    )


async def test_what_is_not_written_is_not_counted(store: SqliteStore) -> None:
    await begin(store, "run-1")
    with pytest.raises(SequenceConflict):
        await store.runs.commit(Commit(run(status="completed", usage=USAGE), 7, events(7, RunCompleted())))
    assert await store.outcomes.of_own_graphs() == ()
    await store.runs.commit(done("run-1"))
    row = await store.runs.get("run-1")
    await store.runs.commit(Commit(row, row.seq, ()))
    assert [one.runs for one in await store.outcomes.of_own_graphs()] == [1]


async def test_a_run_written_off_is_counted_as_cancelled(store: SqliteStore) -> None:
    await begin(store, "run-1")
    for _ in range(2):
        await store.retention.write_off("run-1", {"code": "STORE_CORRUPT"}, at_ms=AT_MS + 9, answered=None)
    assert [(one.status, one.code, one.runs) for one in await store.outcomes.of_own_graphs()] == [("cancelled", "", 1)]


async def test_the_last_origin_holds_and_a_hidden_graph_is_not_listed(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(done("run-1"))
    for version in ("1", "2"):
        await store.graphs.put(graph(origin=("debate", version)), overwrite=False, expected_version=None)
    assert await store.outcomes.of_own_graphs() == ()
    assert [(one.template_version, one.runs) for one in await store.outcomes.of_template("debate")] == [("2", 1)]
    assert await store.outcomes.of_template("council") == ()
    await store.graphs.put(graph("sha256:v2"), overwrite=True, expected_version=None)
    await store.runs.commit(start("run-2", graph_version="sha256:v2"))
    await store.runs.commit(Commit(run("run-2", graph_version="sha256:v2", status="cancelled"), 1, ()))
    assert [one.graph_version for one in await store.outcomes.of_own_graphs()] == ["sha256:v2"]
    await store.graphs.delete("council")
    assert await store.outcomes.of_own_graphs() == ()


async def test_runs_that_ended_before_there_were_counts_are_counted(path: Path) -> None:
    async with await open_store(path) as store:
        await begin(store, "run-1", "run-2", "run-3")
        await store.runs.commit(done("run-1"))
        await store.runs.commit(done("run-2", usage=UNKNOWN, took_ms=60))
        counted = await store.outcomes.of_own_graphs()
    with sqlite3.connect(path) as older:
        for file in reversed(sorted(MIGRATIONS.glob("*.sql"))[6:]):
            made = file.read_text(encoding="utf-8")
            for table in reversed(re.findall(r"CREATE TABLE (\w+)", made)):
                older.execute(f"DROP TABLE {table}")
            for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", made):
                older.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        older.execute("PRAGMA user_version = 6")
    older.close()
    async with await open_store(path) as store:
        assert await store.outcomes.of_own_graphs() == counted
