"""What is to be told outside, in the order it happened, and what came of it; tells nobody and never says when."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from agent_graph.store import row_seals
from agent_graph.store.base import Notice, Pending, Telling
from agent_graph.store.columns import json_object, json_text
from agent_graph.store.db import Database

# one more to tell
KEEP: Final = """
INSERT INTO outbox (target, notice_id, at_ms, body, row_seal)
VALUES (?1, ?2, ?3, ?4, row_seal('outbox.row_seal', ?1, ?2, ?3, ?4, 0, 0))"""
# the first whose moment has come; one that is not what was written is never told
DUE: Final = f"""
SELECT notice_no, notice_id, at_ms, body, tries FROM outbox WHERE target = ? AND next_at_ms <= ?
AND {row_seals.holds("outbox")} ORDER BY notice_no LIMIT 1"""
# the moment of the next
NEXT: Final = f"SELECT min(next_at_ms) FROM outbox WHERE target = ? AND {row_seals.holds('outbox')}"
# gone from the list, for good or ill
TAKE: Final = "DELETE FROM outbox WHERE notice_no = ?"
LATER: Final = f"""
UPDATE outbox SET tries = tries + 1, next_at_ms = ?1,
    row_seal = {row_seals.resealing("outbox", {"tries": "outbox.tries + 1", "next_at_ms": "?1"})}
WHERE notice_no = ?2"""
# all but the so many newest
TRIM: Final = """
DELETE FROM outbox WHERE target = ?1 AND notice_no <= (
    SELECT notice_no FROM outbox WHERE target = ?1 ORDER BY notice_no DESC LIMIT 1 OFFSET ?2)"""
# what came of it
TOLD: Final = """
INSERT INTO told VALUES (?, ?, ?, ?, ?, ?, '') ON CONFLICT (target) DO UPDATE
SET delivered = delivered + excluded.delivered, given_up = given_up + excluded.given_up,
    delivered_at_ms = coalesce(excluded.delivered_at_ms, delivered_at_ms),
    failed_at_ms = coalesce(excluded.failed_at_ms, failed_at_ms),
    failure = CASE WHEN excluded.failed_at_ms IS NULL THEN failure ELSE excluded.failure END"""
# whether what is known of a target is what was written, and the seal over what it has become
HOLDS: Final = f"SELECT {row_seals.holds('told')} FROM told WHERE target = ?"
SEAL: Final = f"UPDATE told SET row_seal = {row_seals.seal('told')} WHERE target = ?"
# how each target stands
STATES: Final = f"""
SELECT target, (SELECT count(*) FROM outbox AS o WHERE o.target = every.target), coalesce(delivered, 0),
    coalesce(given_up, 0), delivered_at_ms, failed_at_ms, coalesce(failure, ''),
    told.target IS NULL OR {row_seals.holds("told")}
FROM (SELECT target FROM told UNION SELECT DISTINCT target FROM outbox) AS every LEFT JOIN told USING (target)
ORDER BY target"""


class SqliteOutbox:
    """`base.OutboxStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, target: str, *, now_ms: int) -> Pending | int | None:
        return await self._database.read(partial(_due, target, now_ms))

    async def delivered(self, target: str, number: int, *, at_ms: int) -> None:
        await self._database.write(partial(_delivered, target, number, at_ms))

    async def failed(
        self, target: str, number: int, *, at_ms: int, why: str, next_at_ms: int | None, most: int
    ) -> None:
        job = partial(_failed, target, number, at_ms=at_ms, why=why, next_at_ms=next_at_ms, most=most)
        await self._database.write(job)

    async def states(self) -> tuple[Telling, ...]:
        return await self._database.read(states)


def keep(notices: Sequence[Notice], connection: sqlite3.Connection) -> None:
    """Write them within the transaction of what they tell of."""
    rows = [(target, one.notice_id, one.at_ms, json_text(one.body)) for one in notices for target in one.targets]
    connection.executemany(KEEP, rows)


def states(connection: sqlite3.Connection) -> tuple[Telling, ...]:
    """How each target stands that was ever to be told anything."""
    return tuple(map(_state, connection.execute(STATES)))


def _state(columns: tuple[Any, ...]) -> Telling:
    *known, holds = columns
    if holds:
        return Telling(*known)
    return Telling(str(known[0]), int(known[1]), 0, 0, None, 0, "STORE_CORRUPT: its counts are not what was written")


def _told(values: tuple[Any, ...], connection: sqlite3.Connection) -> None:
    target = values[:1]
    before = connection.execute(HOLDS, target).fetchone()
    connection.execute(TOLD, values)
    if before is None or before[0]:  # what was wrong before does not become right
        connection.execute(SEAL, target)


def _due(target: str, now_ms: int, connection: sqlite3.Connection) -> Pending | int | None:
    found = connection.execute(DUE, (target, now_ms)).fetchone()
    if found is not None:
        number, notice_id, at_ms, body, tries = found
        return Pending(number, notice_id, at_ms, json_object(body), tries)
    (next_at_ms,) = connection.execute(NEXT, (target,)).fetchone()
    return None if next_at_ms is None else int(next_at_ms)


def _delivered(target: str, number: int, at_ms: int, connection: sqlite3.Connection) -> None:
    if connection.execute(TAKE, (number,)).rowcount:
        _told((target, 1, 0, at_ms, None, ""), connection)


def _failed(
    target: str, number: int, connection: sqlite3.Connection, *, at_ms: int, why: str, next_at_ms: int | None, most: int
) -> None:
    given_up = 0
    if next_at_ms is None:
        given_up = connection.execute(TAKE, (number,)).rowcount
    else:
        connection.execute(LATER, (next_at_ms, number))
    given_up += connection.execute(TRIM, (target, most)).rowcount
    _told((target, 0, given_up, None, at_ms, why), connection)
