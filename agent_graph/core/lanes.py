"""From which in-edges a firing takes tokens, which number it has, and whose latest firing belongs to its past.

Engine.md 2. A node fires once for the tokens of a round and counts its firings: one lane. With `merge` "each" it fires
for every token by itself, every in-edge is a lane of its own, and the number is (edge, k-th token on it): it hangs on
where a token came from, not on when.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from agent_graph.core.graph import Graph


class Counting(Protocol):
    """What this needs to know of a frame."""

    graph: Graph
    nth: dict[int, int]
    full: dict[int, set[int]]

    @property
    def given(self) -> Mapping[int, object]: ...


class Turn(NamedTuple):
    """The next firing of a node."""

    edges: list[int]
    lane: int
    """The node, or ``~edge``."""
    nth: int
    name: str
    """The number as paths write it."""


def is_each(graph: Graph, node: int) -> bool:
    """Whether a node fires for every token by itself."""
    return bool(graph.nodes[node].config.merge == "each")


def next_turn(frame: Counting, node: int) -> Turn:
    """Count the next firing of a node; with "each" the edge from which least was taken comes first."""
    nth = frame.nth[node] = frame.nth.get(node, 0) + 1
    if not is_each(frame.graph, node):
        return Turn(sorted(frame.full[node]), node, nth, str(nth))
    if node in frame.given:  # what comes on no edge of its own
        return Turn([], ~(len(frame.graph.topology.edges) + node), 0, "0.1")
    edge = min(frame.full[node], key=lambda one: (frame.nth.get(~one, 0), one))
    place = frame.graph.topology.in_edges[node].index(edge) + 1
    count = frame.nth[~edge] = frame.nth.get(~edge, 0) + 1
    return Turn([edge], ~edge, place << 32 | count, f"{place}.{count}")
