"""Reads the event log of a run, and only what is what was written: nothing of a log that does not hold together.

The chain is followed to its head, which stands in the run's sealed row, once; then no further than what has been added
since.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from agent_graph.store import chain
from agent_graph.store.base import StoredEvent

# the events of a run between two numbers, in order, as bytes: a damaged text could not be decoded
EVENTS: Final = """
SELECT event_no, CAST(body AS BLOB) FROM events WHERE event_no >= ? AND event_no < ? ORDER BY event_no LIMIT ?"""

SEQ_BITS: Final = 32
_ALL: Final = -1
_KEPT: Final = 1_000


def event_number(run_no: int, seq: int) -> int:
    """Where an event lies: the events of a run stand together, in order."""
    return (run_no << SEQ_BITS) + seq


def stored(run_no: int, connection: sqlite3.Connection, *, first_seq: int = 0, limit: int = _ALL) -> list[chain.Stored]:
    """Events of the run with that number, from `first_seq` on, whatever was done to them."""
    start = event_number(run_no, 0)
    rows = connection.execute(EVENTS, (start + first_seq, event_number(run_no + 1, 0), limit))
    return [(event_no - start, body) for event_no, body in rows]


class Verified:
    """The logs that were found to hold together, each up to an event and with the hash of that one."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}

    def page(
        self, run_id: str, run_no: int, connection: sqlite3.Connection, *, count: int, head: str, first: int,
        first_seq: int, limit: int,
    ) -> tuple[StoredEvent, ...]:  # fmt: skip
        """Events from `first_seq` on of a run of `count` events, of which those before `first` are kept no longer.
        Raises `StoreCorrupt` when any event of the run is not what was written."""
        if self._known.get(run_id) != (count, head):
            self._follow(run_id, run_no, connection, count=count, head=head, first=first)
        found = stored(run_no, connection, first_seq=first_seq, limit=limit)
        events = [chain.read(run_id, one) for one in found]
        for (_, data), event in zip(found, events[1:], strict=False):
            if hashlib.sha256(data).hexdigest() != event.body.get("prev"):
                raise chain.damaged(run_id, event.seq, "it does not follow the one before it")
        return tuple(events)

    def _follow(
        self, run_id: str, run_no: int, connection: sqlite3.Connection, *, count: int, head: str, first: int
    ) -> None:
        known = self._known.pop(run_id, None)
        start, prev = known if known is not None and first <= known[0] <= count else (first, "")
        prev = prev or ("" if first else chain.NO_EVENT)
        added = stored(run_no, connection, first_seq=start)
        if not _follows(added, start=start, prev=prev, count=count, head=head):
            whole = stored(run_no, connection)
            seq = chain.first_damaged(whole, first=first, count=count, head=head)
            raise chain.damaged(run_id, start if seq is None else seq, "it is not what was written")
        self._known[run_id] = (count, head)
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]


def _follows(events: Sequence[chain.Stored], *, start: int, prev: str, count: int, head: str) -> bool:
    """Whether they continue a chain that stood at `start` with `prev` ("" = not known) and end with `head`."""
    links = [chain.link(seq, one) for seq, one in enumerate(events, start)]
    if start + len(links) != count:
        return False
    if not links:
        return not prev or prev == head
    if links[0][1] is None or (prev and links[0][1] != prev) or links[-1][0] != head:
        return False
    return all(made == following for (made, _), (_, following) in pairwise(links))
