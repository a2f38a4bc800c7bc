"""What templates came to, which own graphs could become templates, and the operator's way to make them such."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, WithJsonSchema

from agent_graph.core.jsonvalue import JsonObject, JsonValue, size
from agent_graph.core.template import Template, instantiate
from agent_graph.engine import outcomes
from agent_graph.engine.catalog import Catalog
from agent_graph.errors import InvalidArgument, TemplateExists
from agent_graph.tools.keeping import OPERATOR
from agent_graph.tools.pages import SPARE_BYTES
from agent_graph.tools.params import ANY_JSON, GraphId, GraphVersion, Params
from agent_graph.tools.registry import Call, tool

FROM: Final = "promoted_from"
"""In the metadata of a promoted template: the version it was made of."""
TemplateId = Annotated[str, Field(min_length=1, max_length=64, description="Id from graph_template_list.")]


class OutcomesParams(Params):
    template_id: TemplateId


@tool(
    "graph_template_outcomes", OutcomesParams, title="What a template came to", scope="runs:read", read_only=True,
    idempotent=True,
    description="""What the runs of all graphs made of a template came to, by template version: how many completed,
    failed (with which codes) or were cancelled, and what they took. Counted when a run ends, and kept when retention
    has taken the run. Example: {"template_id": "council_deliberation"}""",
)  # fmt: skip
async def graph_template_outcomes(call: Call[OutcomesParams]) -> JsonObject:
    deps, template_id = call.deps, call.args.template_id
    current = deps.catalog.templates.get(template_id).version
    found = outcomes.by_template_version(await deps.store.outcomes.of_template(template_id))
    versions: list[JsonValue] = [
        {"template_version": version, "current": version == current, "graphs": len(record.versions), **record.to_json()}
        for version, record in found.items()
    ]
    return {"template_id": template_id, "current_version": current, "versions": versions}


class CandidatesParams(Params):
    state: Annotated[
        Literal["candidate", "not_yet", "promoted", "all"],
        Field(description="candidate: ran well enough; not_yet: what is lacking; promoted: is a template already."),
    ] = "candidate"


@tool(
    "graph_template_candidates", CandidatesParams, title="Graphs that could become templates", scope="runs:read",
    read_only=True, idempotent=True,
    description="""Your own graphs whose runs went well enough to make templates of them, with their record and the
    rule that was applied. It changes nothing: only the operator promotes one, on the command line. Example: {"state":
    "candidate"}""",
)  # fmt: skip
async def graph_template_candidates(call: Call[CandidatesParams]) -> JsonObject:
    deps, wanted = call.deps, call.args.state
    promoted = [str(made) for one in deps.catalog.templates.own.values() if (made := _metadata(one.spec).get(FROM))]
    found = outcomes.candidates(await deps.store.outcomes.of_own_graphs(), promoted)
    rows: list[JsonValue] = [outcomes.shown(*one) for one in found if wanted in (one[0], "all") or one[0] == "damaged"]
    room, fit = deps.limits.result_bytes - SPARE_BYTES, 0
    for row in rows:
        room -= size(row) + 1
        fit += room >= 0
    return {"candidates": rows[:fit], "rule": outcomes.RULE, "truncated": fit < len(rows), "total": len(rows)}


class PromoteParams(Params):
    graph_id: GraphId
    graph_version: GraphVersion = ""
    template_id: Annotated[str, Field(max_length=64, description="Id of the template; empty = the graph's.")] = ""
    title: Annotated[str, Field(max_length=200, description="One line; empty = the graph's description or name.")] = ""
    sample: Annotated[Any, WithJsonSchema({**ANY_JSON, "description": "An input to try it with."})] = ""
    overwrite: Annotated[bool, Field(description="Replace one of your own templates by a next version.")] = False


@tool(
    "graph_template_promote", PromoteParams, title="Make a graph a template", toolset=OPERATOR, idempotent=True,
    description="""Write a stored graph as a template into the data folder; from then on it is listed and used like
    those that ship. Example: {"graph_id": "my_council"}""",
)  # fmt: skip
async def graph_template_promote(call: Call[PromoteParams]) -> JsonObject:
    args, catalog = call.args, call.deps.catalog
    row = await call.deps.store.graphs.get(args.graph_id, args.graph_version or None)
    template_id = args.template_id or args.graph_id
    known = catalog.templates.own.get(template_id)
    if known is not None and not args.overwrite:
        message = f"there is a template {template_id} of yours, version {known.version}: say overwrite, or another id"
        raise TemplateExists(message, template_id=template_id, version=known.version)
    spec = {name: value for name, value in row.spec.items() if name not in ("name", "metadata")}
    metadata = {k: v for k, v in _metadata(row.spec).items() if k not in ("template", "template_version", FROM)}
    redactor = call.deps.supervisor.shell.redactor
    title = redactor.text(args.title)
    body: JsonObject = {
        "id": template_id, "version": _next(known), "title": title or row.description.partition("\n")[0]
        or args.graph_id, "params": {"type": "object", "properties": {}, "additionalProperties": False},
        "spec": {**spec, "metadata": {**metadata, FROM: row.graph_version}},
        "sample": {"input": redactor.value(args.sample), "params": {}},
    }  # fmt: skip
    await _check(catalog, body, spec, name=row.graph_id)
    file = catalog.templates.keep(body)
    return {
        "template_id": template_id, "version": body["version"], "title": body["title"], "graph_id": row.graph_id,
        "graph_version": row.graph_version, "file": str(file),
    }  # fmt: skip


async def _check(catalog: Catalog, body: JsonObject, spec: JsonObject, *, name: str) -> None:
    """What comes out of the template is what went in. Raises `InvalidArgument`, and what the checker refuses."""
    made: Any = body
    template = Template(made["id"], made["version"], made["title"], made["params"], made["spec"], made["sample"])
    try:
        again = instantiate(template, name, params={})
    except KeyError as place:
        raise InvalidArgument(f"a text of the graph has {{${place.args[0]}}}, a template's place, in it") from None
    if {name: value for name, value in again.items() if name not in ("name", "metadata")} != spec:
        raise InvalidArgument("something in the graph reads like a template's place, so none can be made of it")
    await catalog.check(again)


def _metadata(spec: JsonObject) -> JsonObject:
    found = spec.get("metadata")
    return found if isinstance(found, dict) else {}


def _next(known: Template | None) -> str:
    """The version after that of the template that is replaced."""
    if known is None:
        return "1"
    return str(int(known.version) + 1) if known.version.isdigit() else f"{known.version}+"
