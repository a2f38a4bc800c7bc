"""Which node fires when waiting nodes wait only for one another (engine.md 2, "Circles"); changes nothing."""

from __future__ import annotations

from typing import Protocol

from agent_graph.core.graph import Graph


class Waiting(Protocol):
    """What this needs to know of a frame."""

    graph: Graph
    running_set: int
    full: dict[int, set[int]]
    soft: set[int]

    def blockers(self, node: int) -> int: ...


def first_of_circle(frame: Waiting) -> int | None:
    """The node to fire: first in forward order of those in a set that waits for nothing outside itself.

    None when every waiting node is held.

    A node is held when it waits for a running firing or for a held node. Nodes outside `frame.soft` are known to wait
    for a running firing.
    """
    waits = {node: frame.blockers(node) for node in frame.soft if not frame.running_set >> node & 1}
    held = 0
    for node in frame.full:
        if node not in waits:
            held |= 1 << node
    free = dict(waits)
    while True:
        caught = [node for node, others in free.items() if others & (frame.running_set | held)]
        if not caught:
            break
        for node in caught:
            held |= 1 << node
            del free[node]
    if not free:
        return None
    reach = {node: _closure(node, free) for node in free}
    forward = frame.graph.topology.forward
    members = [node for node, seen in reach.items() if all(reach[other] == seen for other in free if seen >> other & 1)]
    return min(members, key=forward.__getitem__)


def _closure(start: int, waits: dict[int, int]) -> int:
    """Everything `start` waits for, directly or not; itself included."""
    seen, todo = 1 << start, waits[start]
    while fresh := todo & ~seen:
        low = fresh & -fresh
        seen |= low
        todo |= waits[low.bit_length() - 1]
    return seen
