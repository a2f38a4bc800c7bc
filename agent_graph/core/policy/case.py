"""What a rule looks at and what it says; nothing here decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Final, Literal

from agent_graph.core.classes import dataclass
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, size
from agent_graph.core.topology import ENTRY

GATE: Final = "human_approval"
ONWARD: Final = "continue"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that goes against a profile. `where` is a node's path through the graphs: ``review/vote``."""

    code: str
    message: str
    where: str = ""
    rule: str = ""
    severity: Literal["deny", "review", "note"] = "deny"
    """What it leads to: no start, a start by a person only, or nothing but that it is told."""

    def to_json(self) -> JsonObject:
        """{code, severity, message, rule, node_path?}"""
        body: JsonObject = {
            "code": self.code, "severity": self.severity, "message": self.message, "rule": self.rule,
        }  # fmt: skip
        if self.where:
            body["node_path"] = self.where
        return body


@dataclass(frozen=True, slots=True)
class Place:
    """A graph where it is used: `where` is the beginning of its nodes' paths, "" for the outermost."""

    where: str
    graph: Graph
    gated: bool = False
    """A gate stands before it."""


@dataclass(frozen=True)
class Case:
    """A graph and what a run of it would start with."""

    graph: Graph
    model: str = ""
    """The model of nodes that name none; "" when it is not known before a host is asked."""
    input: JsonValue = ""
    budgets: frozenset[str] = frozenset()
    """The names of the budgets that are set."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Node types this server cannot run, with the reason."""

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The graph and all graphs in it, each where it is first used, outer ones first."""
        found, todo = [Place("", self.graph)], [Place("", self.graph)]
        seen = {(self.graph.version, False)}
        while todo:
            place = todo.pop(0)
            for inner in _inside(place):
                if (inner.graph.version, inner.gated) not in seen:
                    seen.add((inner.graph.version, inner.gated))
                    found.append(inner)
                    todo.append(inner)
        return tuple(found)

    @cached_property
    def input_bytes(self) -> int:
        return size(self.input)

    @cached_property
    def calls(self) -> Mapping[str, Any]:
        """Model calls of a run: {worst, likely, least}; `worst` is None where nothing in the graph bounds them."""
        from agent_graph.core.facts import model_calls  # here: few profiles ask

        return model_calls(self.graph)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """Every graph once."""
        return tuple({place.graph.version: place.graph for place in self.places}.values())


def _inside(place: Place) -> Iterator[Place]:
    gated: list[bool] | None = None
    for node in place.graph.nodes:
        inner = place.graph.subgraphs.get(getattr(node.config, "graph_version", ""))
        if inner is not None:
            gated = gated or behind_gate(place.graph)
            yield Place(f"{place.where}{node.id}/", inner, place.gated or gated[node.index])


def behind_gate(graph: Graph) -> list[bool]:
    """By node: no way leads to it from the entry but over a gate's yes.

    A gate whose no goes on along its out-edges too (``"continue"``) stands in front of nothing: what comes of the
    decision is up to the nodes behind it.
    """
    topology = graph.topology
    open_ = [topology.edges[0].target]
    reached = {*open_}
    while open_:
        node = open_.pop()
        for place in topology.out_all[node]:
            edge = topology.edges[place]
            if edge.source != ENTRY and edge.target not in reached and not _only_yes(graph, node, edge.target):
                reached.add(edge.target)
                open_.append(edge.target)
    return [node.index not in reached for node in graph.nodes]


def _only_yes(graph: Graph, source: int, target: int) -> bool:
    """The edge is taken for nothing but a gate's yes."""
    node = graph.nodes[source]
    if node.type != GATE:
        return False
    config, name = node.config, graph.nodes[target].id  # `on_error` leads past no gate
    expired = getattr(config, "on_expire", None)
    ways = [config.on_reject, config.on_request_changes, expired["goto"] if isinstance(expired, dict) else expired]
    return ONWARD not in ways and not any(name in way for way in ways if isinstance(way, list))
