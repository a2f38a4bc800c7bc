"""A database in memory: no thread, and a run's steps are written when somebody reads them; keeps no other rule than db.

A run whose log nobody looks at is never encoded. Everything else goes through the same SQL as in a file, behind what
was put off: what is read is always what was committed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import aiosqlite

from agent_graph.core.classes import dataclass
from agent_graph.core.events import Event
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.sealing import Seal
from agent_graph.store.base import TERMINAL, Commit, RunRow
from agent_graph.store.connection import Job
from agent_graph.store.db import Database, look, transact
from agent_graph.store.row_seals import RowSeals
from agent_graph.store.run_rows import find_row
from agent_graph.store.runs import SqliteRuns, write_commit
from agent_graph.store.sqlite_errors import store_error

T = TypeVar("T")
MOST_PUT_OFF: Final = 20_000
"""Events of one run that are kept unwritten at most: written they take less room."""


class MemoryDatabase(Database):
    """A database only this process has: every job runs where it is asked for, on the loop's own thread."""

    def __init__(self, connection: aiosqlite.Connection, *, seals: RowSeals) -> None:
        super().__init__(connection, reader=connection, path=None, synchronous="normal", seals=seals)
        self.put_off: Callable[[sqlite3.Connection], None] | None = None
        """Writes what was put off; done before any other job."""

    async def write(self, job: Job[T], *, brief: bool = True) -> T:  # noqa: ARG002  (all are done here)
        self.settle()
        [result] = self._do(partial(transact, [job]))
        self.transactions += 1
        await self.give_way()
        return result  # type: ignore[return-value]  # what `job` gave

    async def read(self, query: Job[T], *, brief: bool = True) -> T:  # noqa: ARG002  (all are done here)
        self.settle()
        return self.peek(query)

    async def aside(self, job: Job[T]) -> T:
        self.settle()
        return self._do(job)

    def peek(self, query: Job[T]) -> T:
        """`read`, without what was put off."""
        return self._do(partial(look, query))

    def settle(self) -> None:
        """Write what was put off."""
        if self.put_off is not None:
            self._do(partial(transact, [self.put_off]))

    def _do(self, job: Job[T]) -> T:
        self._check_open()
        try:
            return job(self._writer._conn)
        except sqlite3.Error as error:
            raise store_error(error, None) from error


@dataclass(slots=True)
class _Ahead:
    """Commits of a run that are not written: the number of the first event, the events, the latest row."""

    first: int
    events: list[Event]
    row: RunRow
    seal: Callable[[JsonObject], Seal] | None = None

    @property
    def seq(self) -> int:
        return self.first + len(self.events)


class VolatileRuns(SqliteRuns):
    """`base.RunStore` over a `MemoryDatabase`."""

    __slots__ = ("_ahead", "_memory")

    def __init__(self, database: MemoryDatabase) -> None:
        super().__init__(database)
        self._memory = database
        self._ahead: dict[str, _Ahead] = {}

    @property
    def shares(self) -> bool:
        return True

    async def commit(self, commit: Commit) -> int:
        if self._put_off(commit):
            await self._memory.give_way()
            return 0
        self._memory.settle()
        return await super().commit(commit)

    async def get(self, run_id: str, *, principal: str = "") -> RunRow:
        known = self._seen(self._memory.peek(partial(find_row, run_id, principal=principal)))
        ahead = self._ahead.get(run_id)
        if ahead is None:
            return known
        row = ahead.row
        return replace(
            known, status=row.status, seq=ahead.seq, usage=row.usage,
            started_at_ms=row.started_at_ms, finished_at_ms=row.finished_at_ms, error=row.error,
            final_state=row.final_state, budget=row.budget, wake_at_ms=row.wake_at_ms,
        )  # fmt: skip

    async def set_aside(self, run_id: str, error: JsonObject) -> None:
        self._memory.settle()  # or a place would be remembered that is none any more
        await super().set_aside(run_id, error)

    def _put_off(self, commit: Commit) -> bool:
        """Keep a commit of nothing but events to a run that stands where it expects; else it is the database's."""
        if commit.create or commit.approvals or commit.answered is not None or commit.snapshot is not None:
            return False
        if commit.notices:
            return False
        first, events = commit.expected_seq, commit.events
        if [event.seq for event in events] != [*range(first, first + len(events))]:
            return False
        run_id = commit.run.run_id
        ahead = self._ahead.get(run_id)
        if ahead is None:
            place = self._places.get(run_id)
            if place is None or place.seq != commit.expected_seq:
                return False
            ahead = self._ahead[run_id] = _Ahead(place.seq, [], commit.run)
            self._memory.put_off = self._write_all
        elif ahead.seq != commit.expected_seq or ahead.row.status in TERMINAL or len(ahead.events) >= MOST_PUT_OFF:
            return False
        ahead.events += commit.events
        ahead.row, ahead.seal = commit.run, commit.seal
        return True

    def _write_all(self, connection: sqlite3.Connection) -> None:
        for run_id, one in self._ahead.items():
            self._places.pop(run_id, None)
            commit = Commit(one.row, one.first, one.events, seal=one.seal)
            place, _ = write_commit(commit, None, self._memory.seals, connection)
            self._remember(run_id, place)
        self._ahead = {}
        self._memory.put_off = None
