"""Runs: the one write that moves a run on, and what is read of its row, log and snapshot; folds nothing."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from agent_graph.core.events import Event
from agent_graph.errors import RunNotFound, SequenceConflict
from agent_graph.store import approvals, chain
from agent_graph.store.base import Commit, RunRow, StoredEvent
from agent_graph.store.columns import json_object, json_text, json_value, where
from agent_graph.store.cursor import check_limit, encode_cursor, number_of
from agent_graph.store.db import Database
from agent_graph.store.graphs import READ_VERSION, version_not_found
from agent_graph.store.requests import check_new, reserve

Place: TypeAlias = tuple[int, int, str, str]
"""run_no, seq, head and status of a run."""

# where a run stands
PLACE: Final = "SELECT run_no, seq, head, status FROM runs WHERE run_id = ?"
# makes a run
CREATE: Final = """
INSERT INTO runs (seq, head, started_at_ms, finished_at_ms, error, usage, final_state, status,
                  run_id, graph_id, graph_version, thread_id, created_at_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# moves a run on whose status stays: no index is touched
ADVANCE: Final = """
UPDATE runs SET seq = ?, head = ?, started_at_ms = ?, finished_at_ms = ?, error = ?, usage = ?, final_state = ?
WHERE run_no = ?"""
# moves a run on and gives it another status
ADVANCE_TO: Final = """
UPDATE runs SET seq = ?, head = ?, started_at_ms = ?, finished_at_ms = ?, error = ?, usage = ?, final_state = ?,
                status = ?
WHERE run_no = ?"""
# appends an event
APPEND: Final = "INSERT INTO events (event_no, body) VALUES (?, ?)"
# the events of a run between two numbers, in order, as bytes: a damaged text could not be decoded
EVENTS: Final = """
SELECT event_no, CAST(body AS BLOB) FROM events WHERE event_no >= ? AND event_no < ? ORDER BY event_no LIMIT ?"""
# replaces a run's snapshot
SNAPSHOT: Final = "INSERT OR REPLACE INTO snapshots (run_no, seq, digest, data) VALUES (?, ?, ?, ?)"
# a run's latest snapshot
LATEST: Final = "SELECT seq, digest, data FROM snapshots WHERE run_no = ?"
# runs as lists show them, newest first
LIST: Final = """
SELECT run_no, run_id, graph_id, graph_version, thread_id, status, seq, created_at_ms, started_at_ms, finished_at_ms,
       error, final_state, usage
FROM runs {where} ORDER BY run_no DESC LIMIT :fetched"""
IS: Final = "run_id = :run_id"
HAS_STATUS: Final = "status IN (SELECT value FROM json_each(:statuses))"
OF_GRAPH: Final = "graph_id = :graph_id"
OF_THREAD: Final = "thread_id = :thread_id AND thread_id <> ''"
BEFORE: Final = "run_no < :before"
# how many runs have each status
COUNTS: Final = "SELECT status, count(*) FROM runs GROUP BY status"

_SEQ_BITS: Final = 32
_ALL: Final = -1


class SqliteRuns:
    """`base.RunStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def commit(self, commit: Commit) -> None:
        await self._database.write(partial(_commit, commit))

    async def get(self, run_id: str) -> RunRow:
        rows = await self._database.read(partial(_select, [IS], {"run_id": run_id, "fetched": 1}))
        if not rows:
            raise _not_found(run_id)
        return rows[0][1]

    async def load(self, run_id: str) -> tuple[bytes | None, tuple[Event, ...]]:
        return await self._database.read(partial(_load, run_id))

    async def events(self, run_id: str, *, first_seq: int = 0, limit: int = 100) -> tuple[StoredEvent, ...]:
        return await self._database.read(partial(_events, run_id, max(first_seq, 0), check_limit(limit)))

    async def verify_chain(self, run_id: str) -> int | None:
        return await self._database.read(partial(_verify, run_id))

    async def list(
        self,
        *,
        statuses: Sequence[str] = (),
        graph_id: str = "",
        thread_id: str = "",
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[tuple[RunRow, ...], str | None]:
        values: dict[str, Any] = {"statuses": json_text(list(statuses)), "graph_id": graph_id, "thread_id": thread_id}
        values["fetched"] = check_limit(limit) + 1
        if cursor is not None:
            values["before"] = number_of("runs", cursor)
        wanted = ((HAS_STATUS, statuses), (OF_GRAPH, graph_id), (OF_THREAD, thread_id), (BEFORE, cursor is not None))
        conditions = [condition for condition, given in wanted if given]
        rows = await self._database.read(partial(_select, conditions, values))
        shown = tuple(row for _, row in rows[:limit])
        return shown, encode_cursor("runs", rows[limit - 1][0]) if len(rows) > limit else None

    async def counts(self) -> dict[str, int]:
        return dict(await self._database.read(lambda connection: connection.execute(COUNTS).fetchall()))


def _commit(commit: Commit, connection: sqlite3.Connection) -> None:
    """All of one commit; whoever calls gives the transaction and undoes it when this raises."""
    check_new(commit.answered, connection)
    run_no, seq, head, status = _place(commit, connection)
    bodies, head = chain.encode(commit.events, seq=seq, head=head)
    moved = _moved(commit.run, seq + len(bodies), head)
    if commit.create:
        run_no = _create(commit.run, moved, connection)
    elif status == commit.run.status:
        connection.execute(ADVANCE, (*moved, run_no))
    else:
        connection.execute(ADVANCE_TO, (*moved, commit.run.status, run_no))
    first = _event_no(run_no, seq)
    connection.executemany(APPEND, [(first + offset, body.decode()) for offset, body in enumerate(bodies)])
    for approval in commit.approvals:
        approvals.keep(approval, run_no, connection)
    if commit.snapshot is not None:
        connection.execute(SNAPSHOT, (run_no, seq + len(bodies), _digest(commit.snapshot), commit.snapshot))
    reserve(commit.answered, connection)


def _place(commit: Commit, connection: sqlite3.Connection) -> Place:
    run_id = commit.run.run_id
    found: Place | None = connection.execute(PLACE, (run_id,)).fetchone()
    if found is None:
        if not commit.create:
            raise _not_found(run_id)
        found = (0, 0, chain.NO_EVENT, "")
    elif commit.create:
        raise SequenceConflict(f"Run {run_id} exists already.", run_id=run_id, seq=found[1])
    if found[1] != commit.expected_seq:
        raise SequenceConflict(
            f"Run {run_id} has {found[1]} events, not {commit.expected_seq}: another writer has moved it on.",
            run_id=run_id,
            seq=found[1],
        )
    return found


def _create(run: RunRow, moved: tuple[Any, ...], connection: sqlite3.Connection) -> int:
    if connection.execute(READ_VERSION, (run.graph_id, run.graph_version)).fetchone() is None:
        raise version_not_found(run.graph_id, run.graph_version)  # a run that nobody could drive on
    rest = (run.status, run.run_id, run.graph_id, run.graph_version, run.thread_id, run.created_at_ms)
    return int(connection.execute(CREATE, (*moved, *rest)).lastrowid or 0)


def _moved(run: RunRow, seq: int, head: str) -> tuple[Any, ...]:
    """The columns that change as a run moves on, in the order of the statements."""
    error = None if run.error is None else json_text(run.error)
    final_state = json_text(run.final_state[0]) if run.final_state else None
    return seq, head, run.started_at_ms, run.finished_at_ms, error, json_text(run.usage), final_state


def _load(run_id: str, connection: sqlite3.Connection) -> tuple[bytes | None, tuple[Event, ...]]:
    run_no, count, head, _ = _existing(run_id, connection)
    snapshot, first = None, 0
    found = connection.execute(LATEST, (run_no,)).fetchone()
    if found is not None and found[1] == _digest(found[2]) and found[0] <= count:
        first, _, snapshot = found
    stored = _stored(run_no, connection, first_seq=first)
    for expected, (seq, _) in enumerate(stored, start=first):
        if seq != expected:
            raise chain.damaged(run_id, expected, "it is missing")
    if first + len(stored) != count:
        raise chain.damaged(run_id, min(first + len(stored), count), "the log does not end where the run does")
    events = [(chain.read(run_id, one), one[1]) for one in stored]
    chain.check_tail(run_id, events, head=head)
    return snapshot, tuple(chain.event_of(run_id, event) for event, _ in events)


def _events(run_id: str, first_seq: int, limit: int, connection: sqlite3.Connection) -> tuple[StoredEvent, ...]:
    run_no, count, _, _ = _existing(run_id, connection)
    if first_seq >= count:
        return ()
    return tuple(chain.read(run_id, one) for one in _stored(run_no, connection, first_seq=first_seq, limit=limit))


def _verify(run_id: str, connection: sqlite3.Connection) -> int | None:
    run_no, count, head, _ = _existing(run_id, connection)
    return chain.first_damaged(_stored(run_no, connection), count=count, head=head)


def _existing(run_id: str, connection: sqlite3.Connection) -> Place:
    found: Place | None = connection.execute(PLACE, (run_id,)).fetchone()
    if found is None:
        raise _not_found(run_id)
    return found


def _stored(
    run_no: int, connection: sqlite3.Connection, *, first_seq: int = 0, limit: int = _ALL
) -> list[chain.Stored]:
    start = _event_no(run_no, 0)
    rows = connection.execute(EVENTS, (start + first_seq, _event_no(run_no + 1, 0), limit))
    return [(event_no - start, body) for event_no, body in rows]


def _event_no(run_no: int, seq: int) -> int:
    return (run_no << _SEQ_BITS) + seq


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _select(
    conditions: Sequence[str], values: Mapping[str, Any], connection: sqlite3.Connection
) -> list[tuple[int, RunRow]]:
    rows = connection.execute(LIST.format(where=where(conditions)), values)
    return [(row[0], _row(row[1:])) for row in rows]


def _row(columns: tuple[Any, ...]) -> RunRow:
    *plain, error, final_state, usage = columns
    return replace(
        RunRow(*plain),
        error=None if error is None else json_object(error),
        final_state=() if final_state is None else (json_value(final_state),),
        usage=json_object(usage),
    )


def _not_found(run_id: str) -> RunNotFound:
    return RunNotFound(f"There is no run {run_id}.", run_id=run_id)
