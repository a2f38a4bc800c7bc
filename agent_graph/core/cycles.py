"""Cycles no run can leave: LOOP_WITHOUT_EXIT; works on indexes and selections alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_graph.core import topology
from agent_graph.core.choices import EXIT, Selections, can_end
from agent_graph.core.issues import Issue
from agent_graph.core.wiring import Wiring

_LAYERS: Final = 20
"""How often the found ones are taken as mended to look for what lies before them."""


def endless_cycles(wiring: Wiring, built: topology.Topology, ways: Sequence[Selections]) -> list[Issue]:
    """One issue for every cycle that a token which got there can never leave, whatever is chosen."""
    issues: list[Issue] = []
    open_ways = list(ways)
    for _ in range(_LAYERS):
        traps = [n for n, ends in enumerate(can_end(open_ways)) if not ends and built.reachable >> n & 1]
        if not traps:
            break
        cycles = _innermost(traps, open_ways)
        issues += [_issue(wiring, cycle) for cycle in cycles]
        for cycle in cycles:
            for node in cycle:
                open_ways[node] = ((EXIT,),)  # as if it were mended: what else is wrong comes to light
    return issues


def _innermost(traps: Sequence[int], ways: Sequence[Selections]) -> list[list[int]]:
    """The cycles among `traps` from which no way leads to another one, each as a shortest way round."""
    place = {node: i for i, node in enumerate(traps)}
    out = [[place[t] for targets in ways[node] for t in targets if t in place] for node in traps]
    shape = topology.build(len(traps), 0, declared=[], targets=out)
    groups: dict[int, list[int]] = {}
    for i, number in enumerate(shape.component):
        groups.setdefault(number, []).append(i)
    leaving = {shape.component[i] for i, row in enumerate(out) for t in row if shape.component[t] != shape.component[i]}
    closed = [group for number, group in groups.items() if number not in leaving]
    return [[traps[i] for i in _way_round(group[0], out)] for group in sorted(closed)]


def _way_round(start: int, out: Sequence[Sequence[int]]) -> list[int]:
    came_from: dict[int, int] = {}
    open_ = [start]
    ahead = iter(open_)
    while start not in came_from:
        node = next(ahead)
        for target in out[node]:
            if target not in came_from:
                came_from[target] = node
                open_.append(target)
    way = [came_from[start]]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def _issue(wiring: Wiring, cycle: Sequence[int]) -> Issue:
    names = [wiring.nodes[node].id for node in cycle]
    shown = [*names, names[0]] if len(names) <= 8 else [*names[:4], "...", *names[-3:], names[0]]
    message = (
        f"a run can never leave the cycle {' > '.join(shown)}: no choice on it leads to END or out of it for good;"
        " put a router or a loop on it"
    )
    first, *others = (wiring.nodes[node].pointer() for node in cycle)
    return Issue("LOOP_WITHOUT_EXIT", message, pointer=first, node_id=names[0], related=tuple(others[:50]))
