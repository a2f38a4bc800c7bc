"""What a graph is, beside whether it is right: who reads and writes what, its cycles, choices and numbers of calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent_graph.core.checks.counting import Calls, calls, longest_path, widest
from agent_graph.core.checks.keys import plain
from agent_graph.core.checks.shape import Shape
from agent_graph.core.checks.unsure import STEPS, Search, reads
from agent_graph.core.choices import EXIT, selections
from agent_graph.core.dominators import NONE
from agent_graph.core.graph import END, Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.topology import members

_DEEPEST: Final = 8
_LISTED: Final = 2_000
"""Nodes of a graph beyond which it is not listed what excludes what."""
_WORKING: Final = frozenset({"llm", "tool", "http", "graphql", "subgraph"})
"""The types whose firings take time that can pass side by side."""


def facts(graph: Graph) -> JsonObject:
    """The facts of a graph; a pure function of its version."""
    shape = shape_of(graph)
    number = _calls(graph, shape, _DEEPEST)
    reachable = graph.topology.reachable
    unsure = _unsure(shape)
    found: JsonObject = {
        "node_count": len(graph.nodes),
        "nodes": {node.id: _touches(graph, shape, node.index, unsure) for node in graph.nodes},
        "unreachable": [node.id for node in graph.nodes if not reachable >> node.index & 1],
        "in_cycles": [node.id for node in graph.nodes if graph.topology.in_cycle >> node.index & 1],
        "cycles": list(_cycles(graph, shape)),
        "exclusive": list(_exclusive(graph, shape)),
        "model_calls": _told(number),
        "widest_parallelism": widest(shape, [node.type in _WORKING for node in graph.nodes]),
        "longest_path": longest_path(shape),
        "max_iterations": graph.max_iterations,
        "max_parallelism": graph.max_parallelism,
        "output": graph.output.path or "the current value",
    }
    return found


def model_calls(graph: Graph) -> JsonObject:
    """Of the facts, the bounds of what a run calls."""
    return _told(_calls(graph, shape_of(graph), _DEEPEST))


def _told(number: Calls) -> JsonObject:
    return {"worst": number.worst, "likely": number.likely, "least": number.least}


def shape_of(graph: Graph) -> Shape:
    """What the checks ask about a graph that is compiled."""
    built = graph.topology
    ways = []
    for node in graph.nodes:
        out = tuple(built.edges[i].target for i in built.out_declared[node.index])
        out += (EXIT,) if built.ends[node.index] else ()
        ways.append(selections(node.type, node.config, out, graph.index))
    top: dict[str, Any] = {"input_schema": graph.input_schema, "reducers": graph.reducers}
    return Shape(graph.nodes, graph.index, built, ways, top, graph.output, graph.max_iterations)


def _calls(graph: Graph, shape: Shape, deeper: int) -> Calls:
    inner: list[Calls | None] = []
    for node in graph.nodes:
        below = graph.subgraphs.get(getattr(node.config, "graph_version", ""))
        inner.append(_calls(below, shape_of(below), deeper - 1) if below is not None and deeper else None)
    return calls(shape, inner=inner)


def _unsure(shape: Shape) -> dict[int, list[JsonValue]]:
    """By node: what it must find and what is unwritten on some way to it."""
    search = Search(shape, STEPS)
    found: dict[int, list[JsonValue]] = {}
    for place, read, writers in reads(shape):
        if search.way_without(place, writers, plain(read.path)) is not None:
            found.setdefault(place, []).append(read.path)
    return found


def _touches(graph: Graph, shape: Shape, place: int, unsure: Mapping[int, list[JsonValue]]) -> JsonObject:
    node = graph.nodes[place]
    asked: list[JsonValue] = list(dict.fromkeys(read.path for read in shape.reads[place]))
    writes: list[JsonValue] = list(dict.fromkeys(KNOWN_TYPES[node.type].writes(node.id, node.config)))
    above = next(shape.branches.dominators(place), NONE)
    return {
        "reads": asked, "maybe_unwritten": unsure.get(place, []), "writes": writes,
        "writes_current": KNOWN_TYPES[node.type].writes_current(node.config),
        "dominator": graph.nodes[above].id if above != NONE else None,
    }  # fmt: skip


def _cycles(graph: Graph, shape: Shape) -> Iterator[JsonObject]:
    """By component: its nodes, the ways out of it, and the bound of a `loop` in it or of the whole run."""
    groups: dict[int, list[int]] = {}
    for place in members(graph.topology.in_cycle):
        groups.setdefault(graph.topology.component[place], []).append(place)
    for row in groups.values():
        inside = dict.fromkeys(row)
        exits: dict[tuple[str, str], None] = {}
        for place in inside:
            for targets in shape.ways[place]:
                for target in targets:
                    if target == EXIT or target not in inside:
                        name = END if target == EXIT else graph.nodes[target].id
                        exits[graph.nodes[place].id, name] = None
        loops = [graph.nodes[place] for place in inside if graph.nodes[place].type == "loop"]
        yield {
            "nodes": [graph.nodes[place].id for place in inside],
            "exits": [{"from": source, "to": target} for source, target in exits],
            "loops": [{"node": node.id, "max_iterations": node.config.max_iterations} for node in loops],
            "bound": graph.max_iterations,
        }


def _exclusive(graph: Graph, shape: Shape) -> Iterator[JsonObject]:
    """By node that chooses once: which nodes lie behind each of its choices alone."""
    tree = shape.branches
    if not tree.first or tree.count > _LISTED:
        return
    behind: dict[int, list[JsonValue]] = {}
    for place in range(tree.count):
        at = tree.above[place]
        while at != NONE:
            if at >= tree.count:
                behind.setdefault(at, []).append(graph.nodes[place].id)
            at = tree.above[at]
    for node, first in tree.first.items():
        if node in tree.several or tree.repeats >> node & 1 or not shape.reached(node):
            continue
        parts: list[JsonValue] = [behind[at] for at in range(first, first + len(shape.ways[node])) if at in behind]
        if len(parts) > 1:
            yield {"node": graph.nodes[node].id, "branches": parts}
