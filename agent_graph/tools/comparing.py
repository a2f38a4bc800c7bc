"""`graph_run_compare`: where two runs part, and what each of them took."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from agent_graph.core.comparing import Course, compare, course
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.store.base import RunRow
from agent_graph.tools import views
from agent_graph.tools.params import Params, RunId
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.replaying import checked


class CompareParams(Params):
    run_id: RunId
    other_run_id: Annotated[str, Field(min_length=1, max_length=100, description="Id of the run it is compared with.")]
    limit: Annotated[int, Field(ge=1, le=200, description="Firings told at most; those that differ come first.")] = 50


@tool(
    "graph_run_compare", CompareParams, title="Compare two runs", scope="runs:read", read_only=True, idempotent=True,
    toolset="test",
    description="""Compare two runs (a and b) firing by firing: where they part first and by what (input, output,
    route, outcome), what each took in calls, tokens and time, and the JSON Patch from a's state to b's. Works for a
    fork and its origin, and for runs of different graphs. Example: {"run_id": "run-...", "other_run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_compare(call: Call[CompareParams]) -> JsonObject:
    args = call.args
    a, left = await _side(call, args.run_id)
    b, right = await _side(call, args.other_run_id)
    body = await asyncio.to_thread(compare, left, right, most=args.limit)
    return {"a": _told(call, a), "b": _told(call, b), **body}


async def _side(call: Call[CompareParams], run_id: str) -> tuple[RunRow, Course]:
    row = await call.deps.store.runs.get(run_id)
    graph, log = await checked(call.deps, row)
    return row, await asyncio.to_thread(course, graph, log)


def _told(call: Call[Any], row: RunRow) -> JsonObject:
    run = views.run(row, storage="", now_ms=call.deps.clock.now_ms())
    names = ("run_id", "status", "graph_id", "graph_version", "started_at", "finished_at", "usage", "forked_from")
    return {name: run[name] for name in names if name in run}
