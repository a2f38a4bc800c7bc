"""The runs, and one of them: how it stands, what it has used, what it waits for, what happened."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from agent_graph.console.desk import Desk, Turned
from agent_graph.console.drawing import drawn
from agent_graph.console.rendering import fragment, page
from agent_graph.console.streaming import RUNS, Part, changes, run_stream
from agent_graph.console.views import receipts
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.store.base import TERMINAL
from agent_graph.tools import registry

STATUSES: Final = ("accepted", "running", "waiting", "interrupted", "completed", "failed", "cancelled")
ROWS: Final = 50
EVENTS: Final = 100
"""Events of one page."""


async def listed(desk: Desk, request: Request) -> Response:
    """The runs, newest first, of one status, graph or thread."""
    asked = request.query_params
    status, graph_id, thread_id = asked.get("status", ""), asked.get("graph", ""), asked.get("thread", "")
    found = await desk.ask(
        "graph_run_list",
        {"status": status, "graph_id": graph_id, "thread_id": thread_id, "limit": ROWS,
         "cursor": asked.get("cursor", "")},
    )  # fmt: skip
    return page(
        "runs.html", desk=desk, runs=found["runs"], cursor=found["next_cursor"], statuses=STATUSES,
        first=not asked.get("cursor"), status=status, graph_id=graph_id, thread_id=thread_id,
        now_ms=desk.deps.clock.now_ms(),
    )  # fmt: skip


async def list_live(desk: Desk, request: Request) -> Response:
    """A stream that says when the list of runs has changed."""
    return changes(desk, of=RUNS)


async def shown(desk: Desk, request: Request) -> Response:
    """One run; its events from `from` on."""
    run_id, since = request.path_params["run_id"], _seq(request.query_params.get("from", "0"))
    run, damage = await _run(desk, run_id)
    happened = await desk.ask("graph_run_events", {"run_id": run_id, "cursor": since, "limit": EVENTS})
    ended = run["status"] in TERMINAL
    return page(
        "run.html", desk=desk, run=run, damage=damage, happened=happened, since=since, began_ms=run["started_at_ms"],
        ended=ended, drawing=await _drawing(desk, run_id), now_ms=desk.deps.clock.now_ms(),
        receipt=await receipts.of_run(desk, run_id) if ended else None,
    )  # fmt: skip


async def report(desk: Desk, request: Request) -> Response:
    """A page of the run to be kept; as a file, since its style is in it and the console lets none of that in."""
    from agent_graph.console.report.making import made

    run_id = request.path_params["run_id"]

    async def ask(tool: str, arguments: JsonObject) -> Any:
        return await registry.call(desk.deps, tool, arguments, caller=desk.caller, whole=True)

    page_of_it, told = await made(ask, run_id, now_ms=desk.deps.clock.now_ms())
    return Response(
        page_of_it.encode("utf-8", "replace"), media_type="text/html; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{told.run["run_id"]}.html"'},
    )  # fmt: skip


async def live(desk: Desk, request: Request) -> Response:
    """The same as it goes on."""
    run_id = request.path_params["run_id"]
    last = request.headers.get("last-event-id", "")
    since = _seq(last) + 1 if last else _seq(request.query_params.get("from", "0"))
    began, _ = await _run(desk, run_id, include_state=False)  # one that is not seen is not followed

    async def standing() -> list[Part]:
        run, damage = await _run(desk, run_id, include_state=False)
        now_ms = desk.deps.clock.now_ms()
        parts = [
            Part("standing", fragment("standing.html", run=run)),
            Part("outcome", fragment("outcome.html", run=run, damage=damage, now_ms=now_ms)),
            Part("drawing", str(await _drawing(desk, run_id) or "")),
        ]
        if run["status"] in TERMINAL:
            receipt = await receipts.of_run(desk, run_id)
            parts.append(Part("receipt", fragment("receipt.html", run=run, receipt=receipt)))
        return parts

    return run_stream(desk, run_id, since=since, began_ms=began["started_at_ms"], standing=standing)


async def _run(desk: Desk, run_id: str, *, include_state: bool = True) -> tuple[Any, str]:
    """The run with its state, cut to what a page can hold; or without, and what is wrong with it."""
    try:
        return await desk.ask("graph_run_get", {"run_id": run_id, "include_state": include_state}), ""
    except Turned as turned:
        if turned.status < 500 or not include_state:
            raise
        return await desk.ask("graph_run_get", {"run_id": run_id}), turned.message


async def _drawing(desk: Desk, run_id: str) -> Any:
    """The run's graph, marked by how it went; None where that can be told no longer."""
    try:
        graph = await desk.ask("graph_render", {"run_id": run_id, "format": "json"}, whole=True)
        return await asyncio.to_thread(drawn, graph)
    except Turned as turned:
        if turned.code == "RUN_NOT_FOUND":
            raise
        return None


def _seq(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
