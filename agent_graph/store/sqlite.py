"""The store over SQLite, in a file or in memory: opening, checking, closing; the families hold the SQL.

One process owns a data folder (`store.lock`); taking that lock is the caller's part, since it outlives the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final, Literal

import aiosqlite

from agent_graph.errors import InvalidArgument, StoreCorrupt
from agent_graph.store import row_seals
from agent_graph.store.answers import SqliteAnswers
from agent_graph.store.approvals import SqliteApprovals
from agent_graph.store.checkpoints import SqliteCheckpoints
from agent_graph.store.connection import Job, Mode, Synchronous, connect, disconnect, plain, tune, tune_reader
from agent_graph.store.db import Database
from agent_graph.store.folder import place_file, prepare_folder
from agent_graph.store.graphs import SqliteGraphs
from agent_graph.store.guard import Guard
from agent_graph.store.lock import LOCK_NAME, FolderLock
from agent_graph.store.migrate import check_whole, inspect, is_at_rest, migrate, settle_schema
from agent_graph.store.outbox import SqliteOutbox
from agent_graph.store.outcomes import SqliteOutcomes
from agent_graph.store.requests import SqliteRequests
from agent_graph.store.retention import SqliteRetention
from agent_graph.store.row_seals import NoSeals, Ring, RowSeals, register
from agent_graph.store.runs import SqliteRuns
from agent_graph.store.seals import SqliteSeals
from agent_graph.store.sqlite_errors import store_error
from agent_graph.store.tokens import SqliteTokens
from agent_graph.store.volatile import MemoryDatabase, VolatileRuns
from agent_graph.store.witnesses import SqliteWitnesses

# opens the write-ahead log
FIRST_LOOK: Final = "SELECT count(*) FROM sqlite_master"


class SqliteStore:
    """`base.Store`: its families over one database. Made by `open_store`; an async context manager."""

    __slots__ = (
        "answers", "approvals", "checkpoints", "database", "graphs", "outbox", "outcomes", "requests", "retention",
        "runs", "seals", "storage", "tokens", "witnesses",
    )  # fmt: skip

    def __init__(self, database: Database) -> None:
        self.database = database
        self.storage: Literal["durable", "volatile"] = "volatile" if database.path is None else "durable"
        self.graphs = SqliteGraphs(database)
        self.runs = VolatileRuns(database) if isinstance(database, MemoryDatabase) else SqliteRuns(database)
        self.checkpoints = SqliteCheckpoints(database)
        self.seals = SqliteSeals(database)
        self.outcomes = SqliteOutcomes(database)
        self.approvals = SqliteApprovals(database)
        self.requests = SqliteRequests(database)
        self.answers = SqliteAnswers(database)
        self.retention = SqliteRetention(database)
        self.tokens = SqliteTokens(database)
        self.witnesses = SqliteWitnesses(database)
        self.outbox = SqliteOutbox(database)

    def check(self) -> None:
        """Raises `StoreCorrupt` or `DataDirLocked` when its files are not those it was opened on any more."""
        if self.database.guard is not None:
            self.database.guard.check(now=True)

    async def damaged_rows(self) -> AsyncIterator[StoreCorrupt]:
        for table, column in row_seals.SEALED:
            offset, more = 0, True
            while more:
                query = partial(row_seals.damaged_in, table, column, offset, limit=row_seals.STEP)
                names, more = await self.database.read(query)
                offset += row_seals.STEP
                for name in names:
                    yield row_seals.damaged(table, name)

    async def aclose(self) -> None:
        """Finish what is being written and close; no thread and no sidecar file is left."""
        await self.database.aclose()

    async def __aenter__(self) -> SqliteStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def open_store(
    path: Path | Literal[":memory:"], *, synchronous: Synchronous = "full", lock: FolderLock | None = None,
    ring: Ring | None = None,
) -> SqliteStore:  # fmt: skip
    """Open the database file `path`, made with its folder if need be, or a new one in memory.

    `synchronous` "full" makes every commit survive a power cut, "normal" only the end of the process. With the folder's
    `lock`, a database that an owner before this one had and that is gone is not made anew (`StoreCorrupt`). Rows are
    sealed with the keys of `ring`; without one by a plain digest. Raises
    `StoreUnusable`, `StoreForeign`, `StoreNewer`, `StoreCorrupt` (each leaves the file as it is), `StoreBusy`,
    `StoreFull`.
    """
    if synchronous not in ("full", "normal"):
        raise InvalidArgument(f"synchronous is full or normal, not {synchronous!r}.", argument="synchronous")
    file = None if path == ":memory:" else Path(path)
    try:
        if file is not None and lock is not None:
            check_not_gone(file, had_database=lock.had_database)
        store = SqliteStore(await _open(file, synchronous, lock, ring))
        if lock is not None:
            lock.note_database()
        return store
    except sqlite3.Error as error:
        raise store_error(error, file) from error


def check_not_gone(path: Path, *, had_database: bool) -> None:
    """Raises `StoreCorrupt` for a file that is missing or empty where there was a database."""
    gone = not path.exists()
    if had_database and (gone or not path.stat().st_size):
        raise StoreCorrupt(
            f"The database {path} is {'gone' if gone else 'empty'}, and there was one. Nothing was made in its place: "
            f"put it, or a copy of it, back; or, to begin anew in this folder, remove {path.parent / LOCK_NAME} too.",
            path=str(path),
            check="it is not there",
        )


async def _open(path: Path | None, synchronous: Synchronous, lock: FolderLock | None, ring: Ring | None) -> Database:
    """Each connection is made and set up in one go on its own thread: whoever starts the program waits for that. The
    reader's thread begins as soon as the writer's has set the file up."""
    if path is not None:
        if lock is None:  # else it was looked at to lock it
            prepare_folder(path.parent)
        place_file(path)
    rows = NoSeals() if path is None else RowSeals(ring)
    async with AsyncExitStack() as opened:
        is_set_up: Future[None] = Future()

        async def write() -> aiosqlite.Connection:
            try:
                return await _opened(opened, path, prepare=partial(_set_up, path, synchronous, rows, is_set_up))
            finally:
                is_set_up.cancel()  # where it is not, nobody may wait for it

        async def read() -> aiosqlite.Connection:
            return await _opened(opened, path, mode="ro", when=is_set_up, prepare=partial(_tune_at_once, rows))

        both = (write(),) if path is None else (write(), read())
        made: list[aiosqlite.Connection] = []
        for one in await asyncio.gather(*both, return_exceptions=True):
            if isinstance(one, BaseException):
                raise one
            made.append(one)
        writer, reader = made[0], made[-1]
        opened.pop_all()
    if path is None:
        return MemoryDatabase(writer, seals=rows)
    guard = Guard(path, lock=None if lock is None else lock.path)
    return Database(writer, reader=reader, path=path, synchronous=synchronous, guard=guard, seals=rows)


def _set_up(
    path: Path | None, synchronous: Synchronous, rows: RowSeals, done: Future[None], connection: sqlite3.Connection
) -> None:
    if path is not None:
        if is_at_rest(path):
            check_whole(path, connection)
        else:
            _inspect(path)
    tune(synchronous, connection)
    register(connection, rows)
    if migrate(path, connection):
        settle_schema(connection)
    if done.set_running_or_notify_cancel():
        done.set_result(None)


def _tune_at_once(rows: RowSeals, connection: sqlite3.Connection) -> None:
    """And read something: from then on the connection holds all its files, and can read when they are removed."""
    tune_reader(connection)
    register(connection, rows)
    connection.execute(FIRST_LOOK).fetchone()


async def _opened(
    stack: AsyncExitStack, path: Path | None, *, prepare: Job[object], mode: Mode = "rw",
    when: Future[None] | None = None,
) -> aiosqlite.Connection:  # fmt: skip
    connection = await connect(path, mode=mode, prepare=prepare, when=when)
    stack.push_async_callback(disconnect, connection)
    return connection


def _inspect(path: Path) -> None:
    """Look before anything is written: a file that is not ours, newer or damaged stays as it is, to the byte.

    Without a write-ahead log the file is all there is and can be read without a trace; with one, what it says is in
    both.
    """
    log = path.with_name(path.name + "-wal")
    mode: Mode = "ro" if log.exists() and log.stat().st_size else "immutable"
    with contextlib.closing(plain(path, mode)) as connection:
        inspect(path, connection)
