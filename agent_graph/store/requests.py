"""Answers under idempotency keys: written in the transaction of what they answer for, and never alone."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Final

from agent_graph.errors import IdempotencyConflict
from agent_graph.store import row_seals
from agent_graph.store.base import AlreadyAnswered, Answered
from agent_graph.store.columns import json_object, json_text
from agent_graph.store.db import Database

# what was answered under a key
FIND: Final = f"SELECT request_digest, answer, run_id, {row_seals.holds('requests')} FROM requests WHERE key = ?"
# takes a key for good
RESERVE: Final = """
INSERT INTO requests (key, request_digest, answer, run_id, row_seal)
VALUES (?1, ?2, ?3, ?4, row_seal('requests.row_seal', ?1, ?2, ?3, ?4))"""


class SqliteRequests:
    """`base.RequestStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: str) -> Answered | None:
        return await self._database.read(partial(find, key))


def find(key: str, connection: sqlite3.Connection) -> Answered | None:
    row = connection.execute(FIND, (key,)).fetchone()
    if row is None:
        return None
    request_digest, answer, run_id, holds = row
    if not holds:
        raise row_seals.damaged("requests", key)
    return Answered(key, request_digest, json_object(answer), run_id or "")


def check_new(answered: Answered | None, connection: sqlite3.Connection) -> None:
    """Before anything else of a write: raises `AlreadyAnswered` or `IdempotencyConflict` when the key is taken."""
    found = None if answered is None else find(answered.key, connection)
    if answered is None or found is None:
        return
    if found.request_digest == answered.request_digest:
        raise AlreadyAnswered(found)
    raise IdempotencyConflict(
        f"The idempotency key {answered.key!r} was used for another request. Use a new key.", key=answered.key
    )


def reserve(answered: Answered | None, connection: sqlite3.Connection) -> None:
    """After all else of a write, when the run it belongs to exists."""
    if answered is not None:
        connection.execute(
            RESERVE, (answered.key, answered.request_digest, json_text(answered.answer), answered.run_id or None)
        )
