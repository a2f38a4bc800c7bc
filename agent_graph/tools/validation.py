"""`graph_validate`: everything the checker has to say about a graph, and what the graph is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agent_graph.core.compile import Compiled
from agent_graph.core.facts import facts
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import SourceAmbiguous, SourceRequired
from agent_graph.tools.graphs import OptionalGraphId, SpecParam
from agent_graph.tools.params import GraphVersion, Params
from agent_graph.tools.registry import Call, tool

LEVELS = ("structure", "semantic", "strict")


class ValidateParams(Params):
    spec: SpecParam = Field(default_factory=dict)
    graph_id: OptionalGraphId = ""
    graph_version: GraphVersion = ""
    level: Annotated[
        Literal["structure", "semantic", "strict"],
        Field(
            description="structure: fields and connections; semantic: the graph as a whole; strict: also what may be"
            " unwritten on some way, and no warnings."
        ),
    ] = "semantic"
    include_facts: Annotated[bool, Field(description="Also reads, writes, cycles, choices and numbers of calls.")] = (
        False
    )


@tool(
    "graph_validate", ValidateParams, title="Check a graph", scope="runs:read", read_only=True, idempotent=True,
    toolset="author",
    description="""Check a graph without storing it: every issue at once with its place, why it matters and, where a
    mechanical repair exists, a JSON Patch that was tried. Never refuses a wrong graph: `valid` says whether it can be
    created (at level strict: whether there are no warnings either). Use it while writing a graph. Example: {"spec":
    {"name": "g", "entry": "a", "nodes": [{"id": "a", "type": "llm"}]}, "level": "strict"}""",
)  # fmt: skip
async def graph_validate(call: Call[ValidateParams]) -> JsonObject:
    args, catalog = call.args, call.deps.catalog
    if args.spec and args.graph_id:
        raise SourceAmbiguous("give spec or graph_id, not both")
    if not args.spec and not args.graph_id:
        raise SourceRequired("say what to check: a spec, or the graph_id of a stored graph")
    spec = args.spec or (await catalog.get(args.graph_id, args.graph_version or None)).spec
    found = await catalog.compiled(spec, level=args.level)
    answer = _verdict(found, args.level)
    if found.graph is not None:
        answer |= {"graph_id": found.graph.name, "graph_version": found.graph.version}
        answer |= {"facts": facts(found.graph)} if args.include_facts else {}
    return answer


def _verdict(found: Compiled, level: str) -> JsonObject:
    counts = {"error": 0, "warning": 0, "info": 0}
    for issue in found.issues:
        counts[issue.severity] += 1
    return {
        "valid": not counts["error"] and not (level == "strict" and counts["warning"]), "level": level,
        "judged": found.judged, "counts": dict(counts), "issues": [issue.to_json() for issue in found.issues],
    }  # fmt: skip
