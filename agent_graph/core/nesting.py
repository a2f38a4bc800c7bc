"""Graphs inside graphs: which ones a spec names, which versions that pins, and whether they end; it loads none itself.

Those that are stored are handed in, by (name, version); under ("name", "") is the one that is current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_graph.core.graph import Graph
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonObject, JsonValue

if TYPE_CHECKING:
    from agent_graph.core.spec import ParsedNode, ParsedSpec

DEEPEST: Final = 8
"""Frames inside one another, the root not counted."""

Stored: TypeAlias = Mapping[tuple[str, str], Graph]


def named_in(raw: JsonValue) -> list[tuple[str, str]]:
    """The (name, version or "") of the graphs a spec names, whatever else is wrong with it."""
    nodes = raw.get("nodes") if isinstance(raw, dict) else None
    found: dict[tuple[str, str], None] = {}
    for node in nodes if isinstance(nodes, list) else ():
        config = node.get("config") if isinstance(node, dict) else None
        name = config.get("graph_name") if isinstance(config, dict) else None
        if isinstance(config, dict) and isinstance(name, str) and name:
            version = config.get("graph_version") or ""
            found[name, version if isinstance(version, str) else ""] = None
    return list(found)


def pins(parsed: ParsedSpec, stored: Stored) -> tuple[dict[int, Graph], list[Issue]]:
    """By place of a node: the graph it runs, its own left out; and what is wrong with those it names."""
    found: dict[int, Graph] = {}
    issues: list[Issue] = []
    own = str(parsed.top.get("name", ""))
    for node in parsed.nodes:
        name = getattr(node.config, "graph_name", "")
        if not name:
            continue
        issue = _own_issue(node, name, own)
        graph = stored.get((name, node.config.graph_version))
        if issue is None and name != own:
            issue = _not_found(node, name) if graph is None else _cycle(node, graph, own)
            if graph is not None:
                found[node.place] = graph
        issues += [] if issue is None else [issue]
    return found, issues


def pinned(spec: JsonObject, found: Mapping[int, Graph]) -> JsonObject:
    """The minimal form with the version of every graph it names."""
    nodes: Any = spec["nodes"]
    return {
        **spec,
        "nodes": [
            {**node, "config": {**node["config"], "graph_version": found[place].version}} if place in found else node
            for place, node in enumerate(nodes)
        ],
    }


def whole(graph: Graph) -> Sequence[Graph]:
    """The graph and those inside it, however deep, each version once."""
    found = {graph.version: graph}
    todo = list(graph.subgraphs.values())
    while todo:
        one = todo.pop()
        if one.version not in found:
            found[one.version] = one
            todo += one.subgraphs.values()
    return [*found.values()]


def depth(graph: Graph) -> int:
    """How many frames stand inside one another in a run of the graph, without recursion and without its root."""
    return max(_depths(graph).values(), default=0)


def too_deep(graph: Graph, parsed: ParsedSpec) -> list[Issue]:
    """NESTING_TOO_DEEP for every node below which too many frames would stand inside one another."""
    deep = {graph.nodes[node].id: count for node, count in _depths(graph).items() if count > DEEPEST}
    return [
        Issue("NESTING_TOO_DEEP", f"{deep[node.id]} frames would stand inside one another; the limit is {DEEPEST}",
              pointer=node.pointer(), node_id=node.id)
        for node in parsed.nodes if node.id in deep
    ]  # fmt: skip


def _depths(graph: Graph) -> dict[int, int]:
    """By node that opens frames: how deep they get."""
    regions = graph.topology.regions
    found: dict[int, int] = {}
    for node in graph.nodes:
        name = getattr(node.config, "graph_name", "")
        if name or node.index in regions:
            inner = graph.subgraphs.get(node.config.graph_version)
            around = sum(region.nodes >> node.index & 1 for region in regions.values())
            found[node.index] = around + 1 + (0 if inner is None else depth(inner))
    return found


def _own_issue(node: ParsedNode, name: str, own: str) -> Issue | None:
    recursive = getattr(node.config, "allow_recursion", False)
    if name == own and not recursive:
        hint = "; say `allow_recursion` if it ends by itself" if node.type == "subgraph" else ""
        message = f'graph "{own}" would run itself without end{hint}'
        return Issue("SUBGRAPH_CYCLE", message, pointer=node.pointer("/graph_name"), node_id=node.id)
    if name != own and recursive:
        message = f'`allow_recursion` is for a graph that runs itself, and "{name}" is another one'
        fix: JsonObject = {"op": "remove", "path": node.pointer("/allow_recursion")}
        at = node.pointer("/allow_recursion")
        return Issue("FIELD_INVALID", message, pointer=at, node_id=node.id, fix=(fix,))
    return None


def _not_found(node: ParsedNode, name: str) -> Issue:
    version = node.config.graph_version
    what = f' in version "{version}"' if version else ""
    how = "graph_create, or `agent-graph run` its file"
    message = f'there is no graph "{name}"{what}; store it first ({how}), then the graph that runs it'
    at = node.pointer("/graph_version" if version else "/graph_name")
    return Issue("SUBGRAPH_NOT_FOUND", message, pointer=at, node_id=node.id)


def _cycle(node: ParsedNode, graph: Graph, own: str) -> Issue | None:
    way = _way_to(graph, own)
    if not way:
        return None
    message = f'graph "{own}" would run itself by way of {", ".join(way)}'
    return Issue("SUBGRAPH_CYCLE", message, pointer=node.pointer("/graph_name"), node_id=node.id)


def _way_to(graph: Graph, name: str) -> list[str]:
    """The names from `graph` down to the graph that runs `name`; none when no graph inside does."""
    for inner in graph.subgraphs.values():
        way = [inner.name] if inner.name == name else _way_to(inner, name)
        if way:
            return [graph.name, *(way if inner.name != name else ())]
    return []
