"""One connection to SQLite on a thread of its own: made, set up, used in one hop, closed; knows no table.

What a new connection needs is done where it is made: each way to another thread and back is waited for by whoever
starts the program.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar, cast

import aiosqlite

from agent_graph.errors import AgentGraphError
from agent_graph.store.sqlite_errors import BUSY_MS

T = TypeVar("T")
Job: TypeAlias = Callable[[sqlite3.Connection], T]
"""A plain function that runs on the connection's thread, inside a transaction it neither starts nor ends; perhaps
again, after what it did was undone."""

Synchronous: TypeAlias = Literal["full", "normal"]
Mode: TypeAlias = Literal["rw", "ro", "immutable"]

WAIT: Final = f"PRAGMA busy_timeout = {BUSY_MS}"  # for another program that holds the database
INCREMENTAL: Final = 2
"""What ``PRAGMA auto_vacuum`` says of a database that can give pages back without being written anew."""
_WAL_KEPT_BYTES: Final = 16 * 2**20
_UNUSED: Final = 1
"""Rows that aiosqlite reads in one go where it iterates: no query of ours does."""


async def connect(
    path: Path | None, *, mode: Mode = "rw", prepare: Job[object] | None = None, when: Future[None] | None = None
) -> aiosqlite.Connection:
    """A connection on a thread of its own; `path` None is a new database in memory.

    ``immutable`` reads the file as it lies there: no lock, no sidecar file, and a write-ahead log is not looked at.
    `prepare` is done on that thread, in no transaction and before anybody has the connection; what it raises closes it.
    Nothing is done before `when` is done; where that is cancelled, it is never. Raises sqlite3.Error.
    """

    refused: list[AgentGraphError | sqlite3.Error | OSError | CancelledError] = []

    def made() -> sqlite3.Connection:
        try:
            if when is not None:
                when.result()
        except CancelledError as never:
            refused.append(never)
            return plain(None, mode)
        inner = plain(path, mode)
        if prepare is not None:
            try:
                prepare(inner)
            except (AgentGraphError, sqlite3.Error, OSError) as error:  # raised below, once it can be closed in order
                refused.append(error)
        return inner

    connection = aiosqlite.Connection(made, iter_chunk_size=_UNUSED)
    _thread_of(connection).daemon = True  # a program that ends without closing must not be kept alive by its store
    await connection
    if refused:
        await disconnect(connection)
        raise refused[0]
    return connection


def plain(path: Path | None, mode: Mode) -> sqlite3.Connection:
    """A connection on the caller's thread; other threads may use it too, as the loop's does when it is free."""
    return sqlite3.connect(_uri(path, mode), uri=True, isolation_level=None, check_same_thread=False)


def _uri(path: Path | None, mode: Mode) -> str:
    if path is None:
        return ":memory:"
    return path.absolute().as_uri() + ("?mode=ro&immutable=1" if mode == "immutable" else f"?mode={mode}")


async def disconnect(connection: aiosqlite.Connection) -> None:
    """Close and see the thread off: `close` returns while its thread is still on the way out."""
    await connection.close()
    _thread_of(connection).join()


def _thread_of(connection: aiosqlite.Connection) -> threading.Thread:
    return cast("threading.Thread", getattr(connection, "_thread", connection))  # up to 0.21 they are one


async def on_thread(connection: aiosqlite.Connection, job: Job[T]) -> T:
    """Run `job` on the connection's thread in one hop.

    aiosqlite's public calls are one hop for each statement: slow, and another caller's statement could land between
    two of ours. ``_execute`` is what all of them go through; this is the only place that calls it.
    """
    execute: Callable[[Job[T], sqlite3.Connection], Awaitable[T]] = connection._execute
    return await execute(job, connection._conn)


def tune(synchronous: Synchronous, connection: sqlite3.Connection) -> None:
    """What every writing connection is set to."""
    connection.execute(WAIT)
    if connection.execute("PRAGMA auto_vacuum").fetchone() != (INCREMENTAL,):  # else saying it is a write, and a wait
        connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")  # heard by a new file only, and before it is WAL
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous == 'full' else 'NORMAL'}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")


def tune_reader(connection: sqlite3.Connection) -> None:
    """What every reading connection is set to."""
    connection.execute(WAIT)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
