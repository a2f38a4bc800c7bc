"""All that a report tells of a run, asked of the tools as whoever wants it may ask them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from agent_graph.console.desk import Turned
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject

Ask: TypeAlias = Callable[[str, JsonObject], Awaitable[Any]]
"""Calls a tool; gives its envelope, nothing of it cut."""
MOST_EVENTS: Final = 10_000
"""Of a run that goes on for longer the report tells the beginning."""
PAGE: Final = 200
ENDED: Final = ("completed", "failed", "cancelled")
CORRUPT: Final = "STORE_CORRUPT"


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the tools said. What one of them refused is None, with its sentence beside it."""

    run: Any
    events: list[Any]
    left_out: int
    """Events of the run that are not among them."""
    pruned: bool
    approvals: list[Any]
    graph: Any = None
    receipt: Any = None
    """{receipt, integrity}."""
    no_graph: str = ""
    no_receipt: str = ""

    @property
    def doubtful(self) -> bool:
        """What is stored of the run is not what was sealed: nobody knows what of it is as it was."""
        return self.no_receipt.startswith(("RECEIPT_INTEGRITY_FAILURE", CORRUPT))

    @property
    def ended(self) -> bool:
        return self.run["status"] in ENDED


async def gathered(ask: Ask, run_id: str) -> Gathered:
    """Raises `Turned` for a run that is not there, or that whoever asks does not see."""
    run = await _data(ask, "graph_run_get", {"run_id": run_id})
    damage = ""
    try:
        events, left_out, pruned = await _events(ask, run_id)
    except Turned as turned:
        if turned.code != CORRUPT:
            raise
        events, left_out, pruned, damage = [], 0, False, f"{turned.code}: {turned.message}"  # nothing of it is told
    graph, no_graph = await _or_why(ask, "graph_render", {"run_id": run_id, "format": "json"})
    receipt, no_receipt = None, "The run has not ended; a receipt is made of one that has."
    if run["status"] in ENDED:
        receipt, no_receipt = await _or_why(ask, "graph_run_receipt", {"run_id": run_id})
    if damage and not no_receipt.startswith("RECEIPT_"):
        receipt, no_receipt = None, damage
    return Gathered(
        run, events, left_out, pruned, await _approvals(ask, run_id), graph, receipt, no_graph, no_receipt
    )  # fmt: skip


async def _data(ask: Ask, tool: str, arguments: JsonObject) -> Any:
    envelope = await ask(tool, arguments)
    if not envelope["ok"]:
        raise Turned(envelope)
    return envelope["data"]


async def _or_why(ask: Ask, tool: str, arguments: JsonObject) -> tuple[Any, str]:
    try:
        return await _data(ask, tool, arguments), ""
    except Turned as turned:
        return None, f"{turned.code}: {turned.message}"


async def _events(ask: Ask, run_id: str) -> tuple[list[Any], int, bool]:
    found: list[Any] = []
    cursor, pruned, more = 0, False, True
    while more and len(found) < MOST_EVENTS:
        page = await _data(ask, "graph_run_events", {"run_id": run_id, "cursor": cursor, "limit": PAGE})
        found += page["events"]
        pruned = pruned or page["gap"]
        cursor, more = page["next_cursor"], page["truncated"]
    left_out = 0
    if more:
        state = await _or_why(ask, "graph_run_state", {"run_id": run_id, "path": ""})
        left_out = max(0, (state[0] or {}).get("state_version", cursor) - cursor)
    return found, left_out, pruned


async def _approvals(ask: Ask, run_id: str) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        asked: JsonObject = {"run_id": run_id, "status": "all", "limit": PAGE, "cursor": cursor}
        page = await _data(ask, "graph_approval_list", asked)
        found += page["approvals"]
        cursor = page["next_cursor"] or ""
        if not cursor:
            return found
