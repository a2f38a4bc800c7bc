"""The graphs that are stored, drawn, and the templates they can be made of."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from agent_graph.console.desk import Desk
from agent_graph.console.drawing import drawn
from agent_graph.console.fields import fields
from agent_graph.console.forms import nonce
from agent_graph.console.rendering import page

ROWS: Final = 50


async def listed(desk: Desk, request: Request) -> Response:
    asked = request.query_params
    query = asked.get("query", "")
    found = await desk.ask("graph_list", {"query": query, "limit": ROWS, "cursor": asked.get("cursor", "")})
    return page(
        "graphs.html", desk=desk, graphs=found["graphs"], cursor=found["next_cursor"], query=query,
        now_ms=desk.deps.clock.now_ms(), first=not asked.get("cursor"),
    )  # fmt: skip


async def shown(desk: Desk, request: Request) -> Response:
    """One graph: its drawing, its nodes, and the form that starts a run of it."""
    return await graph_page(desk, request.path_params["graph_id"], request.query_params.get("version", ""))


async def graph_page(
    desk: Desk, graph_id: str, version: str, *, status: int = 200, code: str = "", wrong: str = ""
) -> Response:
    """The page; `wrong` is what was refused just before, what was typed is kept."""
    asked = {"graph_id": graph_id, "graph_version": version, "format": "json"}
    graph = await desk.ask("graph_render", asked, whole=True)
    schema = (await desk.deps.catalog.get(graph["graph_id"], graph["graph_version"])).input_schema
    return page(
        "graph.html", http_status=status, desk=desk, graph=graph, drawing=await asyncio.to_thread(drawn, graph),
        fields=fields(schema, desk.form or None), typed=desk.form, code=code, wrong=wrong,
        may=desk.caller.may("runs:write"), nonce=nonce(),
    )  # fmt: skip


async def templates(desk: Desk, request: Request) -> Response:
    query = request.query_params.get("query", "")
    found = await desk.ask("graph_template_list", {"query": query}, whole=True)
    return page("templates.html", desk=desk, templates=found["templates"], query=query)
