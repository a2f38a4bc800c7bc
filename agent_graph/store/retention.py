"""What may be deleted and what a file gives back: by which rule, is the engine's; no run that lives is touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.store import outbox, row_seals
from agent_graph.store.base import Answered, Ended, Notice, Space
from agent_graph.store.columns import json_text
from agent_graph.store.connection import INCREMENTAL
from agent_graph.store.db import Database
from agent_graph.store.logs import event_number
from agent_graph.store.outcomes import count
from agent_graph.store.requests import check_new, reserve
from agent_graph.store.run_rows import find_row

STEP_PAGES: Final = 512
"""Pages given back in one transaction: commits pass between two steps."""

# runs that have ended and are not pinned, the first to end first
ENDED: Final = """
SELECT run_id, graph_id, status, coalesce(finished_at_ms, created_at_ms), first_seq > 0 FROM runs
WHERE status IN ('completed', 'failed', 'cancelled') AND pinned = 0
ORDER BY coalesce(finished_at_ms, created_at_ms), run_no"""
# the same of one run, asked again when its turn has come
MAY_GO: Final = """
SELECT run_no FROM runs WHERE run_id = ? AND status IN ('completed', 'failed', 'cancelled') AND pinned = 0"""
# bytes of a run's record
WEIGH_EVENTS: Final = "SELECT total(length(CAST(body AS BLOB))) FROM events WHERE event_no >= ? AND event_no < ?"
WEIGH_SNAPSHOT: Final = "SELECT total(length(data)) FROM snapshots WHERE run_no = ?"
WEIGH_APPROVALS: Final = "SELECT total(length(CAST(body AS BLOB))) FROM approvals WHERE run_no = ?"
NUMBER: Final = "SELECT run_no FROM runs WHERE run_id = ?"
# takes a run's record
TAKE_EVENTS: Final = "DELETE FROM events WHERE event_no >= ? AND event_no < ?"
TAKE_SNAPSHOT: Final = "DELETE FROM snapshots WHERE run_no = ?"
TAKE_APPROVALS: Final = "DELETE FROM approvals WHERE run_no = ?"
TAKE_ANSWERS: Final = "DELETE FROM answers WHERE run_no = ?"
TAKE_CITATIONS: Final = "DELETE FROM witness_uses WHERE run_no = ?"
# says of the row that is left where its events would begin
MARK: Final = f"""
UPDATE runs SET first_seq = seq, made_seal = {row_seals.resealing("runs", {"first_seq": "runs.seq"}, "made_seal")}
WHERE run_no = ?"""
# takes the row, and with it the answers under idempotency keys
FORGET: Final = "DELETE FROM runs WHERE run_no = ?"

# ends a run by its row alone
WRITE_OFF: Final = f"""
UPDATE runs SET status = 'cancelled', error = ?1, finished_at_ms = ?2,
    row_seal = {row_seals.resealing("runs", {"status": "'cancelled'", "error": "?1", "finished_at_ms": "?2"})}
WHERE run_id = ?3 AND status NOT IN ('completed', 'failed', 'cancelled')"""
# its approvals can be decided no longer
WITHDRAW: Final = f"""
UPDATE approvals SET status = 'withdrawn', row_seal = {row_seals.resealing("approvals", {"status": "'withdrawn'"})}
WHERE run_no = ? AND status = 'pending'"""


class _Pages(NamedTuple):
    size: int
    used: int
    free: int


class SqliteRetention:
    """`base.RetentionStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ended(self) -> tuple[Ended, ...]:
        return await self._database.read(_ended)

    async def weigh(self, run_id: str) -> int:
        return await self._database.read(partial(_weigh, run_id))

    async def prune(self, run_ids: Sequence[str], *, forget: bool = False) -> tuple[str, ...]:
        return await self._database.write(partial(_prune, tuple(run_ids), forget))

    async def write_off(
        self, run_id: str, error: JsonObject, *, at_ms: int, answered: Answered | None, notices: Sequence[Notice] = ()
    ) -> bool:
        job = partial(
            _write_off, run_id, json_text(error), at_ms=at_ms, answered=answered, notices=notices,
            seals=self._database.seals,
        )  # fmt: skip
        return await self._database.write(job)

    async def space(self) -> Space:
        pages = await self._database.read(_pages)
        return Space(pages.size * (pages.used + pages.free), pages.size * pages.used)

    async def compact(self) -> None:
        if await self._database.read(_auto_vacuum) == INCREMENTAL:
            while await self._database.write(_give_back):
                pass
        else:  # made before pages could be given back one by one
            await self._database.aside(_write_anew)
        await self._database.aside(_merge_log)


def _ended(connection: sqlite3.Connection) -> tuple[Ended, ...]:
    rows = connection.execute(ENDED)
    return tuple(
        Ended(run_id, graph_id, status, at_ms, bool(pruned)) for run_id, graph_id, status, at_ms, pruned in rows
    )


def _weigh(run_id: str, connection: sqlite3.Connection) -> int:
    found = connection.execute(NUMBER, (run_id,)).fetchone()
    if found is None:
        return 0
    (run_no,) = found
    (events,) = connection.execute(WEIGH_EVENTS, _range(run_no)).fetchone()
    rest = (connection.execute(query, (run_no,)).fetchone()[0] for query in (WEIGH_SNAPSHOT, WEIGH_APPROVALS))
    return int(events + sum(rest))


def _range(run_no: int) -> tuple[int, int]:
    return event_number(run_no, 0), event_number(run_no + 1, 0)


def _prune(run_ids: tuple[str, ...], forget: bool, connection: sqlite3.Connection) -> tuple[str, ...]:
    done = []
    for run_id in run_ids:
        found = connection.execute(MAY_GO, (run_id,)).fetchone()
        if found is None:  # pinned meanwhile, or gone
            continue
        (run_no,) = found
        connection.execute(TAKE_EVENTS, _range(run_no))
        connection.execute(TAKE_SNAPSHOT, (run_no,))
        connection.execute(TAKE_APPROVALS, (run_no,))
        connection.execute(TAKE_ANSWERS, (run_no,))
        connection.execute(TAKE_CITATIONS, (run_no,))
        connection.execute(FORGET if forget else MARK, (run_no,))
        done.append(run_id)
    return tuple(done)


def _write_off(
    run_id: str, error: str, connection: sqlite3.Connection, *, at_ms: int, answered: Answered | None,
    notices: Sequence[Notice], seals: row_seals.RowSeals,
) -> bool:  # fmt: skip
    check_new(answered, connection)
    if not connection.execute(WRITE_OFF, (error, at_ms, run_id)).rowcount:
        return False
    count(find_row(run_id, connection), seals, connection)
    connection.execute(WITHDRAW, connection.execute(NUMBER, (run_id,)).fetchone())
    outbox.keep(notices, connection)
    reserve(answered, connection)
    return True


def _pages(connection: sqlite3.Connection) -> _Pages:
    size, count, free = (_pragma(name, connection) for name in ("page_size", "page_count", "freelist_count"))
    return _Pages(size, count - free, free)


def _auto_vacuum(connection: sqlite3.Connection) -> int:
    return _pragma("auto_vacuum", connection)


def _pragma(name: str, connection: sqlite3.Connection) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _give_back(connection: sqlite3.Connection) -> bool:
    """One step; whether there is more to give back."""
    connection.execute(f"PRAGMA incremental_vacuum({STEP_PAGES})").fetchall()  # a page is freed for each row fetched
    return _pages(connection).free > 0


def _write_anew(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
    connection.execute("VACUUM")


def _merge_log(connection: sqlite3.Connection) -> None:
    """Until the write-ahead log is merged, the file is as long as it was."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
