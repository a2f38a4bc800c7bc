"""Who can still put a token on an edge inside a cycle (engine.md 2); sets of nodes only, nothing of what nodes do.

Without one node a component mostly stays in one piece, and then everybody in it feeds everybody. Where it falls apart
(the node is a strong articulation point: it dominates another one from some root, forwards or backwards; Italiano,
Laura, Santaroni 2012) the pieces are found once for all its in-edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from agent_graph.core.classes import dataclass
from agent_graph.core.dominators import NONE, immediate_dominators


@dataclass(slots=True)
class Cycle:
    """One strongly connected component. Its nodes are numbered by their place in `nodes`."""

    nodes: list[int]
    place: dict[int, int]
    out: list[list[int]]
    into: list[list[int]]
    whole: int
    """The node set of `nodes`."""
    entering: list[int]
    """By place: the nodes outside the component that lead to it, as a node set."""
    splitting: set[int] = field(default_factory=set)
    """Places without which the rest may fall apart."""
    before: list[int] = field(default_factory=list)
    """By place: the union of `entering` at all lower places."""
    after: list[int] = field(default_factory=list)
    """And at all higher ones."""
    kept: dict[int, list[int]] = field(default_factory=dict)
    """By splitting place: what reaches each place without it."""

    def feeding(self, source: int, target: int) -> int:
        """The nodes from which a path leads to `source` that avoids `target`, both in the component."""
        at, around = self.place[source], self.place[target]
        if around not in self.splitting:
            return (self.whole & ~(1 << target)) | self.before[around] | self.after[around]
        if around not in self.kept:
            self.kept[around] = self._without(around)
        return self.kept[around][at]

    def _without(self, around: int) -> list[int]:
        """By place: the nodes that reach it when `around` is left out."""
        count = len(self.nodes)
        order, number = _pieces(count, self.into, around)
        found = [0] * (max(number) + 1)
        for at in order:  # a piece after all the pieces that lead into it
            mine = number[at]
            reaching = (1 << self.nodes[at]) | self.entering[at]
            for source in self.into[at]:
                if source != around and number[source] != mine:
                    reaching |= found[number[source]]
            found[mine] |= reaching
        return [found[number[at]] if at != around else 0 for at in range(count)]


def cycle(nodes: Sequence[int], out: Mapping[int, Sequence[int]], *, entering: Mapping[int, int]) -> Cycle:
    """The component of `nodes`. `out`: by node, its targets inside. `entering`: by node, what leads to it from outside
    the component, as a node set."""
    place = {node: at for at, node in enumerate(nodes)}
    ways = [[place[target] for target in out[node]] for node in nodes]
    into: list[list[int]] = [[] for _ in nodes]
    for at, targets in enumerate(ways):
        for target in targets:
            into[target].append(at)
    whole = 0
    for node in nodes:
        whole |= 1 << node
    found = Cycle(list(nodes), place, ways, into, whole, [entering[node] for node in nodes])
    found.splitting = _splitting(ways, into)
    found.before, found.after = _around(found.entering)
    return found


def _around(sets: Sequence[int]) -> tuple[list[int], list[int]]:
    before, after = [0], [0]
    for one in sets[:-1]:
        before.append(before[-1] | one)
    for one in reversed(sets[1:]):
        after.append(after[-1] | one)
    return before, after[::-1]


def _splitting(out: Sequence[Sequence[int]], into: Sequence[Sequence[int]]) -> set[int]:
    """The root counts as one: whether the rest stays together without it is found when it is asked for."""
    found = {0}
    for one, other in ((out, into), (into, out)):
        found |= {above for above in immediate_dominators(0, one, other) if above != NONE}
    return found


def _pieces(count: int, ways: Sequence[Sequence[int]], around: int) -> tuple[list[int], list[int]]:
    """Tarjan's components of `ways` without `around`: the places in the order their components are closed, and by
    place its component's number. What a place leads to along `ways` comes before it, its own component aside."""
    seen, low, number = [0] * count, [0] * count, [-1] * count
    order: list[int] = []
    pending: list[int] = []
    clock = pieces = 0
    for root in range(count):
        if seen[root] or root == around:
            continue
        clock += 1
        seen[root] = low[root] = clock
        pending.append(root)
        stack = [(root, iter(ways[root]))]
        while stack:
            at, ahead = stack[-1]
            for target in ahead:
                if target == around:
                    continue
                if not seen[target]:
                    clock += 1
                    seen[target] = low[target] = clock
                    pending.append(target)
                    stack.append((target, iter(ways[target])))
                    break
                if number[target] < 0 and seen[target] < low[at]:
                    low[at] = seen[target]
            else:
                stack.pop()
                if stack and low[at] < low[stack[-1][0]]:
                    low[stack[-1][0]] = low[at]
                if low[at] == seen[at]:
                    while number[at] < 0:
                        number[pending[-1]] = pieces
                        order.append(pending.pop())
                    pieces += 1
    return order, number
