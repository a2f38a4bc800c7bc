"""Runs: the one write that moves a run on, and what is read of its log and snapshot; folds nothing."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from agent_graph.core.events import Event
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import AgentGraphError, RunPruned, SequenceConflict
from agent_graph.store import approvals, chain, outbox, outcomes, row_seals, witnesses
from agent_graph.store.base import TERMINAL, Commit, RunRow, RunStatus, StoredEvent
from agent_graph.store.columns import json_text
from agent_graph.store.cursor import BRIEF_ROWS, check_limit
from agent_graph.store.db import Database
from agent_graph.store.graphs import IS_STORED, version_not_found
from agent_graph.store.logs import Verified, event_number, stored
from agent_graph.store.requests import check_new, reserve
from agent_graph.store.run_rows import find_row, list_rows, not_found
from agent_graph.store.sealing import seal_of
from agent_graph.store.waking import next_wake


class Place(NamedTuple):
    """Where a run stands: its number in the database, how many events it has, the last one's hash, its status."""

    run_no: int
    seq: int
    head: str
    status: str


class Extension(NamedTuple):
    """What a commit adds to a run that stands at `after`: encoded events and the columns that change."""

    after: Place
    bodies: list[str]
    columns: tuple[Any, ...]
    head: str
    seal: str | None
    """Of a run that ends."""


NOWHERE: Final = Place(0, 0, chain.NO_EVENT, "")
_PLACES_KEPT: Final = 10_000
_NEITHER_PINNED_NOR_PRUNED: Final = (0, 0)

# where a run stands
PLACE: Final = "SELECT run_no, seq, head, status FROM runs WHERE run_id = ?"
# makes a run
CREATE: Final = """
INSERT INTO runs (seq, head, started_at_ms, finished_at_ms, error, usage, final_state, budget, wake_at_ms, row_seal,
                  status, run_id, graph_id, graph_version, thread_id, created_at_ms, principal, forked_from, made_seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# moves a run on, if it still stands where it is thought to stand; the status stays, so no index is touched
ADVANCE: Final = """
UPDATE runs SET seq = ?, head = ?, started_at_ms = ?, finished_at_ms = ?, error = ?, usage = ?, final_state = ?,
                budget = ?, wake_at_ms = ?, row_seal = ?
WHERE run_no = ? AND head = ?"""
# the same, giving it another status
ADVANCE_TO: Final = """
UPDATE runs SET seq = ?, head = ?, started_at_ms = ?, finished_at_ms = ?, error = ?, usage = ?, final_state = ?,
                budget = ?, wake_at_ms = ?, row_seal = ?, status = ?, seal = ?
WHERE run_no = ? AND head = ?"""
# appends an event
APPEND: Final = "INSERT INTO events (event_no, body) VALUES (?, ?)"
# replaces a run's snapshot
SNAPSHOT: Final = """
INSERT OR REPLACE INTO snapshots (run_no, seq, digest, data, row_seal)
VALUES (?1, ?2, ?3, ?4, row_seal('snapshots.row_seal', ?5, ?2, ?3))"""
# a run's latest snapshot, as bytes whatever was done to it
LATEST: Final = f"""
SELECT seq, digest, CAST(data AS BLOB), {row_seals.holds("snapshots")} FROM snapshots WHERE run_no = ?"""
# how many runs have each status
COUNTS: Final = "SELECT status, count(*) FROM runs WHERE status IN (SELECT value FROM json_each(?)) GROUP BY status"
# the same, of the runs one has started
COUNTS_OF: Final = """
SELECT status, count(*) FROM runs WHERE status IN (SELECT value FROM json_each(?)) AND principal = ? GROUP BY status"""

# the first event that is kept
FIRST: Final = "SELECT first_seq FROM runs WHERE run_no = ?"
# keeps a run from retention, or no longer
PIN: Final = f"""
UPDATE runs SET pinned = ?1, made_seal = {row_seals.resealing("runs", {"pinned": "?1"}, "made_seal")}
WHERE run_id = ?2 AND pinned <> ?1"""
# a run that nobody can drive, although its log does not say so
SET_ASIDE: Final = f"""
UPDATE runs SET status = 'interrupted', error = ?1,
    row_seal = {row_seals.resealing("runs", {"status": "'interrupted'", "error": "?1"})}
WHERE run_id = ?2 AND status NOT IN ('completed', 'failed', 'cancelled')"""


class SqliteRuns:
    """`base.RunStore` over a `Database`.

    It remembers where the runs it writes stand, so that events are encoded before the writer's turn comes, while it
    waits for the disk. The database has the last word: a place that has changed is read and the events encoded anew.
    """

    __slots__ = ("_aside", "_database", "_places", "_verified")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._places: dict[str, Place] = {}
        self._verified = Verified()
        self._aside: dict[str, JsonObject] = {}
        """Runs that read ``interrupted`` with this error, where not even that could be written."""

    @property
    def shares(self) -> bool:
        return self._database.crowded

    async def commit(self, commit: Commit) -> int:
        run_id = commit.run.run_id
        place = NOWHERE if commit.create else self._places.pop(run_id, None)
        rows = self._database.seals
        extension = _extend(commit, place, rows) if place is not None and place.seq == commit.expected_seq else None
        job = partial(write_commit, commit, extension, rows)
        there, weight = await self._database.write(job, brief=commit.snapshot is None)
        self._remember(run_id, there)
        self._aside.pop(run_id, None)
        return weight

    def _remember(self, run_id: str, place: Place) -> None:
        if place.status not in TERMINAL:
            self._places[run_id] = place
            if len(self._places) > _PLACES_KEPT:
                del self._places[next(iter(self._places))]  # the one that was not written to for longest

    async def get(self, run_id: str, *, principal: str = "") -> RunRow:
        return self._seen(await self._database.read(partial(find_row, run_id, principal=principal), brief=True))

    def _seen(self, row: RunRow) -> RunRow:
        error = self._aside.get(row.run_id)
        if error is None or row.status in TERMINAL:
            return row
        return replace(row, status="interrupted", error=error)

    async def load(self, run_id: str) -> tuple[bytes | None, tuple[Event, ...], RunRow]:
        # what is read is folded on the loop's thread at once, which takes longer than reading it
        snapshot, events, row = await self._database.read(partial(_load, run_id), brief=True)
        return snapshot, events, self._seen(row)

    async def events(self, run_id: str, *, first_seq: int = 0, limit: int = 100) -> tuple[StoredEvent, ...]:
        return await self._database.read(
            partial(_events, run_id, self._verified, first_seq=max(first_seq, 0), limit=check_limit(limit))
        )

    async def verify_chain(self, run_id: str) -> int | None:
        return await self._database.read(partial(_verify, run_id))

    async def list(
        self,
        *,
        statuses: Sequence[str] = (),
        graph_id: str = "",
        thread_id: str = "",
        principal: str = "",
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[tuple[RunRow, ...], str | None]:
        query = partial(
            list_rows, statuses=statuses, graph_id=graph_id, thread_id=thread_id, principal=principal,
            limit=check_limit(limit), cursor=cursor,
        )  # fmt: skip
        rows, following = await self._database.read(query, brief=limit <= BRIEF_ROWS)
        return tuple(map(self._seen, rows)), following

    async def next_wake(self, *, passing_over: Sequence[str] = ()) -> tuple[int, str] | None:
        return await self._database.read(partial(next_wake, passing_over))

    async def counts(self, *, principal: str = "") -> dict[str, int]:
        known = json_text([*get_args(RunStatus)])
        query = (COUNTS_OF, (known, principal)) if principal else (COUNTS, (known,))
        return dict(await self._database.read(lambda connection: connection.execute(*query).fetchall()))

    async def pin(self, run_id: str, *, pinned: bool) -> bool:
        await self.get(run_id)
        changed = await self._database.write(lambda connection: connection.execute(PIN, (int(pinned), run_id)).rowcount)
        return bool(changed)

    async def set_aside(self, run_id: str, error: JsonObject) -> None:
        self._places.pop(run_id, None)  # its status is another one now
        try:
            await self._database.write(lambda connection: connection.execute(SET_ASIDE, (json_text(error), run_id)))
        except AgentGraphError:
            self._aside[run_id] = error


def _extend(commit: Commit, place: Place, rows: row_seals.RowSeals) -> Extension:
    run, seq = commit.run, place.seq + len(commit.events)
    bodies, head = chain.encode(commit.events, seq=place.seq, head=place.head)
    error = None if run.error is None else json_text(run.error)
    final_state = json_text(run.final_state[0]) if run.final_state else None
    usage, budget = json_text(run.usage), json_text(run.budget) if run.budget else None
    moved = (seq, head, run.started_at_ms, run.finished_at_ms, error, usage, final_state, budget, run.wake_at_ms)
    columns = (*moved, rows.make("runs.row_seal", run.run_id, run.status, *moved))
    return Extension(place, bodies, columns, head, seal_of(commit, seq, head))


def write_commit(
    commit: Commit, extension: Extension | None, rows: row_seals.RowSeals, connection: sqlite3.Connection
) -> tuple[Place, int]:
    """All of one commit, and the bytes of its events; whoever calls gives the transaction, and undoes it when this
    raises."""
    check_new(commit.answered, connection)
    if commit.create or extension is None or not _advance(commit.run, extension, connection):
        place = _place(commit, connection)
        if extension is None or extension.after != place:
            extension = _extend(commit, place, rows)
        if commit.create:
            place = place._replace(run_no=_create(commit.run, extension.columns, rows, connection))
            if len(commit.events) > 1:  # a fork holds what its origin cited
                witnesses.hold(commit.run.run_id, commit.events, connection)
        else:
            _advance(commit.run, extension, connection)
    else:
        place = extension.after
    first = event_number(place.run_no, place.seq)
    connection.executemany(APPEND, [(first + offset, body) for offset, body in enumerate(extension.bodies)])
    seq = place.seq + len(extension.bodies)
    for approval in commit.approvals:
        approvals.keep(approval, place.run_no, connection)
    if commit.snapshot is not None:
        data = zlib.compress(commit.snapshot, zlib.Z_BEST_SPEED)  # on the connection's thread: nobody waits for it
        connection.execute(SNAPSHOT, (place.run_no, seq, _digest(data), data, commit.run.run_id))
    if commit.run.status in TERMINAL and place.status not in TERMINAL:
        outcomes.count(commit.run, rows, connection)
    if commit.notices:
        outbox.keep(commit.notices, connection)
    reserve(commit.answered, connection)
    weight = sum(map(len, extension.bodies))  # characters, which for most texts are bytes
    return Place(place.run_no, seq, extension.head, commit.run.status), weight


def _place(commit: Commit, connection: sqlite3.Connection) -> Place:
    run_id = commit.run.run_id
    found = connection.execute(PLACE, (run_id,)).fetchone()
    if found is None and not commit.create:
        raise not_found(run_id)
    place = NOWHERE if found is None else Place(*found)
    if commit.create and found is not None:
        raise SequenceConflict(f"Run {run_id} exists already.", run_id=run_id, seq=place.seq)
    if place.seq != commit.expected_seq:
        raise SequenceConflict(
            f"Run {run_id} has {place.seq} events, not {commit.expected_seq}: another writer has moved it on.",
            run_id=run_id,
            seq=place.seq,
        )
    return place


def _advance(run: RunRow, extension: Extension, connection: sqlite3.Connection) -> bool:
    """Whether the run stood where the extension begins, and was moved on."""
    run_no, _, head, status = extension.after
    if status == run.status:
        moved = connection.execute(ADVANCE, (*extension.columns, run_no, head))
    else:
        moved = connection.execute(ADVANCE_TO, (*extension.columns, run.status, extension.seal, run_no, head))
    return moved.rowcount == 1


def _create(run: RunRow, columns: tuple[Any, ...], rows: row_seals.RowSeals, connection: sqlite3.Connection) -> int:
    if connection.execute(IS_STORED, (run.graph_id, run.graph_version)).fetchone() is None:
        raise version_not_found(run.graph_id, run.graph_version)  # a run that nobody could drive on
    made = (
        run.run_id, run.graph_id, run.graph_version, run.thread_id, run.created_at_ms, run.principal,
        json_text(run.forked_from) if run.forked_from else None,
    )  # fmt: skip
    seal = rows.make("runs.made_seal", *made, *_NEITHER_PINNED_NOR_PRUNED)
    return int(connection.execute(CREATE, (*columns, run.status, *made, seal)).lastrowid or 0)


def _load(run_id: str, connection: sqlite3.Connection) -> tuple[bytes | None, tuple[Event, ...], RunRow]:
    row = find_row(run_id, connection)  # what it says can be believed
    run_no, count, head, _ = existing(run_id, connection)
    if _first(run_no, connection):
        raise RunPruned(f"The events of run {run_id} were pruned; its status and its result are kept.", run_id=run_id)
    snapshot, first = None, 0
    found = connection.execute(LATEST, (run_no,)).fetchone()
    if found is not None and found[3] and found[1] == _digest(found[2]) and found[0] <= count:
        first, snapshot = found[0], zlib.decompress(found[2])
    found_events = stored(run_no, connection, first_seq=first)
    for expected, (seq, _) in enumerate(found_events, start=first):
        if seq != expected:
            raise chain.damaged(run_id, expected, "it is missing")
    if first + len(found_events) != count:
        raise chain.damaged(run_id, min(first + len(found_events), count), "the log does not end where the run does")
    events = [(chain.read(run_id, one), one[1]) for one in found_events]
    chain.check_tail(run_id, events, head=head)
    return snapshot, tuple(chain.event_of(run_id, event) for event, _ in events), row


def _events(
    run_id: str, verified: Verified, connection: sqlite3.Connection, *, first_seq: int, limit: int
) -> tuple[StoredEvent, ...]:
    find_row(run_id, connection)  # what its row says can be believed
    run_no, count, head, _ = existing(run_id, connection)
    if first_seq >= count:
        return ()
    first = _first(run_no, connection)
    return verified.page(
        run_id, run_no, connection, count=count, head=head, first=first, first_seq=first_seq, limit=limit
    )


def _verify(run_id: str, connection: sqlite3.Connection) -> int | None:
    run_no, count, head, _ = existing(run_id, connection)
    first = _first(run_no, connection)
    return chain.first_damaged(stored(run_no, connection), first=first, count=count, head=head)


def _first(run_no: int, connection: sqlite3.Connection) -> int:
    (first,) = connection.execute(FIRST, (run_no,)).fetchone()
    return int(first)


def existing(run_id: str, connection: sqlite3.Connection) -> Place:
    found = connection.execute(PLACE, (run_id,)).fetchone()
    if found is None:
        raise not_found(run_id)
    return Place(*found)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
