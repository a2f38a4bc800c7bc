"""`graph_run_wait`: waits for a run by event, for so long at most, and never touches it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import StoreCorrupt
from agent_graph.store.base import TERMINAL, ApprovalRow, RunRow
from agent_graph.tools import views
from agent_graph.tools.history import event_page
from agent_graph.tools.params import Params, RunId
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.runs import pending_of
from agent_graph.tools.signals import is_for_the_clock, waiting_for

PROGRESS_MS = 9_000
"""Milliseconds between two signs of life while a call waits, at most, with the pause; the contract says 10 s."""
PAUSE_MS = 250
"""Milliseconds between two of them, at least."""
POLL_MS: Final = (50, 5_000)
"""What `poll_interval_ms` is clamped to."""
Until: TypeAlias = Literal["terminal", "waiting", "event"]


class WaitParams(Params):
    run_id: RunId
    timeout_ms: Annotated[int, Field(ge=0, description="How long to wait at most; more than 45000 is 45000.")] = 30_000
    poll_interval_ms: Annotated[
        int, Field(description="Accepted for older clients (50 to 5000); waking is by event.")
    ] = 500
    until: Annotated[
        Until, Field(description="Answer when the run has ended, or waits for a person, or at the next event.")
    ] = "terminal"
    cursor: Annotated[int, Field(ge=0, description="Events from this seq on come with the answer.")] = 0


@tool(
    "graph_run_wait", WaitParams, title="Wait for a run", scope="runs:read", read_only=True, idempotent=True,
    description="""Wait up to 45 s for a run to end (until terminal), to end or need a person (waiting) or to move
    (event); answers the run, whom it waits for (run.waiting_for) and its new events. Use waiting where the graph has
    gates: terminal waits on while nobody decides. timed_out true means: call again with next_cursor. Status
    interrupted means that nothing moves the run now; its error says why. A wait never touches the run. Example:
    {"run_id": "run-...", "until": "waiting"}""",
)  # fmt: skip
async def graph_run_wait(call: Call[WaitParams]) -> JsonObject:
    args, deps = call.args, call.deps
    seen = await see(call, args.run_id, until=args.until, cursor=args.cursor, timeout_ms=args.timeout_ms)
    row = seen.row
    body = views.run(row, storage=deps.store.storage, now_ms=deps.clock.now_ms())
    try:
        events, following = await event_page(
            deps, args.run_id, cursor=args.cursor, limit=100, max_bytes=deps.limits.result_bytes * 2 // 5
        )
    except StoreCorrupt as damage:  # how it ended can be told, and nothing of how it went
        events, following = [], args.cursor
        body["damaged"] = damage.message
    body["waiting_for"] = await waiting_for(deps, row, seen.pending)
    return {
        "run_id": row.run_id, "run": body, "terminal": row.status in TERMINAL, "timed_out": seen.timed_out,
        "status": "timeout" if seen.timed_out else row.status, "events": list(events), "next_cursor": following,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """A run at the end of a wait, with the approvals it waits for."""

    row: RunRow
    pending: tuple[ApprovalRow, ...]
    timed_out: bool


async def see(call: Call[Any], run_id: str, *, until: Until, timeout_ms: int, cursor: int = 0) -> Seen:
    """Wait until the run is there, for as long as the limits allow at most.

    ``waiting`` is said of a run that only somebody outside can move on; of one that the clock will, it is not.
    """
    deps = call.deps
    by_itself: set[int] = set()
    signs = _Signs()

    def reached(row: RunRow) -> bool:
        if row.status in TERMINAL or (until == "event" and row.seq > cursor):
            return True
        if row.status == "interrupted":  # and nobody moves it: waiting on would be in vain
            return not deps.supervisor.drives(run_id)
        return until == "waiting" and row.status == "waiting" and row.seq not in by_itself

    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(timeout_ms, deps.limits.wait_ms) / 1000
    while True:
        left_ms = max(0, int((deadline - loop.time()) * 1000))
        row = await _wait(call, run_id, reached, timeout_ms=left_ms, signs=signs)
        pending = await pending_of(deps, run_id)
        if until != "waiting" or not reached(row) or not await is_for_the_clock(deps, row, pending):
            break
        by_itself.add(row.seq)
        if loop.time() >= deadline:
            break
    return Seen(row, pending, timed_out=not reached(row))


@dataclass(slots=True)
class _Signs:
    """The signs of life of one call: the last count told, which only rises, and the seq it was told at."""

    told: int = 0
    seen: int = 0


async def _wait(
    call: Call[Any], run_id: str, reached: Callable[[RunRow], bool], *, timeout_ms: int, signs: _Signs
) -> RunRow:
    """Wait for it; a client that wants to know is told how far the run is, when it moves and as a sign of life."""
    wait, tell = call.deps.supervisor.wait, call.caller.progress
    if tell is None:
        return await wait(run_id, timeout_ms=timeout_ms, until=reached)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000

    def moved(row: RunRow) -> bool:
        return reached(row) or row.seq > signs.seen

    while True:
        left_ms = max(0, int((deadline - loop.time()) * 1000))
        row = await wait(run_id, timeout_ms=min(left_ms, PROGRESS_MS - PAUSE_MS), until=moved)
        if reached(row) or loop.time() >= deadline:
            return row
        signs.told, signs.seen = max(signs.told + 1, row.seq), row.seq
        await tell(signs.told, f"run {row.status}: {row.seq} events so far")
        row = await wait(run_id, timeout_ms=min(left_ms, PAUSE_MS), until=reached)
        if reached(row):
            return row
