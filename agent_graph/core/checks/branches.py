"""Which nodes exclude each other: every choice is a node of its own in the dominator tree; integers only.

Two nodes below different choices of one node that chooses once a run never both fire. What can fire more than once a
run is told apart first, for there every choice may be made in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from agent_graph.core.choices import EXIT, Selections
from agent_graph.core.classes import dataclass
from agent_graph.core.dominators import NONE, immediate_dominators
from agent_graph.core.topology import Topology, bits


@dataclass(slots=True)
class Branches:
    """The dominator tree of the nodes 0 .. count-1 and, behind them, of the choices."""

    count: int
    above: list[int]
    """By node or choice: its immediate dominator; NONE for the entry and what is not reached."""
    owner: list[int]
    """By choice (place - count): the node that makes it."""
    first: dict[int, int]
    """By node that chooses: the place of its first choice."""
    repeats: int
    """The nodes that may fire more than once a run, as a node set."""
    several: frozenset[int]
    """Nodes whose choices do not exclude each other."""
    depth: list[int] = field(default_factory=list)
    _spans: list[tuple[int, int]] = field(default_factory=list)

    def exclusive(self, left: int, right: int) -> bool:
        """No run fires both."""
        a, b = left, right
        while a != b and NONE not in (a, b):  # up to where the ways part
            if self.above[a] == self.above[b]:
                return self._parts(a, b)
            if self.depth[a] >= self.depth[b]:
                a = self.above[a]
            else:
                b = self.above[b]
        return False

    def _parts(self, a: int, b: int) -> bool:
        """`a` and `b` are choices of one node that chooses once."""
        if a < self.count or b < self.count:
            return False
        node = self.owner[a - self.count]
        return node not in self.several and not self.repeats >> node & 1

    def passes(self, one: int, node: int) -> bool:
        """Every way to `node` passes `one`, or it is that node."""
        if not self._spans:
            self._spans = _spans(self.above)
        (first, last), (place, _) = self._spans[one], self._spans[node]
        return first <= place <= last

    def dominators(self, node: int) -> Iterator[int]:
        """The nodes that every way to `node` passes, nearest first, without itself."""
        at = self.above[node]
        while at != NONE:
            if at < self.count:
                yield at
            at = self.above[at]


def branches(built: Topology, ways: Sequence[Selections], *, several: frozenset[int]) -> Branches:
    """The tree of a graph. O(edges x log nodes)."""
    count = built.node_count
    out: list[list[int]] = [[] for _ in range(count)]
    owner: list[int] = []
    first: dict[int, int] = {}
    for node, options in enumerate(ways):
        if len(options) < 2:
            out[node] = [target for targets in options for target in targets if target != EXIT]
            continue
        first[node] = count + len(owner)
        for targets in options:
            out[node].append(count + len(owner))
            owner.append(node)
            out.append([target for target in targets if target != EXIT])
    into: list[list[int]] = [[] for _ in out]
    for node, row in enumerate(out):
        for target in row:
            into[target].append(node)
    above = immediate_dominators(built.edges[0].target, out, into)
    tree = Branches(count, above, owner, first, _repeating(built, ways), several)
    tree.depth = _depths(above)
    return tree


def _depths(above: Sequence[int]) -> list[int]:
    depth = [NONE] * len(above)
    for start in range(len(above)):
        way = []
        at = start
        while at != NONE and depth[at] == NONE:
            way.append(at)
            at = above[at]
        known = depth[at] if at != NONE else NONE
        for at in reversed(way):
            known += 1
            depth[at] = known
    return depth


def _spans(above: Sequence[int]) -> list[tuple[int, int]]:
    """By node of the tree: the numbers of what lies below it, itself the first."""
    below: list[list[int]] = [[] for _ in above]
    roots: list[int] = []
    for node, parent in enumerate(above):
        (below[parent] if parent != NONE else roots).append(node)
    order: list[int] = []
    open_ = roots
    while open_:
        order.append(node := open_.pop())
        open_ += below[node]
    spans = [(NONE, NONE)] * len(above)
    size = [1] * len(above)
    for number in range(len(order) - 1, NONE, -1):
        node = order[number]
        spans[node] = (number, number + size[node] - 1)
        if above[node] != NONE:
            size[above[node]] += size[node]
    return spans


def _repeating(built: Topology, ways: Sequence[Selections]) -> int:
    """The nodes on a cycle, and those behind a choice that leaves one and goes round it too."""
    component, cyclic = built.component, built.in_cycle
    leaving = set()
    for node, options in enumerate(ways):
        if not cyclic >> node & 1:
            continue
        for targets in options:
            inside = [t for t in targets if t != EXIT and component[t] == component[node]]
            if inside and len(inside) < len(targets):
                leaving |= {t for t in targets if t != EXIT and component[t] != component[node]}
    behind: set[int] = set()
    open_ = list(leaving)
    while open_:
        node = open_.pop()
        if node not in behind:
            behind.add(node)
            open_ += [target for targets in ways[node] for target in targets if target != EXIT]
    return cyclic | bits(behind, built.node_count)
