"""The graph tools: create, list, inspect, render."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from agent_graph.core.facts import facts
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import Limits
from agent_graph.core.render import as_json, mermaid, topology_hash
from agent_graph.core.template import instantiate
from agent_graph.engine.catalog import Checked
from agent_graph.engine.templates import Library
from agent_graph.errors import (
    AuthenticatedOperatorRequired,
    InvalidAction,
    InvalidArgument,
    RenderSourceAmbiguous,
    RenderSourceRequired,
    SourceAmbiguous,
    SourceRequired,
)
from agent_graph.tools import pages, views
from agent_graph.tools.drawing import colours
from agent_graph.tools.params import Cursor, GraphId, GraphVersion, JsonObjectParam, Key, Limit, Params
from agent_graph.tools.parts import Offset
from agent_graph.tools.pictures import picture
from agent_graph.tools.registry import Call, tool

OptionalGraphId = Annotated[str, Field(max_length=64, description="Id (name) of a stored graph.")]
SpecParam = Annotated[JsonObjectParam, Field(description="A graph spec v2: {name, entry, nodes, edges, output_key?}.")]
TemplateParam = Annotated[
    JsonObjectParam, Field(description="{id, name, params}: make the graph from a template of graph_template_list.")
]


ACTIONS = ("create", "validate", "delete")


class CreateParams(Params):
    spec: SpecParam = Field(default_factory=dict)
    template: TemplateParam = Field(default_factory=dict)
    action: Annotated[
        str,
        Field(description="create stores it, validate only checks it, delete hides the graph named by graph_id."),
        WithJsonSchema({"type": "string", "enum": list(ACTIONS)}),
    ] = "create"
    graph_id: Annotated[str, Field(max_length=64, description="For delete: the graph to hide.")] = ""
    overwrite: Annotated[bool, Field(description="Replace another version under this name (old ones stay).")] = False
    expected_version: Annotated[
        str, Field(max_length=80, description="Replace only if this is the current version.")
    ] = ""
    idempotency_key: Key = ""


@tool(
    "graph_create", CreateParams, title="Create a graph", scope="runs:write", idempotent=True,
    description="""Check a graph and store it under its name; answers id, version and all issues found. Use action
    validate to check without storing, delete to hide a graph. Give spec, or template {id, name, params}. Errors come
    back all at once, each with a code, a JSON Pointer and what to change. Example: {"template": {"id":
    "council_deliberation", "name": "my_council"}}""",
)  # fmt: skip
async def graph_create(call: Call[CreateParams]) -> JsonObject:
    args, catalog = call.args, call.deps.catalog
    if args.action not in ACTIONS:
        raise InvalidAction(f"action can be {', '.join(ACTIONS)}, not {args.action!r}", known=list(ACTIONS))
    if args.action == "delete":
        return await _delete(call)
    spec, template_id = _spec(args, catalog.templates, limits=call.deps.limits)
    checked = await catalog.check(spec)
    if args.action == "validate":
        return _created(checked, action=args.action, created=False)
    answer = _created(checked, action=args.action, created=not await catalog.is_current(checked))
    created = await catalog.put(
        checked, overwrite=args.overwrite, expected_version=args.expected_version or None,
        answered=call.answered(answer), template_id=template_id,
    )  # fmt: skip
    return answer if call.key else {**answer, "created": created}


def _spec(args: CreateParams, library: Library, *, limits: Limits) -> tuple[JsonObject, str]:
    """The spec, and the id of the template it was made of or ""."""
    if args.spec and args.template:
        raise SourceAmbiguous("give spec or template, not both")
    if args.template:
        unknown = sorted(set(args.template) - {"id", "name", "params"})
        if unknown:
            raise InvalidArgument(f"template takes id, name and params, not {unknown[0]!r}", argument="template")
        given = args.template
        made = from_template(
            given.get("id"), given.get("name"), given.get("params", {}), library=library, limits=limits
        )
        return made, str(given["id"])
    if not args.spec:
        raise SourceRequired("give a spec, or a template {id, name, params}")
    return args.spec, ""


def from_template(
    template_id: object, name: object, params: object, *, library: Library, limits: Limits
) -> JsonObject:  # fmt: skip
    """The spec of a template; its own id is the name when none is given."""
    if not isinstance(template_id, str):
        raise InvalidArgument("the template needs an id; graph_template_list has them", argument="template.id")
    if not isinstance(params, dict) or not isinstance(name, str | None):
        raise InvalidArgument("a template's name is a text and its params an object", argument="template")
    found = library.get(template_id)
    return instantiate(found, name or found.id, params=params, limits=limits)


def _created(checked: Checked, *, action: str, created: bool) -> JsonObject:
    graph = checked.graph
    warnings: list[JsonValue] = [issue.to_json() for issue in checked.issues if issue.severity == "warning"]
    return {
        "graph_id": graph.name, "graph_version": graph.version, "topology_hash": topology_hash(graph),
        "action": action, "created": created, "issues": [issue.to_json() for issue in checked.issues],
        "warnings": warnings,
    }  # fmt: skip


async def _delete(call: Call[CreateParams]) -> JsonObject:
    graph_id = call.args.graph_id
    if not graph_id:
        raise InvalidArgument("delete needs graph_id", argument="graph_id")
    if call.deps.deletion == "operator" and call.caller.via == "assistant":
        typed = f'agent-graph call graph_create \'{{"action": "delete", "graph_id": "{graph_id}"}}\''
        message = f"only the operator deletes graphs here: {typed}"
        raise AuthenticatedOperatorRequired(message, graph_id=graph_id)
    graph = await call.deps.catalog.get(graph_id)
    answer: JsonObject = {
        "graph_id": graph_id, "graph_version": graph.version, "topology_hash": topology_hash(graph),
        "action": "delete", "created": False, "issues": [], "warnings": [],
    }  # fmt: skip
    await call.deps.catalog.delete(graph_id, call.answered(answer))
    return answer


class ListParams(Params):
    query: Annotated[str, Field(max_length=200, description="Only graphs with this in their id or description.")] = ""
    limit: Limit = 50
    cursor: Cursor = ""


@tool(
    "graph_list", ListParams, title="List graphs", scope="runs:read", read_only=True, idempotent=True,
    description="""The stored graphs with version, size and description, by id. Use it to find a graph_id before
    starting a run. Example: {"query": "council"}""",
)  # fmt: skip
async def graph_list(call: Call[ListParams]) -> JsonObject:
    args = call.args
    rows, cursor = await pages.page(
        lambda limit: call.deps.store.graphs.list(query=args.query, limit=limit, cursor=args.cursor or None),
        views.graph_row, limit=args.limit, limits=call.deps.limits,
    )  # fmt: skip
    return {"graphs": rows, "next_cursor": cursor, "truncated": cursor is not None}


class InspectParams(Params):
    graph_id: GraphId
    graph_version: GraphVersion = ""


@tool(
    "graph_inspect", InspectParams, title="Inspect a graph", scope="runs:read", read_only=True, idempotent=True,
    description="""One graph in full: nodes with their (redacted) config, every way between them, reducers, facts, a
    Mermaid drawing and all stored versions. Use it to understand or review a graph. Example: {"graph_id":
    "my_council"}""",
)  # fmt: skip
async def graph_inspect(call: Call[InspectParams]) -> JsonObject:
    args = call.args
    graph = await call.deps.catalog.get(args.graph_id, args.graph_version or None)
    versions = await call.deps.store.graphs.versions(args.graph_id)
    return {
        **as_json(graph, include_details=True),
        "reducers": dict(graph.reducers),
        "facts": facts(graph),
        "mermaid": mermaid(graph).text,
        "versions": [{"graph_version": row.graph_version, "updated_at_ms": row.updated_at_ms} for row in versions],
    }  # fmt: skip


class RenderParams(Params):
    graph_id: OptionalGraphId = ""
    graph_version: GraphVersion = ""
    spec: SpecParam = Field(default_factory=dict)
    format: Annotated[
        Literal["mermaid", "json", "svg", "png", "ascii"],
        Field(description="mermaid text; nodes and edges as JSON; or drawn, by the extra `draw`."),
    ] = "mermaid"
    include_details: Annotated[bool, Field(description="Show what nodes are configured to do, redacted.")] = False
    run_id: Annotated[str, Field(max_length=100, description="Colour the drawing by how this run went.")] = ""
    direction: Annotated[Literal["TD", "LR", "BT", "RL"], Field(description="Which way the drawing grows.")] = "TD"
    offset: Offset = 0


@tool(
    "graph_render", RenderParams, title="Draw a graph", scope="runs:read", read_only=True, idempotent=True,
    description="""Draw a graph as Mermaid text (default), as JSON, or as a picture (svg, png, ascii). Give graph_id, or
    spec, or run_id to colour a run's graph by status with the ways it took. Example: {"graph_id": "my_council"}""",
)  # fmt: skip
async def graph_render(call: Call[RenderParams]) -> JsonObject:
    args = call.args
    graph = await _render_source(call)
    marks = await colours(call.deps, args.run_id) if args.run_id else None
    if args.format == "json":
        body = as_json(graph, include_details=args.include_details)
        return {**body, **({"observed": marks.to_json()} if marks else {})}
    drawn = mermaid(
        graph, direction=args.direction, include_details=args.include_details,
        statuses=marks.statuses if marks else None, taken=marks.taken if marks else None,
        firings=marks.firings if marks else None, failed=marks.failed if marks else None,
    )  # fmt: skip
    shown: JsonObject = {"text": drawn.text}
    if args.format != "mermaid":
        nodes = len(graph.nodes)
        shown = await picture(call, drawn.text, kind=args.format, nodes=nodes, offset=args.offset)
    return {
        "graph_id": graph.name, "graph_version": graph.version, "format": args.format, **shown,
        "counts": dict(drawn.counts), "warnings": list(drawn.warnings),
    }  # fmt: skip


async def _render_source(call: Call[RenderParams]) -> Graph:
    args, deps = call.args, call.deps
    if args.spec and (args.graph_id or args.run_id):
        raise RenderSourceAmbiguous("give graph_id, spec or run_id, only one of them")
    if args.spec:
        return (await deps.catalog.check(args.spec)).graph
    if args.run_id:
        row = await deps.store.runs.get(args.run_id)
        if args.graph_id and args.graph_id != row.graph_id:
            raise RenderSourceAmbiguous(f"run {args.run_id} is of graph {row.graph_id}, not {args.graph_id}")
        return await deps.catalog.get(row.graph_id, row.graph_version)
    if not args.graph_id:
        raise RenderSourceRequired("say what to draw: graph_id, spec or run_id")
    return await deps.catalog.get(args.graph_id, args.graph_version or None)
