"""How many model calls a run makes, how many at once, and how long its longest way is; bounds, nothing measured.

Worst: every choice the dearest, every loop to its bound, every attempt needed. Likely: every choice the dearest, every
loop once, nothing fails. Least: what no way round can save.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_graph.core.checks.cheapest import least, pays
from agent_graph.core.checks.shape import Shape
from agent_graph.core.choices import EXIT
from agent_graph.core.classes import dataclass
from agent_graph.core.dominators import NONE
from agent_graph.core.topology import build, members


@dataclass(frozen=True, slots=True)
class Calls:
    """Numbers of model calls in one run of a graph."""

    worst: int | None
    """None = nothing in the graph bounds them."""
    likely: int
    least: int


def calls(shape: Shape, *, inner: Sequence[Calls | None] = ()) -> Calls:
    """`inner`: by node, what the graph it runs makes; None = it runs none (or its own again, which nothing bounds)."""
    count = len(shape.nodes)
    once, each = [0] * count, [0] * count
    open_ended = False
    for place, node in enumerate(shape.nodes):
        if not shape.reached(place):
            continue
        below = inner[place] if inner else None
        if node.type == "llm":
            once[place], each[place] = 1, calls_a_firing(node.config)
        elif below is not None:
            once[place], each[place] = below.likely, below.worst or 0
            open_ended = open_ended or below.worst is None
        elif getattr(node.config, "graph_name", ""):
            open_ended = True
        open_ended = open_ended or bool(getattr(node.config, "for_each", None))
    rounds = _rounds(shape)
    worst = _dearest(shape, [each[place] * rounds[place] for place in range(count)])
    fewest = [below.least if inner and (below := inner[place]) else pays(shape.nodes[place]) for place in range(count)]
    entry = shape.built.edges[0].target
    return Calls(None if open_ended else worst, _dearest(shape, once), least(shape.ways, fewest)[entry] or 0)


def calls_a_firing(config: Any) -> int:
    """The most calls one firing of an `llm` node makes."""
    attempts = 3 if config.retry is None else config.retry.max_attempts
    repairs = config.repair if config.output_schema is not None or config.json_mode else 0
    rounds = config.max_tool_rounds if config.tools else 0
    return int(attempts * (1 + len(config.fallback_models)) * (1 + repairs + rounds))


def _rounds(shape: Shape) -> list[int]:
    """By node: how often it fires in one run at most."""
    built, bound = shape.built, shape.max_iterations
    count = len(shape.nodes)
    rounds = [1] * count
    if not shape.branches.repeats:
        return rounds
    out: list[list[int]] = [[] for _ in range(count)]
    for place, options in enumerate(shape.ways):
        node = shape.nodes[place]
        body = shape.index.get(node.config.entry, EXIT) if node.type == "loop" else EXIT
        out[place] = [target for targets in options for target in targets if target not in (EXIT, body)]
        for inside in (*members(built.bodies.get(place, 0)), place) if node.type == "loop" else ():
            rounds[inside] *= node.config.max_iterations + (inside == place)
    other = build(count, built.edges[0].target, declared=[], targets=out).in_cycle
    loops = 0
    for place, body_nodes in built.bodies.items():
        loops |= body_nodes | 1 << place
    unbounded = other | (shape.branches.repeats & ~loops)
    return [bound if unbounded >> place & 1 else min(times, bound) for place, times in enumerate(rounds)]


def _dearest(shape: Shape, cost: Sequence[int]) -> int:
    """The most that a run can add up, of the choices that exclude each other the dearest."""
    tree = shape.branches
    total = [*cost, *([0] * len(tree.owner))]
    best: dict[int, int] = {}
    for place in sorted(range(len(total)), key=tree.depth.__getitem__, reverse=True):
        total[place] += best.get(place, 0)
        above = tree.above[place]
        if above == NONE:
            continue
        if place < tree.count:
            total[above] += total[place]
        elif above in tree.several or tree.repeats >> above & 1:  # each in its turn
            best[above] = best.get(above, 0) + total[place]
        else:
            best[above] = max(best.get(above, 0), total[place])
    return total[shape.built.edges[0].target]


def longest_path(shape: Shape) -> int:
    """The nodes of the longest chain that goes round no cycle twice."""
    return max(_levels(shape, [1] * len(shape.nodes)), default=0)


def widest(shape: Shape, works: Sequence[bool]) -> int:
    """How many of the nodes that take time can be at work at once, as far as their places in the chain tell."""
    levels = _levels(shape, [int(one) for one in works])
    tree = shape.branches
    at: list[dict[int, int]] = [{levels[place]: 1} if one else {} for place, one in enumerate(works)]
    at += [{} for _ in tree.owner]
    best: dict[int, dict[int, int]] = {}
    for place in sorted(range(len(at)), key=tree.depth.__getitem__, reverse=True):
        mine = _merged(at[place], best.pop(place, {}), together=True)
        at[place] = {}
        above = tree.above[place]
        if above == NONE:
            at[place] = mine
        elif place < tree.count:
            at[above] = _merged(at[above], mine, together=True)
        else:
            best[above] = _merged(best.get(above, {}), mine, together=above in tree.several)
    return max(at[shape.built.edges[0].target].values(), default=0)


def _merged(left: dict[int, int], right: dict[int, int], *, together: bool) -> dict[int, int]:
    """The smaller one is put into the larger one."""
    large, small = (left, right) if len(left) >= len(right) else (right, left)
    for level, number in small.items():
        before = large.get(level, 0)
        large[level] = before + number if together else max(before, number)
    return large


def _levels(shape: Shape, weight: Sequence[int]) -> list[int]:
    """By node: the weight of the heaviest chain that ends with it, against no forward order."""
    forward = shape.built.forward
    found = [0] * len(weight)
    for place in sorted(range(len(weight)), key=forward.__getitem__):
        if not shape.reached(place):
            continue
        found[place] += weight[place]
        for targets in shape.ways[place]:
            for target in targets:
                if target != EXIT and forward[target] > forward[place]:
                    found[target] = max(found[target], found[place])
    return found
