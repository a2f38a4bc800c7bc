"""Examines a database from outside, beside its owner if it has one: reads only, repairs nothing."""

from __future__ import annotations

import sqlite3
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.store import chain, logs, outbox, row_seals
from agent_graph.store.base import Telling
from agent_graph.store.connection import Mode, connect, disconnect, on_thread, tune_reader
from agent_graph.store.migrate import inspect, schema_version
from agent_graph.store.sqlite_errors import store_error

# every run with what its chain is checked against
RUNS: Final = "SELECT run_no, run_id, first_seq, seq, head FROM runs ORDER BY run_no"
# when the newest run was moved last, or at least made
NEWEST: Final = "SELECT max(max(created_at_ms, coalesce(started_at_ms, 0), coalesce(finished_at_ms, 0))) FROM runs"


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found in a database whose schema this program knows. Empty lists: it is sound."""

    schema: int
    """0 for an empty file."""
    file_bytes: int
    runs: int
    events: int
    faults: tuple[str, ...] = ()
    """What SQLite's own check said."""
    damaged: tuple[tuple[str, int], ...] = ()
    """(run, seq) of the first event of a run that is not what was written."""
    newest_ms: int = 0
    """The latest time of any run."""
    rows: tuple[tuple[str, str], ...] = ()
    """(table, name) of rows that are not what was written."""
    told: tuple[Telling, ...] = ()
    """How telling the outside stands."""
    rows_checked: bool = True


async def examine(
    path: Path, *, full: bool, owned: bool, ring: row_seals.Ring | None = None, rows: bool = True
) -> Examined:
    """Check the file, then the chain of events of every run, and the seals over rows with the keys of `ring`.

    `rows` False leaves those seals away.

    `full` compares every index with its table; else each page is looked at by itself. `owned` says that a process
    writes to the database meanwhile. Raises `StoreForeign`, `StoreNewer`, and `StoreCorrupt` or `StoreUnusable` when
    not even that much can be read.
    """
    log = path.with_name(path.name + "-wal")
    mode: Mode = "ro" if owned or (log.exists() and log.stat().st_size) else "immutable"
    try:
        async with AsyncExitStack() as opened:
            connection = await connect(path, mode=mode)
            opened.push_async_callback(disconnect, connection)
            await on_thread(connection, tune_reader)
            await on_thread(connection, partial(row_seals.register, seals=row_seals.RowSeals(ring)))
            return await on_thread(connection, partial(_examine, path, full, rows))
    except sqlite3.Error as error:
        raise store_error(error, path) from error


def _examine(path: Path, full: bool, rows: bool, connection: sqlite3.Connection) -> Examined:
    connection.execute("BEGIN")
    schema = inspect(path, connection)
    if not schema:
        return Examined(0, path.stat().st_size, 0, 0)
    faults = _faults(connection, full=full)
    if schema < schema_version():  # of before the last migration: the rest is looked at once that has run
        return Examined(schema, path.stat().st_size, 0, 0, faults)
    damaged, count, events = [], 0, 0
    for run_no, run_id, first, seq, head in connection.execute(RUNS).fetchall():
        count, events = count + 1, events + seq - first
        stored = logs.stored(run_no, connection)
        found = chain.first_damaged(stored, first=first, count=seq, head=head)
        if found is not None:
            damaged.append((run_id, found))
    (newest,) = connection.execute(NEWEST).fetchone()
    return Examined(
        schema, path.stat().st_size, count, events, faults, tuple(damaged), newest if isinstance(newest, int) else 0,
        tuple(row_seals.damaged_rows(connection)) if rows else (), outbox.states(connection), rows,
    )  # fmt: skip


def _faults(connection: sqlite3.Connection, *, full: bool) -> tuple[str, ...]:
    query = "PRAGMA integrity_check(20)" if full else "PRAGMA quick_check(20)"
    found = [" ".join(str(row[0]).split()) for row in connection.execute(query)]
    if found == ["ok"]:
        found = []
    orphans = [f"a row of {table} belongs to nothing" for table, *_ in connection.execute("PRAGMA foreign_key_check")]
    return (*found, *orphans)
