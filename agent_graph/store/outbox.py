"""What is to be told outside, in the order it happened, and what came of it; tells nobody and never says when."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final

from agent_graph.store.base import Notice, Pending, Telling
from agent_graph.store.columns import json_object, json_text
from agent_graph.store.db import Database

# one more to tell
KEEP: Final = "INSERT INTO outbox (target, notice_id, at_ms, body) VALUES (?, ?, ?, ?)"
# the first whose moment has come
DUE: Final = """
SELECT notice_no, notice_id, at_ms, body, tries FROM outbox WHERE target = ? AND next_at_ms <= ?
ORDER BY notice_no LIMIT 1"""
# the moment of the next
NEXT: Final = "SELECT min(next_at_ms) FROM outbox WHERE target = ?"
# gone from the list, for good or ill
TAKE: Final = "DELETE FROM outbox WHERE notice_no = ?"
LATER: Final = "UPDATE outbox SET tries = tries + 1, next_at_ms = ? WHERE notice_no = ?"
# all but the so many newest
TRIM: Final = """
DELETE FROM outbox WHERE target = ?1 AND notice_no <= (
    SELECT notice_no FROM outbox WHERE target = ?1 ORDER BY notice_no DESC LIMIT 1 OFFSET ?2)"""
# what came of it
TOLD: Final = """
INSERT INTO told VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (target) DO UPDATE
SET delivered = delivered + excluded.delivered, given_up = given_up + excluded.given_up,
    delivered_at_ms = coalesce(excluded.delivered_at_ms, delivered_at_ms),
    failed_at_ms = coalesce(excluded.failed_at_ms, failed_at_ms),
    failure = CASE WHEN excluded.failed_at_ms IS NULL THEN failure ELSE excluded.failure END"""
# how each target stands
STATES: Final = """
SELECT target, (SELECT count(*) FROM outbox AS o WHERE o.target = every.target), coalesce(delivered, 0),
    coalesce(given_up, 0), delivered_at_ms, failed_at_ms, coalesce(failure, '')
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
    return tuple(Telling(*row) for row in connection.execute(STATES))


def _due(target: str, now_ms: int, connection: sqlite3.Connection) -> Pending | int | None:
    found = connection.execute(DUE, (target, now_ms)).fetchone()
    if found is not None:
        number, notice_id, at_ms, body, tries = found
        return Pending(number, notice_id, at_ms, json_object(body), tries)
    (next_at_ms,) = connection.execute(NEXT, (target,)).fetchone()
    return None if next_at_ms is None else int(next_at_ms)


def _delivered(target: str, number: int, at_ms: int, connection: sqlite3.Connection) -> None:
    if connection.execute(TAKE, (number,)).rowcount:
        connection.execute(TOLD, (target, 1, 0, at_ms, None, ""))


def _failed(
    target: str, number: int, connection: sqlite3.Connection, *, at_ms: int, why: str, next_at_ms: int | None, most: int
) -> None:
    given_up = 0
    if next_at_ms is None:
        given_up = connection.execute(TAKE, (number,)).rowcount
    else:
        connection.execute(LATER, (next_at_ms, number))
    given_up += connection.execute(TRIM, (target, most)).rowcount
    connection.execute(TOLD, (target, 0, given_up, None, at_ms, why))
