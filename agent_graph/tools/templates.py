"""The template tools: list, instantiate."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.tools.graphs import from_template
from agent_graph.tools.params import JsonObjectParam, Key, Params
from agent_graph.tools.registry import Call, tool


class ListParams(Params):
    query: Annotated[
        str, Field(max_length=200, description="Only templates with this in id, title or description.")
    ] = ""


@tool(
    "graph_template_list", ListParams, title="List templates", scope="runs:read", read_only=True, idempotent=True,
    description="""Ready-made graphs (councils, critique loops, gated actions) with their parameter schemas and a
    sample input. Start here when somebody wants a council. Example: {"query": "council"}""",
)  # fmt: skip
async def graph_template_list(call: Call[ListParams]) -> JsonObject:
    wanted = call.args.query.lower()
    found: list[JsonValue] = [
        {
            "template_id": template.id, "version": template.version, "title": template.title,
            "description": template.description, "params": template.params, "sample": template.sample,
        }
        for template in call.deps.catalog.templates.all().values()
        if wanted in f"{template.id} {template.title} {template.description}".lower()
    ]  # fmt: skip
    return {"templates": found}


class InstantiateParams(Params):
    template_id: Annotated[str, Field(min_length=1, max_length=64, description="Id from graph_template_list.")]
    name: Annotated[str, Field(max_length=64, description="Name of the graph; empty = the template's id.")] = ""
    params: Annotated[JsonObjectParam, Field(description="Values for the template's parameters.")] = Field(
        default_factory=dict
    )
    register_: Annotated[
        bool, Field(alias="register", description="Also store it, so that graph_run_start can use it.")
    ] = False
    idempotency_key: Key = ""


@tool(
    "graph_template_instantiate", InstantiateParams, title="Make a graph from a template", scope="runs:write",
    idempotent=True,
    description="""Fill a template's parameters and answer the spec; with register true also store it as a graph ready
    for graph_run_start. Example: {"template_id": "council_deliberation", "name": "my_council", "register": true}""",
)  # fmt: skip
async def graph_template_instantiate(call: Call[InstantiateParams]) -> JsonObject:
    args = call.args
    catalog = call.deps.catalog
    spec = from_template(
        args.template_id, args.name or None, args.params, library=catalog.templates, limits=call.deps.limits
    )
    checked = await catalog.check(spec)
    graph = checked.graph
    answer: JsonObject = {
        "template_id": args.template_id, "graph_id": graph.name, "graph_version": graph.version,
        "registered": args.register_, "spec": spec,
    }  # fmt: skip
    if args.register_:
        await catalog.put(
            checked, overwrite=False, expected_version=None, answered=call.answered(answer),
            template_id=args.template_id,
        )  # fmt: skip
    return answer
