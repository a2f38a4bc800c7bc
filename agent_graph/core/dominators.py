"""Which node every path from the entry must pass, and the loop bodies that follow from it; integers only.

After Lengauer and Tarjan, "A fast algorithm for finding dominators in a flowgraph" (1979), the simple version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NONE = -1
"""No dominator: the entry itself, and nodes that cannot be reached."""


def immediate_dominators(entry: int, out: Sequence[Sequence[int]], into: Sequence[Sequence[int]]) -> list[int]:
    """By node: its immediate dominator, NONE for the entry and for unreachable nodes. O(edges x log nodes)."""
    count = len(out)
    order, parent, place = _preorder(entry, out)
    semi = list(range(len(order)))  # all but `order` is in preorder places, not in nodes
    idom = [0] * len(order)
    best, above = list(range(len(order))), [NONE] * len(order)
    bucket: list[list[int]] = [[] for _ in order]
    for w in range(len(order) - 1, 0, -1):
        for node in into[order[w]]:
            if node >= 0 and place[node] >= 0:
                semi[w] = min(semi[w], semi[_evaluate(place[node], best, above, semi)])
        bucket[semi[w]].append(w)
        above[w] = parent[w]
        for v in bucket[parent[w]]:
            u = _evaluate(v, best, above, semi)
            idom[v] = u if semi[u] < semi[v] else parent[w]
        bucket[parent[w]].clear()
    result = [NONE] * count
    for w in range(1, len(order)):
        if idom[w] != semi[w]:
            idom[w] = idom[idom[w]]
        result[order[w]] = order[idom[w]]
    return result


def _preorder(entry: int, out: Sequence[Sequence[int]]) -> tuple[list[int], list[int], list[int]]:
    """Nodes in depth-first preorder, each one's parent (as a place) and each node's place (NONE = unreachable)."""
    place = [NONE] * len(out)
    place[entry] = 0
    order, parent = [entry], [NONE]
    stack = [iter(out[entry])]
    path = [0]
    while stack:
        for node in stack[-1]:
            if place[node] == NONE:
                place[node] = len(order)
                order.append(node)
                parent.append(path[-1])
                path.append(place[node])
                stack.append(iter(out[node]))
                break
        else:
            stack.pop()
            path.pop()
    return order, parent, place


def _evaluate(v: int, best: list[int], above: list[int], semi: list[int]) -> int:
    """The place with the least semidominator on the linked way above `v`; shortens the way as it goes."""
    way = []
    top = v
    while above[top] != NONE and above[above[top]] != NONE:
        way.append(top)
        top = above[top]
    for u in reversed(way):
        parent = above[u]
        if semi[best[parent]] < semi[best[u]]:
            best[u] = best[parent]
        above[u] = above[parent]
    return best[v]


def loop_bodies(
    entry: int, out: Sequence[Sequence[int]], into: Sequence[Sequence[int]], *, loops: Mapping[int, int]
) -> dict[int, list[int]]:
    """By loop node: the nodes it dominates on a path from its entry (the value in `loops`) back to it."""
    first, last = _intervals(entry, immediate_dominators(entry, out, into))
    found: dict[int, list[int]] = {}
    for loop, start in loops.items():
        low, high = first[loop], last[loop]
        if low == NONE:
            found[loop] = []
            continue
        ahead = _spread([start], out, first, within=(low, high))
        back = _spread([node for node in into[loop] if node >= 0], into, first, within=(low, high))
        found[loop] = sorted(ahead & back)
    return found


def _spread(
    roots: Sequence[int], ways: Sequence[Sequence[int]], first: Sequence[int], *, within: tuple[int, int]
) -> set[int]:
    """What can be reached from `roots` without leaving the dominated nodes or touching the loop node itself."""
    low, high = within
    found = {node for node in roots if low < first[node] <= high}
    open_ = list(found)
    while open_:
        for node in ways[open_.pop()]:
            if node >= 0 and node not in found and low < first[node] <= high:
                found.add(node)
                open_.append(node)
    return found


def _intervals(entry: int, idom: Sequence[int]) -> tuple[list[int], list[int]]:
    """Preorder places in the dominator tree: a node dominates exactly the places first[node]..last[node]."""
    children: list[list[int]] = [[] for _ in idom]
    for node, dominator in enumerate(idom):
        if dominator != NONE:
            children[dominator].append(node)
    first, last = [NONE] * len(idom), [NONE] * len(idom)
    clock = 0
    stack = [(entry, iter(children[entry]))]
    first[entry] = 0
    while stack:
        node, rest = stack[-1]
        child = next(rest, NONE)
        if child == NONE:
            last[node] = clock
            stack.pop()
        else:
            clock += 1
            first[child] = clock
            stack.append((child, iter(children[child])))
    return first, last
