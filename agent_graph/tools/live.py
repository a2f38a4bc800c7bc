"""One run as somebody watches it: its events from a point on, text as it streams, and its status after every change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.notify import ModelDelta
from agent_graph.store.base import TERMINAL
from agent_graph.tools.deps import Deps
from agent_graph.tools.history import event_page

STATUS: Final = "run_status"
DELTA: Final = "model_delta"
PAGE: Final = 200


async def follow(deps: Deps, run_id: str, *, cursor: int = 0) -> AsyncIterator[JsonObject]:
    """Live items of a run until it has ended; close it to stop watching.

    Items are the events of ``graph_run_events`` from seq `cursor` on; ``{type: "model_delta", number, firing, kind,
    text}``, which is stored nowhere; and after every change, when all its events were given, ``{type: "run_status",
    status, driven}``. `driven` is whether this process moves the run. Raises `RunNotFound`.
    """
    notify = deps.supervisor.shell.notify
    watch = notify.watch(run_id)
    try:
        known = 0
        row = await deps.store.runs.get(run_id)
        live = aiter(watch)
        while True:
            if row.seq > known:
                known = row.seq
                while cursor < known:
                    page, cursor = await event_page(
                        deps, run_id, cursor=cursor, limit=PAGE, max_bytes=deps.limits.result_bytes
                    )
                    for event in page:
                        assert isinstance(event, dict)
                        yield event
                yield {"type": STATUS, "status": row.status, "driven": deps.supervisor.drives(run_id)}
                if row.status in TERMINAL:
                    return
            item = await anext(live)
            if isinstance(item, ModelDelta):
                yield {
                    "type": DELTA, "number": item.number, "firing": item.firing, "kind": item.kind, "text": item.text,
                }  # fmt: skip
            elif item.seq >= known:
                row = await deps.store.runs.get(run_id)
    finally:
        notify.unwatch(run_id, watch)
