"""Graphs inside graphs: which ones a spec names, which versions that pins, and whether they end; it loads none itself.

Those that are stored are handed in, by (name, version); under ("name", "") is the one that is current.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def depth(graph: Graph) -> int:
    """How many frames stand inside one another in a run of the graph, without recursion and without its root."""
    return max((1 + depth(inner) for inner in graph.subgraphs.values()), default=0)


def too_deep(found: Mapping[int, Graph], parsed: ParsedSpec) -> Iterator[Issue]:
    """NESTING_TOO_DEEP for every node whose graph has too many others inside."""
    for node in parsed.nodes:
        inner = found.get(node.place)
        if inner is not None and depth(inner) >= DEEPEST:
            message = f'graph "{inner.name}" has {depth(inner)} graphs inside one another; {DEEPEST} is the limit'
            yield Issue("NESTING_TOO_DEEP", message, pointer=node.pointer("/graph_name"), node_id=node.id)


def _own_issue(node: ParsedNode, name: str, own: str) -> Issue | None:
    recursive = getattr(node.config, "allow_recursion", False)
    if name == own and not recursive:
        message = f'graph "{own}" would run itself without end; say `allow_recursion` if it ends by itself'
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
    message = f'there is no graph "{name}"{what}; store it first (graph_create), then the graph that runs it'
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
