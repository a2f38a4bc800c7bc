"""What was asked and decided, by whom and by which way: a page, and the same to be kept."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from agent_graph.console.desk import Desk
from agent_graph.console.rendering import page
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.tools import audit

LINES: Final = 200
"""The latest lines a page shows."""
PAGE: Final = 200


async def shown(desk: Desk, request: Request) -> Response:
    """The latest, newest first."""
    lines, graph, run = await _lines(desk, request), *_filters(request)
    return page("log.html", desk=desk, lines=lines[: -LINES - 1 : -1], count=len(lines), graph=graph, run=run)


async def as_csv(desk: Desk, request: Request) -> Response:
    return _file(audit.as_csv(await _lines(desk, request)), "csv", "text/csv; charset=utf-8")


async def as_json(desk: Desk, request: Request) -> Response:
    from agent_graph.console.rendering import pretty

    return _file(pretty([*await _lines(desk, request)]), "json", "application/json")


async def _lines(desk: Desk, request: Request) -> list[JsonObject]:
    """All that the caller sees, oldest first."""
    graph, run = _filters(request)
    found: list[JsonObject] = []
    cursor = ""
    while True:
        asked = {"status": "all", "limit": PAGE, "cursor": cursor, "graph_id": graph, "run_id": run}
        answer = await desk.ask("graph_approval_list", asked, whole=True)
        found += audit.lines(answer["approvals"])  # not the approvals: their subjects are long
        cursor = answer["next_cursor"] or ""
        if not cursor:
            return sorted(found, key=lambda line: str(line["at"]))


def _filters(request: Request) -> tuple[str, str]:
    return request.query_params.get("graph", ""), request.query_params.get("run", "")


def _file(text: str, kind: str, media_type: str) -> Response:
    return Response(
        text.encode("utf-8", "replace"), media_type=media_type,
        headers={"content-disposition": f'attachment; filename="approvals.{kind}"'},
    )  # fmt: skip
