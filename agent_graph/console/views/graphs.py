"""The graphs that are stored, drawn, and the templates they can be made of."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from agent_graph.console.desk import Desk
from agent_graph.console.drawing import drawn
from agent_graph.console.rendering import page

ROWS: Final = 50


async def listed(desk: Desk, request: Request) -> Response:
    asked = request.query_params
    query = asked.get("query", "")
    found = await desk.ask("graph_list", {"query": query, "limit": ROWS, "cursor": asked.get("cursor", "")})
    return page("graphs.html", desk=desk, graphs=found["graphs"], cursor=found["next_cursor"], query=query)


async def shown(desk: Desk, request: Request) -> Response:
    graph_id = request.path_params["graph_id"]
    asked = {"graph_id": graph_id, "graph_version": request.query_params.get("version", ""), "format": "json"}
    graph = await desk.ask("graph_render", asked, whole=True)
    return page("graph.html", desk=desk, graph=graph, drawing=drawn(graph))


async def templates(desk: Desk, request: Request) -> Response:
    query = request.query_params.get("query", "")
    found = await desk.ask("graph_template_list", {"query": query}, whole=True)
    return page("templates.html", desk=desk, templates=found["templates"], query=query)
