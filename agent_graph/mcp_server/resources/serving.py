"""The protocol around the resources: which there are, which forms their addresses have, and reading one."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from mcp import types
from mcp.server.lowlevel import Server

from agent_graph.engine import templates
from agent_graph.mcp_server.apps import serving as apps
from agent_graph.mcp_server.calling import Context, caller_of
from agent_graph.mcp_server.faults import protocol_error, refuse_cursor
from agent_graph.mcp_server.resources import pages
from agent_graph.mcp_server.resources.statement import Statement, Unreadable, read
from agent_graph.mcp_server.resources.table import TABLE, Resource
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps

JSON: Final = "application/json"
RECENT: Final = {"graph": ("graph_list", "graphs", 50), "run": ("graph_run_list", "runs", 20)}
"""By resource: which of them are listed one by one, at most so many; the others are found by completion."""


def serve(server: Server[Any], deps: Deps) -> None:
    """Add ``resources/list``, ``resources/templates/list`` and ``resources/read`` to `server`."""
    forms = types.ListResourceTemplatesResult(resource_templates=resource_templates())

    async def list_resources(context: Context, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        refuse_cursor(params)
        shown = [apps.listed()] if apps.declared(context) else []
        found = [*static_resources(), *shown, *await recent(deps, caller_of(context))]
        return types.ListResourcesResult(resources=found)

    async def list_forms(
        context: Context, params: types.PaginatedRequestParams
    ) -> types.ListResourceTemplatesResult:  # fmt: skip
        refuse_cursor(params)
        return forms

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri == apps.APPROVAL:
            return apps.read()
        try:
            found = await read(deps, uri, caller=caller_of(context))
        except Unreadable as unread:
            raise protocol_error(unread.refusal, uri=uri) from None
        return _contents(uri, found)

    paginated = types.PaginatedRequestParams
    server.add_request_handler("resources/list", paginated, list_resources)
    server.add_request_handler("resources/templates/list", paginated, list_forms)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read_resource)


def resource_templates() -> list[types.ResourceTemplate]:
    """The forms of addresses, in the order of the table."""
    return [
        types.ResourceTemplate(
            uri_template=row.uri, name=row.name, title=row.title, description=row.description, mime_type=JSON
        )
        for row in TABLE
        if row.parts
    ]


@cache
def static_resources() -> tuple[types.Resource, ...]:
    """What is there whatever is stored: the indexes, every template, every page of the documentation."""
    rows = {row.name: row for row in TABLE}
    whole = [_listed(row, row.uri, row.name, row.title) for row in TABLE if not row.parts]
    made = [
        _listed(rows["template"], f"graph://templates/{template.id}", template.id, template.title)
        for template in templates.templates().values()
    ]
    shown = [_listed(rows["docs"], f"graph://docs/{page}", page, pages.title(page)) for page in pages.names()]
    return (*whole, *made, *shown)


async def recent(deps: Deps, caller: Caller) -> list[types.Resource]:
    """The first graphs and the newest runs, as far as this caller may see them."""
    rows = {row.name: row for row in TABLE}
    found: list[types.Resource] = []
    for name, (tool, member, most) in RECENT.items():
        envelope: Any = await registry.call(deps, tool, {"limit": most}, caller=caller)
        for row in envelope["data"][member] if envelope["ok"] else ():
            key = row[f"{name}_id"]
            title = row["graph_id"] if name == "graph" else f"Run of {row['graph_id']}"
            found.append(_listed(rows[name], f"graph://{member}/{key}", key, title))
    return found


def _contents(uri: str, found: Statement) -> types.ReadResourceResult:
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=found.text)],
        ttl_ms=found.fresh_ms, cache_scope="public" if found.public else "private",
    )  # fmt: skip


def _listed(row: Resource, uri: str, name: str, title: str) -> types.Resource:
    return types.Resource(uri=uri, name=name, title=title, description=row.description, mime_type=JSON)
