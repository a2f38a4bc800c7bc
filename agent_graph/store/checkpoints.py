"""The snapshot that is kept of a run, read to be looked at; folds nothing, and no run is driven by it."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from functools import partial

from agent_graph.errors import CheckpointIntegrityFailure, CheckpointNotFound
from agent_graph.store.base import Snapshot
from agent_graph.store.db import Database
from agent_graph.store.runs import LATEST, existing


class SqliteCheckpoints:
    """`base.CheckpointStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def latest(self, run_id: str) -> Snapshot:
        return await self._database.read(partial(_latest, run_id))


def _latest(run_id: str, connection: sqlite3.Connection) -> Snapshot:
    place = existing(run_id, connection)
    found = connection.execute(LATEST, (place.run_no,)).fetchone()
    if found is None:
        raise CheckpointNotFound(
            f"Run {run_id} has {place.seq} events and no snapshot: one is kept only of a run with many. Its "
            "state after any event is what the events say.",
            run_id=run_id,
            events=place.seq,
        )
    count, kept, data, holds = found
    digest = hashlib.sha256(data).hexdigest()
    if not holds or digest != kept or not 0 < count <= place.seq:
        raise damaged(run_id, count - 1, "its bytes are not those that were written")
    try:
        return Snapshot(run_id, count - 1, f"sha256:{digest}", len(data), place.seq, zlib.decompress(data))
    except zlib.error:
        raise damaged(run_id, count - 1, "it cannot be unpacked") from None


def damaged(run_id: str, seq: int, what: str) -> CheckpointIntegrityFailure:
    """The refusal of a snapshot that cannot be trusted."""
    return CheckpointIntegrityFailure(
        f"The snapshot of run {run_id} cannot be trusted: {what}. The run itself is in its events, and goes on.",
        run_id=run_id,
        seq=seq,
    )
