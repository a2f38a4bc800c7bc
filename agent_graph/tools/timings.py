"""How long what an event ends took: told where events are shown, from the event that began it, and stored nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_graph.store.base import Store, StoredEvent

ATTEMPT_ENDS: Final = frozenset({"node_finished", "node_failed", "node_retried"})
RUN_ENDS: Final = frozenset({"run_completed", "run_failed", "run_cancelled"})
PAGE: Final = 200
LOOKED_BACK: Final = 2_000
"""Events before a page among which the beginnings of what ends on it are looked for."""


async def durations(store: Store, run_id: str, events: Sequence[StoredEvent]) -> dict[int, int]:
    """Milliseconds by seq: of the attempt that an event ends, waiting for a place at the host included; of the run.

    One that began very many events before the page is not told of.
    """
    began: dict[str, int] = {}
    found: dict[int, int] = {}
    unknown: dict[str, StoredEvent] = {}
    for event in events:
        kind, firing = event.body["type"], str(event.body.get("firing"))
        if kind == "node_started":
            began[firing] = event.at_ms
        elif kind in ATTEMPT_ENDS and firing in began:
            found[event.seq] = event.at_ms - began.pop(firing)
        elif kind in ATTEMPT_ENDS:
            unknown[firing] = event
        elif kind in RUN_ENDS:
            started_at_ms = (await store.runs.get(run_id)).started_at_ms
            if started_at_ms is not None:
                found[event.seq] = event.at_ms - started_at_ms
    if unknown:
        await _look_back(store, run_id, first_seq=events[0].seq, unknown=unknown, found=found)
    return found


async def _look_back(
    store: Store, run_id: str, *, first_seq: int, unknown: dict[str, StoredEvent], found: dict[int, int]
) -> None:
    end, stop = first_seq, max(0, first_seq - LOOKED_BACK)
    while end > stop and unknown:
        start = max(stop, end - PAGE)
        for event in reversed(await store.runs.events(run_id, first_seq=start, limit=end - start)):
            if event.body["type"] == "node_started" and (ended := unknown.pop(str(event.body["firing"]), None)):
                found[ended.seq] = ended.at_ms - event.at_ms
        end = start
