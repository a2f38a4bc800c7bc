"""The shape of a graph as integers and bit sets: edges, reach, components, forward order; nothing of what nodes do.

Nodes are declaration indexes, edges are indexes into `Topology.edges`. A node set is an int with bit i set for node i.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ENTRY = -1
"""The source of the virtual edge that carries the first token."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One way a token can travel, however many rules or declarations name it. `source` is ENTRY for the first."""

    source: int
    target: int
    declared: bool
    """Named by `edges` (or implied: a static branch's last node leads to its join); else only choosable as a target."""


@dataclass(slots=True)
class Topology:
    """Built once a version by `build`, stored with it; reach sets are made when first asked for."""

    node_count: int
    edges: tuple[Edge, ...]
    """Edge 0 is the virtual entry edge."""
    in_edges: tuple[tuple[int, ...], ...]
    out_declared: tuple[tuple[int, ...], ...]
    """By node: its declared out-edges, in order. What a firing without chosen targets selects."""
    out_all: tuple[tuple[int, ...], ...]
    """By node: every edge it can put a token on, in the order of engine.md 2: declared edges, then targets."""
    edge_between: dict[tuple[int, int], int]
    ends: tuple[bool, ...]
    """By node: a declared edge leads to END (or it has no declared out-edge at all): its token ends here."""
    forward: tuple[int, ...]
    """By node: its place in the forward order; unreachable nodes last."""
    component: tuple[int, ...]
    """By node: the number of its strongly connected component."""
    in_cycle: int
    """The nodes that lie on a cycle (self-loops too)."""
    behind_cycle: int
    """The nodes that lie in or behind a cycle."""
    reachable: int
    """The nodes that can be reached from the entry."""
    _feeders: dict[int, int] = field(default_factory=dict)

    def feeders(self, edge: int) -> int:
        """The nodes from which a path leads to `edge` that avoids the edge's target (the target itself left out).

        These are the nodes that, while active, can still put a token on `edge` (engine.md 2). Lazily, then kept.
        """
        raise NotImplementedError
