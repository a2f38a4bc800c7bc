"""One database: its connections and the group-commit writer; knows no table.

Writers queue; whatever is queued when the connection is free shares one transaction, hence one fsync. While that
fsync runs the next group gathers, so nobody waits for more than the one under way and its own. A short job that is
alone is done on the loop's own thread while the disk is prompt: the way to another and back takes longer than it does.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import aiosqlite

from agent_graph.errors import AgentGraphError, StoreUnusable
from agent_graph.store.base import AlreadyAnswered
from agent_graph.store.connection import WAIT, Job, Synchronous, T, disconnect, on_thread
from agent_graph.store.guard import Guard
from agent_graph.store.row_seals import RowSeals
from agent_graph.store.sqlite_errors import is_busy, store_error

_TURN_S: Final = 0.001
"""What one may keep the loop for: a disk that needs longer is waited for on the connection's thread."""
_FADING: Final = 0.8
"""What is left, at each commit, of the longest that one took: a disk that stalled is not trusted again at once."""

BEGIN_WRITE: Final = "BEGIN IMMEDIATE"  # takes the write lock now, not in the middle
BEGIN_READ: Final = "BEGIN"  # several reads of one moment
COMMIT: Final = "COMMIT"  # durable when it returns (synchronous = full)
ROLLBACK: Final = "ROLLBACK"  # nothing of the transaction happened
SAVEPOINT: Final = "SAVEPOINT member"  # one member of a group begins
RELEASE: Final = "RELEASE member"  # the member lands with the group
ROLLBACK_TO: Final = "ROLLBACK TO member"  # the member is refused, the group goes on
WAIT_FOR_NOBODY: Final = "PRAGMA busy_timeout = 0"  # the loop is not to stand still for it

REFUSALS: Final = (AgentGraphError, AlreadyAnswered, sqlite3.Error)
"""What undoes one job and not its group."""


class Database:
    """One writing connection with its queue, and one reading connection (in memory they are the same)."""

    def __init__(
        self, writer: aiosqlite.Connection, *, reader: aiosqlite.Connection, path: Path | None,
        synchronous: Synchronous, seals: RowSeals, guard: Guard | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.guard = guard
        self.seals = seals
        """Over its rows."""
        self._quick = synchronous == "normal"
        """A commit waits for no disk."""
        self._in_use = threading.Lock()
        """Held by whoever uses the writing connection, on whichever thread."""
        self._waits = True
        """The writing connection waits for another program that holds the database."""
        self._present = 0
        """How many callers have something to write that is not written."""
        self._slowest_s = 0.0
        """The longest that a transaction of one job took lately."""
        self._looking = threading.Lock()
        """Held by whoever uses the reading connection, on whichever thread."""
        self._longest_look_s = 0.0
        """The longest that a read took lately."""
        self._log_begun = False
        """Something was written since the opening."""
        self._turn_ends = 0.0
        self.transactions = 0
        """How many write transactions were committed."""
        self._writer = writer
        self._reader = reader
        self._queue: list[tuple[Job[Any], asyncio.Future[Any]]] = []
        self._writing = False
        self._crowded = False
        """The last group had several members: whoever comes first waits a moment for the others."""
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def crowded(self) -> bool:
        """Others write too."""
        return self._crowded or self._writing

    async def write(self, job: Job[T], *, brief: bool = False) -> T:
        """Run `job` in a transaction, perhaps together with others; durable when this returns.

        A `brief` one may be done on the loop's thread. What `job` raises undoes `job` alone. A caller that is cancelled
        while it waits in the queue has written nothing; later, it may have. Raises `StoreFull`, `StoreBusy`,
        `StoreCorrupt`, `StoreUnusable`.
        """
        self._check_writable()
        self._present += 1
        try:
            prompt = self._quick or self._slowest_s < _TURN_S
            done = await self._write_here(job) if brief and prompt else None
            if done is None:
                if self._writing or self._crowded:
                    return await self._enqueue(job)
                done = await self._write_alone(job)
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        finally:
            self._present -= 1
        self.transactions += 1
        await self.give_way()
        return cast("T", done[0])

    async def _write_here(self, job: Job[T]) -> list[object] | None:
        """Do it on the loop's thread; None when others write too, or another program holds the database."""
        if not self._quick and not self._crowded:
            await asyncio.sleep(0)  # a disk's wait is worth sharing: whoever is about to write says so meanwhile
        if self._writing or self._crowded or self._present > 1 or not self._in_use.acquire(blocking=False):
            return None
        connection = self._writer._conn
        try:
            self._wait(connection, wait=False)
            return self._timed([job], connection)
        except sqlite3.Error as error:
            if not is_busy(error):
                raise
            return None
        finally:
            self._in_use.release()

    async def _write_alone(self, job: Job[T]) -> list[object]:
        """On the connection's thread: half the loop's work of a group of one."""
        self._writing = True
        try:
            return await on_thread(self._writer, partial(self._there, partial(self._timed, [job])))
        finally:  # even when this caller is cancelled: the thread works in order, the next group comes after it
            self._next_group()

    def _there(self, job: Job[T], connection: sqlite3.Connection) -> T:
        """Use the writing connection on its own thread."""
        with self._in_use:
            self._wait(connection, wait=True)
            return job(connection)

    def _wait(self, connection: sqlite3.Connection, *, wait: bool) -> None:
        if wait is not self._waits:
            connection.execute(WAIT if wait else WAIT_FOR_NOBODY)
            self._waits = wait

    def _timed(self, jobs: Sequence[Job[Any]], connection: sqlite3.Connection) -> list[object]:
        began = time.perf_counter()
        try:
            return transact(jobs, connection)
        finally:
            if len(jobs) == 1 and self._log_begun:  # the first is three waits in one, and says nothing of the next
                self._slowest_s = max(time.perf_counter() - began, _FADING * self._slowest_s)
            self._log_begun = True

    async def read(self, query: Job[T], *, brief: bool = False) -> T:
        """Run `query` on one consistent state of the database; a `brief` one perhaps on the loop's thread, where it
        waits for nobody: others write to the log behind what it sees. Raises as `write` does."""
        self._check_open()
        try:
            if not (brief and self._longest_look_s < _TURN_S and self._looking.acquire(blocking=False)):
                return await on_thread(self._reader, partial(self._look_there, query))
            try:
                found = self._looked(query, self._reader._conn)
            finally:
                self._looking.release()
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        await self.give_way()
        return found

    def _look_there(self, query: Job[T], connection: sqlite3.Connection) -> T:
        with self._looking:
            return self._looked(query, connection)

    def _looked(self, query: Job[T], connection: sqlite3.Connection) -> T:
        began = time.perf_counter()
        try:
            return look(query, connection)
        finally:
            self._longest_look_s = max(time.perf_counter() - began, _FADING * self._longest_look_s)

    async def give_way(self) -> None:
        """Let others run now and then: whoever writes and waits for nothing would keep the loop to himself."""
        if time.monotonic() >= self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = time.monotonic() + _TURN_S

    async def aside(self, job: Job[T]) -> T:
        """Run `job` on the writing connection between two transactions; for what no transaction may hold. Raises as
        `write` does."""
        self._check_writable()
        try:
            return await on_thread(self._writer, partial(self._there, job))
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    async def aclose(self) -> None:
        """Finish what is queued, then close; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._writing or self._present:
            await self._enqueue(lambda _: None)  # nobody can come behind those who are there
        if self._reader is not self._writer:
            await disconnect(self._reader)
        await disconnect(self._writer)  # last, so that it merges the write-ahead log into the file and removes it

    def _check_writable(self) -> None:
        self._check_open()
        if self.guard is not None:
            self.guard.check()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnusable("The store is closed.")

    async def _enqueue(self, job: Job[T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append((job, future))
        if not self._writing:
            self._next_group()
        return await future

    def _next_group(self) -> None:
        """Begin to write what is queued: at the loop's next turn, so that all who are about to write are in it."""
        self._writing = bool(self._queue)
        self._flushing = asyncio.create_task(self._flush()) if self._queue else None

    async def _flush(self) -> None:
        try:
            while self._queue:
                group = [(job, future) for job, future in self._queue if not future.done()]
                self._queue.clear()
                self._crowded = len(group) > 1
                await self._commit(group)
                if self._crowded:
                    await asyncio.sleep(0)  # those who are through go on, and may have more to write
        finally:
            self._writing = False

    async def _commit(self, group: Sequence[tuple[Job[Any], asyncio.Future[Any]]]) -> None:
        """One transaction for the group; if that fails as a whole, one for each, so that none fails for another."""
        if not group:
            return
        hop = on_thread(self._writer, partial(self._there, partial(self._timed, [job for job, _ in group])))
        (outcome,) = await asyncio.gather(hop, return_exceptions=True)
        if not isinstance(outcome, BaseException):
            self.transactions += 1
            for (_, future), result in zip(group, outcome, strict=True):
                self._settle(future, result)
        elif len(group) == 1 or is_busy(outcome):  # trying a busy database again would wait once more for each
            for _, future in group:
                self._settle(future, outcome)
        else:
            for entry in group:
                await self._commit([entry])

    def _settle(self, future: asyncio.Future[Any], result: object) -> None:
        if future.done():
            return
        if isinstance(result, sqlite3.Error):
            error = store_error(result, self.path)
            error.__cause__ = result
            future.set_exception(error)
        elif isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


def transact(jobs: Sequence[Job[Any]], connection: sqlite3.Connection) -> list[object]:
    """The results or refusals of all `jobs` after one COMMIT; raises when none of it happened.

    Nearly always no job is refused, so each gets a savepoint of its own only when one was: then they are done again.
    """
    connection.execute(BEGIN_WRITE)
    try:
        try:
            outcomes = [job(connection) for job in jobs]
        except REFUSALS:
            if len(jobs) == 1 or not connection.in_transaction:
                raise
            connection.execute(ROLLBACK)
            connection.execute(BEGIN_WRITE)
            outcomes = [_attempt(job, connection) for job in jobs]
        connection.execute(COMMIT)
    finally:
        if connection.in_transaction:
            connection.execute(ROLLBACK)
    return outcomes


def _attempt(job: Job[Any], connection: sqlite3.Connection) -> object:
    connection.execute(SAVEPOINT)
    try:
        outcome = job(connection)
    except REFUSALS as refusal:
        if not connection.in_transaction:  # SQLite itself rolled everything back: a full disk, a read error
            raise
        connection.execute(ROLLBACK_TO)
        outcome = refusal
    connection.execute(RELEASE)
    return outcome


def look(query: Job[T], connection: sqlite3.Connection) -> T:
    """What `query` finds in one consistent state."""
    connection.execute(BEGIN_READ)
    try:
        return query(connection)
    finally:
        if connection.in_transaction:
            connection.execute(COMMIT)
