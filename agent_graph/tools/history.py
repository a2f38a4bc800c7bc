"""What happened in a run: its state at any point, and its events."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any

from pydantic import Field

from agent_graph.core import events as e
from agent_graph.core import images
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, size
from agent_graph.core.outcome import state
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.core.statepath import pointer_get
from agent_graph.core.step import call_of
from agent_graph.errors import InvalidArgument
from agent_graph.store.base import TERMINAL
from agent_graph.tools import pages, views
from agent_graph.tools.deps import Deps
from agent_graph.tools.drawing import facts
from agent_graph.tools.fitting import fitted
from agent_graph.tools.params import Params, RunId
from agent_graph.tools.parts import Offset, part
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.timings import durations


class StateParams(Params):
    run_id: RunId
    path: Annotated[
        str, Field(max_length=2000, description='JSON Pointer into the state: "/draft", "/plan/steps/0"; empty = all.')
    ] = ""
    at: Annotated[int, Field(ge=-1, description="The state after the event with this seq; -1 = the latest.")] = -1
    offset: Offset = 0
    include_history: Annotated[bool, Field(description="Also who wrote which keys, in order.")] = False
    node: Annotated[
        str, Field(max_length=64, description="Also the messages this node's model calls were made of.")
    ] = ""


@tool(
    "graph_run_state", StateParams, title="Read a run's state", scope="runs:read", read_only=True, idempotent=True,
    description="""The state of a run, or one value in it by JSON Pointer, now or after any event. Works while the run
    is live. A text too long for one answer comes in parts: call
    again with offset = next_offset. Example: {"run_id": "run-...", "path": "/findings/0"}""",
)  # fmt: skip
async def graph_run_state(call: Call[StateParams]) -> JsonObject:
    args, deps = call.args, call.deps
    graph, run = await deps.supervisor.fold(args.run_id)
    if args.at >= run.seq:
        raise InvalidArgument(f"the run has {run.seq} events, the last has seq {run.seq - 1}", argument="at")
    history: list[JsonValue] = []
    if args.at >= 0 or args.include_history:
        run = new_run()
        async for event in facts(deps.store, args.run_id, until_seq=args.at if args.at >= 0 else None):
            evolve(graph, run, event)
            if isinstance(event.fact, e.NodeFinished):
                history.append(_line(event, event.fact))
    body: JsonObject = {
        "run_id": args.run_id, "state_version": run.seq - 1, "path": args.path,
        **part(call, pointer_get(state(run), args.path), offset=args.offset, name="value"),
    }  # fmt: skip
    if args.include_history:
        body["history"] = history
    if args.node:
        body["calls"] = [*await _calls(deps, graph, args.run_id, node=args.node)]
    return body


async def _calls(deps: Deps, graph: Graph, run_id: str, *, node: str) -> list[JsonObject]:
    """[{seq, node_path, messages}] of the answers of a node's model, derived from the log: it keeps no prompts. As
    many of the first as fit."""
    run, calls, room = new_run(), [], deps.limits.result_bytes // 2
    async for event in facts(deps.store, run_id):
        fact = event.fact
        if isinstance(fact, e.ModelAnswered) and fact.firing.rpartition("/")[2].partition("#")[0] == node:
            firing = run.firing(fact.firing)
            call = None if firing is None else call_of(run, firing)
            if call is not None:
                messages: Any = images.named([dict(message) for message in call.messages])
                found: JsonObject = {"seq": event.seq, "node_path": fact.firing, "messages": messages}
                room -= size(found)
                if room < 0:
                    break
                calls.append(found)
        evolve(graph, run, event)
    return calls


def _line(event: e.Event, fact: e.NodeFinished) -> JsonObject:
    keys: list[JsonValue] = [".".join(write.path) for write in fact.writes]
    return {"seq": event.seq, "at_ms": event.at_ms, "node": fact.firing, "keys": keys}


class EventsParams(Params):
    run_id: RunId
    cursor: Annotated[int, Field(ge=0, description="The first seq wanted: 0, then next_cursor of the answer.")] = 0
    limit: Annotated[int, Field(ge=1, le=200, description="Events of one page.")] = 100
    wait_ms: Annotated[int, Field(ge=0, description="Wait this long for the next event; at most 45000.")] = 0


@tool(
    "graph_run_events", EventsParams, title="Read a run's events", scope="runs:read", read_only=True, idempotent=True,
    description="""The events of a run in order, live while it runs: what started, what a model answered, which way was
    taken, who decided. Follow next_cursor; wait_ms waits for the next one. Example: {"run_id": "run-...", "cursor":
    0}""",
)  # fmt: skip
async def graph_run_events(call: Call[EventsParams]) -> JsonObject:
    args, deps = call.args, call.deps
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(args.wait_ms, deps.limits.wait_ms) / 1000
    room = deps.limits.result_bytes - pages.SPARE_BYTES
    while True:
        changed = deps.supervisor.shell.notify.changed(args.run_id)
        events, following = await event_page(
            deps,
            args.run_id,
            cursor=args.cursor,
            limit=min(args.limit, deps.limits.page),
            max_bytes=room,
        )
        row = await deps.store.runs.get(args.run_id)
        left = deadline - loop.time()
        if events or left <= 0 or row.status in TERMINAL:
            break
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):  # not `wait_for`: before 3.12 it can swallow a cancellation
                await changed.wait()
    return {
        "run_id": args.run_id, "events": events, "next_cursor": following, "gap": args.cursor < row.first_seq,
        "truncated": following < row.seq, "dropped": max(0, row.first_seq - args.cursor),
    }  # fmt: skip


async def event_page(
    deps: Deps, run_id: str, *, cursor: int, limit: int, max_bytes: int
) -> tuple[list[JsonValue], int]:
    """Events from `cursor` on, as many as fit, and the seq after the last; one that alone is too large is cut.

    Where the first events were pruned the page begins behind them, and the seq after it is behind them too.
    """
    page: list[JsonValue] = []
    used, following = 0, cursor
    events = await deps.store.runs.events(run_id, first_seq=cursor, limit=limit)
    took = await durations(deps.store, run_id, events)
    for stored in events:
        body = views.event(stored, duration_ms=took.get(stored.seq))
        weight = size(body)
        if page and used + weight > max_bytes:
            break
        page.append(fitted(body, max_bytes=max_bytes) if weight > max_bytes else body)
        used, following = used + weight, stored.seq + 1
    if not page:
        following = max(following, (await deps.store.runs.get(run_id)).first_seq)
    return page, following
