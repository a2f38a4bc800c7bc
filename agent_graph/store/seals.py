"""Seals of runs that have ended, read together with the log they commit to; makes none and checks none."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Final

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import RunPruned
from agent_graph.store.base import SealedLog
from agent_graph.store.columns import json_object, json_text
from agent_graph.store.db import Database
from agent_graph.store.logs import stored
from agent_graph.store.run_rows import not_found

# what a seal is of
SEALED: Final = "SELECT run_no, status, finished_at_ms, seq, head, first_seq, seal FROM runs WHERE run_id = ?"
# seals a run that had ended without a seal
SEAL_LATE: Final = """
UPDATE runs SET seal = ? WHERE run_id = ? AND seal IS NULL AND status IN ('completed', 'failed', 'cancelled')"""


class SqliteSeals:
    """`base.SealStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, run_id: str) -> SealedLog:
        return await self._database.read(partial(_of, run_id))

    async def put_late(self, run_id: str, seal: JsonObject) -> bool:
        change = (json_text(seal), run_id)
        changed = await self._database.write(lambda connection: connection.execute(SEAL_LATE, change).rowcount)
        return bool(changed)


def _of(run_id: str, connection: sqlite3.Connection) -> SealedLog:
    found = connection.execute(SEALED, (run_id,)).fetchone()
    if found is None:
        raise not_found(run_id)
    run_no, status, finished_at_ms, count, head, first_seq, seal = found
    if first_seq:
        message = f"The events of run {run_id} were pruned: there is nothing left that a receipt could be made of."
        raise RunPruned(message, run_id=run_id)
    events = stored(run_no, connection)
    return SealedLog(
        run_id, status, finished_at_ms, tuple(body for _, body in events), count, f"sha256:{head}",
        None if seal is None else json_object(seal),
    )  # fmt: skip
