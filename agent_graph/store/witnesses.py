"""Captured sources and the runs that cite them; checks no seal: whether one is as it was captured, the engine says."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from agent_graph.core.events import Event, EvidenceChecked
from agent_graph.errors import WitnessNotFound
from agent_graph.store.base import Answered, WitnessRow
from agent_graph.store.columns import json_text
from agent_graph.store.db import Database
from agent_graph.store.requests import check_new, reserve

# keeps one; one of that id stays as it is
KEEP: Final = """
INSERT OR IGNORE INTO witnesses (witness_id, principal, locator, media_type, authority_class, retrieved_at_ms,
    captured_at_ms, via, digest, content, key_id, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# one of them, of a principal or ("") of anybody
FIND: Final = """
SELECT witness_id, principal, locator, media_type, authority_class, retrieved_at_ms, captured_at_ms, via, digest,
    content, key_id, seal
FROM witnesses WHERE witness_id = ?1 AND (?2 = '' OR principal = ?2)"""
# remembers that a run cites it
USE: Final = """
INSERT OR IGNORE INTO witness_uses SELECT witness_no, run_no FROM witnesses, runs WHERE witness_id = ? AND run_id = ?"""
# those captured before a moment, and whether a run holds them that is not among some
AGED: Final = """
SELECT witness_id, length(content), EXISTS (
    SELECT 1 FROM witness_uses JOIN runs USING (run_no)
    WHERE witness_uses.witness_no = witnesses.witness_no AND run_id NOT IN (SELECT value FROM json_each(?2)))
FROM witnesses WHERE captured_at_ms < ?1 ORDER BY witness_no"""
# takes one, unless some run cites it by now
TAKE: Final = """
DELETE FROM witnesses WHERE witness_id = ? AND witness_no NOT IN (SELECT witness_no FROM witness_uses)"""


class SqliteWitnesses:
    """`base.WitnessStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, row: WitnessRow, *, answered: Answered | None = None) -> bool:
        return await self._database.write(partial(_add, row, answered))

    async def get(self, witness_id: str, *, principal: str = "") -> WitnessRow:
        found = await self._database.read(partial(_find, witness_id, principal))
        if found is None:
            raise WitnessNotFound(f"There is no witness {witness_id}.", witness_id=witness_id)
        return found

    async def cite(self, witness_ids: Sequence[str], *, run_id: str, principal: str = "") -> tuple[WitnessRow, ...]:
        return await self._database.write(partial(_cite, tuple(witness_ids), run_id, principal))

    async def idle(self, *, before_ms: int, going: Sequence[str] = ()) -> tuple[tuple[tuple[str, int], ...], int]:
        return await self._database.read(partial(_idle, before_ms, json_text(list(going))))

    async def prune(self, witness_ids: Sequence[str]) -> tuple[str, ...]:
        return await self._database.write(partial(_prune, tuple(witness_ids)))


def _add(row: WitnessRow, answered: Answered | None, connection: sqlite3.Connection) -> bool:
    check_new(answered, connection)
    values = (
        row.witness_id, row.principal, row.locator, row.media_type, row.authority_class, row.retrieved_at_ms,
        row.captured_at_ms, row.via, row.digest, row.content, row.key_id, row.seal,
    )  # fmt: skip
    kept = connection.execute(KEEP, values).rowcount > 0
    reserve(answered, connection)
    return kept


def _find(witness_id: str, principal: str, connection: sqlite3.Connection) -> WitnessRow | None:
    columns: tuple[Any, ...] | None = connection.execute(FIND, (witness_id, principal)).fetchone()
    return None if columns is None else WitnessRow(*columns)


def _cite(
    witness_ids: tuple[str, ...], run_id: str, principal: str, connection: sqlite3.Connection
) -> tuple[WitnessRow, ...]:
    found = []
    for witness_id in witness_ids:
        if (row := _find(witness_id, principal, connection)) is not None:
            connection.execute(USE, (witness_id, run_id))
            found.append(row)
    return tuple(found)


def hold(run_id: str, events: Sequence[Event], connection: sqlite3.Connection) -> None:
    """Within the commit that makes a run of another's events: it holds what these cite."""
    cited = {one["witness_id"] for event in events if isinstance(event.fact, EvidenceChecked)
             for one in event.fact.witnesses}  # fmt: skip
    connection.executemany(USE, [(witness_id, run_id) for witness_id in cited])


def _idle(before_ms: int, going: str, connection: sqlite3.Connection) -> tuple[tuple[tuple[str, int], ...], int]:
    rows = connection.execute(AGED, (before_ms, going)).fetchall()
    idle = tuple((witness_id, count) for witness_id, count, held in rows if not held)
    return idle, len(rows) - len(idle)


def _prune(witness_ids: tuple[str, ...], connection: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(one for one in witness_ids if connection.execute(TAKE, (one,)).rowcount)
