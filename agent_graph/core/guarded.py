"""Where a graph keeps what people decided: no input and no fork's patch may put anything there; decides nothing.

That is where a gate writes its decision, and where a node that runs another graph writes a result which is such a
decision in that graph, however deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_graph.core import statepath
from agent_graph.core.graph import Graph, Node
from agent_graph.core.nodes import NODE_TYPES

GATE: Final = "human_approval"


def decided_at(graph: Graph) -> list[tuple[str, str]]:
    """(node id, state path) of every place that holds what a person decided."""
    return list(_decided_at(graph, ()))


def guarded(graph: Graph) -> set[str]:
    """The top-level keys in which such a place can be."""
    return {key for _, path in decided_at(graph) for key in first_keys(path)}


def first_keys(path: str) -> set[str]:
    """The top-level keys in which a path can start: each dotted beginning may be one flat key."""
    segments = statepath.split(path)
    return {".".join(segments[:count]) for count in range(1, 2 if path.startswith("/") else len(segments) + 1)}


def _decided_at(graph: Graph, around: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for place, node in enumerate(graph.nodes):
        if node.type == GATE:
            yield node.id, NODE_TYPES[GATE].writes(node.id, node.config)[0]  # a subject may be the input's
        elif _has_gate_in_region(graph, place):
            yield from ((node.id, path) for path in NODE_TYPES[node.type].writes(node.id, node.config))
        elif getattr(node.config, "graph_name", "") and graph.version not in around:
            inner = graph.subgraphs.get(node.config.graph_version, graph)
            held = {key for _, path in _decided_at(inner, (*around, graph.version)) for key in first_keys(path)}
            yield from ((node.id, path) for path, result in _taken_over(node, inner) if first_keys(result) & held)


def _has_gate_in_region(graph: Graph, place: int) -> bool:
    """Of a node that runs a part of its own graph for each item: whether people decide in it."""
    region = graph.topology.regions.get(place)
    node = graph.nodes[place]
    if region is None or not getattr(node.config, "for_each", ""):
        return False
    return any(one.type == GATE for at, one in enumerate(graph.nodes) if region.nodes >> at & 1)


def _taken_over(node: Node, inner: Graph) -> Iterator[tuple[str, str]]:
    """(path here, path in the inner graph's state at its end) of what the node takes over from there."""
    if output := getattr(node.config, "output", {}):
        yield from output.items()
    elif node.config.output_key:
        results = {inner.output.path, *inner.output.by_end.values()} - {""}  # the current value is no gate's
        yield from ((node.config.output_key, path) for path in sorted(results))
