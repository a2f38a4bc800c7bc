"""Where nodes stand in a drawing that grows downwards: in layers, so that ways lead down and cross seldom.

The steps are those of Sugiyama, Tagawa and Toda (1981): ways that lead back are turned round, every node gets a layer,
a long way is cut into pieces by points in the layers it passes, the order in each layer follows the neighbours, and
nodes move towards them as far as the order allows. The same graph always gets the same drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from agent_graph.core.classes import dataclass

Way: TypeAlias = tuple[str, str]
Point: TypeAlias = tuple[float, float]

SWEEPS: Final = 6
PASSES: Final = 10
BETWEEN: Final = 28.0
"""Least distance of two nodes of a layer."""
BEND_WIDTH: Final = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Middles of nodes by their names, and the points each way passes, its ends included, from source to target."""

    places: Mapping[str, Point]
    ways: Mapping[Way, Sequence[Point]]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Room:
    """What nodes need, by their names, and what the first point of a long way needs beside it."""

    widths: Mapping[str, float]
    heights: Mapping[str, float]
    bends: Mapping[Way, float]
    """Only where more than `BEND_WIDTH`."""


def planned(space: Room, ways: Sequence[Way], *, apart: float, margin: float) -> Plan:
    """The plan of nodes that need so much room; between layers is `apart`. Ways of a node to itself are left to who
    draws."""
    widths = space.widths
    names, between = list(widths), [way for way in dict.fromkeys(ways) if way[0] != way[1]]
    back = _leading_back(names, between)
    down = {way: (way[1], way[0]) if way in back else way for way in between}
    layer_of = _layers(names, list(dict.fromkeys(down.values())))
    room, links, bends = dict(widths), [], {}
    for way, (upper, lower) in down.items():
        passed = [f"\n{way[0]}\n{way[1]}\n{layer}" for layer in range(layer_of[upper] + 1, layer_of[lower])]
        for layer, bend in enumerate(passed, layer_of[upper] + 1):
            room[bend], layer_of[bend] = BEND_WIDTH, layer
        if passed:
            near = passed[-1] if way in back else passed[0]
            room[near] = max(BEND_WIDTH, space.bends.get(way, 0.0))
        links += list(zip([upper, *passed], [*passed, lower], strict=True))
        bends[way] = passed[::-1] if way in back else passed
    rows = _ordered(layer_of, links)
    x = _moved(rows, links, room)
    left = min((x[name] - room[name] / 2 for name in x), default=0.0)
    middles, height = _middles(rows, space.heights, apart=apart, margin=margin)
    places = {name: (x[name] - left + margin, middles[layer_of[name]]) for name in x}
    width = max((places[name][0] + room[name] / 2 for name in places), default=0.0) + margin
    return Plan(
        {name: places[name] for name in names},
        {way: [places[name] for name in (way[0], *bends[way], way[1])] for way in between},
        width, height,
    )  # fmt: skip


def _middles(
    rows: Sequence[Sequence[str]], heights: Mapping[str, float], *, apart: float, margin: float
) -> tuple[list[float], float]:
    """How far down the middle of each layer is, and how high all of it."""
    middles, top = list[float](), margin
    for row in rows:
        high = max((heights.get(name, 0.0) for name in row), default=0.0)
        middles.append(top + high / 2)
        top += high + apart
    return middles, top - (apart if rows else 0.0) + margin


def _leading_back(names: Sequence[str], ways: Sequence[Way]) -> set[Way]:
    """The ways that close a circle, as a search in depth from the first node meets them."""
    onward: dict[str, list[str]] = {name: [] for name in names}
    for source, target in ways:
        onward[source].append(target)
    back: set[Way] = set()
    seen: set[str] = set()
    for root in names:
        if root in seen:
            continue
        seen.add(root)
        open_, stack = {root}, [(root, iter(onward[root]))]
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                open_.discard(name)
            elif following in open_:
                back.add((name, following))
            elif following not in seen:
                seen.add(following)
                open_.add(following)
                stack.append((following, iter(onward[following])))
    return back


def _layers(names: Sequence[str], ways: Sequence[Way]) -> dict[str, int]:
    """By node, how many ways the longest path to it has; `ways` lead in no circle."""
    coming, onward = dict.fromkeys(names, 0), {name: list[str]() for name in names}
    for source, target in ways:
        coming[target] += 1
        onward[source].append(target)
    layer = dict.fromkeys(names, 0)
    ready = [name for name in names if not coming[name]]
    for name in ready:
        for target in onward[name]:
            layer[target] = max(layer[target], layer[name] + 1)
            coming[target] -= 1
            if not coming[target]:
                ready.append(target)
    return layer


def _neighbours(links: Sequence[Way]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for upper, lower in links:
        below.setdefault(upper, []).append(lower)
        above.setdefault(lower, []).append(upper)
    return above, below


def _ordered(layer_of: Mapping[str, int], links: Sequence[Way]) -> list[list[str]]:
    """The layers, each in an order that follows the middle of its neighbours, down and up in turn."""
    rows: list[list[str]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for name, layer in layer_of.items():
        rows[layer].append(name)
    above, below = _neighbours(links)
    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        near = above if downward else below
        for layer in range(len(rows)) if downward else reversed(range(len(rows))):
            other = layer - 1 if downward else layer + 1
            if not 0 <= other < len(rows):
                continue
            place = {name: float(index) for index, name in enumerate(rows[other])}
            own = {name: float(index) for index, name in enumerate(rows[layer])}
            middle = {name: _mean([place[one] for one in near.get(name, ())], own[name]) for name in rows[layer]}
            rows[layer].sort(key=middle.__getitem__)
    return rows


def _moved(rows: Sequence[Sequence[str]], links: Sequence[Way], room: Mapping[str, float]) -> dict[str, float]:
    """By node, where its middle is: near the mean of its neighbours, in the order of its layer, without touching."""
    x: dict[str, float] = {}
    for row in rows:
        at = 0.0
        for name in row:
            x[name] = at + room[name] / 2
            at += room[name] + BETWEEN
        for name in row:
            x[name] -= (at - BETWEEN) / 2
    above, below = _neighbours(links)
    for turn in range(PASSES):
        near = (above, below)[turn % 2]
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = [_mean([x[one] for one in near.get(name, ())], x[name]) for name in row]
            x.update(zip(row, _spread(wanted, [room[name] for name in row]), strict=True))
    return x


def _spread(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The places nearest to those that are wanted at which nobody touches: the mean of pushing right and left."""
    right, left = list(wanted), list(wanted)
    for index in range(1, len(wanted)):
        least = right[index - 1] + (widths[index - 1] + widths[index]) / 2 + BETWEEN
        right[index] = max(right[index], least)
    for index in reversed(range(len(wanted) - 1)):
        most = left[index + 1] - (widths[index + 1] + widths[index]) / 2 - BETWEEN
        left[index] = min(left[index], most)
    return [(one + other) / 2 for one, other in zip(right, left, strict=True)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
