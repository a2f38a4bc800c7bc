"""How long a run's longest chain of firings may become: the default bound, and what the loops need at least."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_graph.core.choices import EXIT, Selections
from agent_graph.core.issues import Issue
from agent_graph.core.topology import Topology, members
from agent_graph.core.wiring import Wiring

LEAST: Final = 64


def default_bound(bounds: Mapping[int, int], built: Topology) -> int:
    """engine.md 6: max(64, 2 x nodes, 2 x the sum over nodes of the product of (bound + 1) of the loops around it).

    `bounds`: loop node -> its `max_iterations`. A loop node is around itself: it fires once more than its body.
    """
    weight = [1] * built.node_count
    for loop, bound in bounds.items():
        for node in (loop, *members(built.bodies.get(loop, 0))):
            weight[node] *= bound + 1
    return max(LEAST, 2 * built.node_count, 2 * sum(weight))


def loop_bounds(wiring: Wiring) -> dict[int, int]:
    """Loop node -> how often its body runs at most."""
    return {i: node.config.max_iterations for i, node in enumerate(wiring.nodes) if node.type == "loop"}


def too_few(wiring: Wiring, built: Topology, ways: Sequence[Selections], *, declared: int) -> list[Issue]:
    """ITERATIONS_BELOW_LOOPS for every loop whose rounds cannot all happen within `declared` firings in a row.

    An error where the loop has nothing else to end it, a warning where `until` may.
    """
    bounds = loop_bounds(wiring)
    needs: dict[int, int] = {}
    issues = []
    for loop in sorted(bounds, key=lambda node: (built.bodies.get(node, 0).bit_count(), node)):
        config = wiring.nodes[loop].config
        shortest = _shortest_round(wiring, built, ways, loop=loop, needs=needs)
        if shortest is None:
            continue
        needs[loop] = 1 if config.until is not None else 1 + bounds[loop] * (1 + shortest)
        rounds = 1 + bounds[loop] * (1 + shortest)
        if rounds > declared:
            issues.append(_issue(wiring, loop, rounds, declared, certain=config.until is None))
    return issues


def _shortest_round(
    wiring: Wiring, built: Topology, ways: Sequence[Selections], *, loop: int, needs: Mapping[int, int]
) -> int | None:
    """The fewest firings in a row between two of `loop`; an inner loop counts with all the rounds it must make."""
    body = built.bodies.get(loop, 0)
    start = wiring.index[wiring.nodes[loop].config.entry]
    if not body >> start & 1:
        return None
    heap = [(needs.get(start, 1), start)]
    done: set[int] = set()
    while heap:
        cost, node = heapq.heappop(heap)
        if node in done:
            continue
        done.add(node)
        for target in {
            target for targets in _past(wiring.nodes[node].config, ways[node], node in needs) for target in targets
        }:
            if target == loop:
                return cost
            if target != EXIT and body >> target & 1:
                heapq.heappush(heap, (cost + needs.get(target, 1), target))
    return None


def _past(config: Any, options: Selections, is_loop: bool) -> Selections:
    """The ways on; from an inner loop whose rounds are counted already, those that leave it."""
    return options[1:] if is_loop and config.entry != config.exit else options


def _issue(wiring: Wiring, loop: int, rounds: int, declared: int, *, certain: bool) -> Issue:
    node = wiring.nodes[loop]
    message = (
        f'`max_iterations` is {declared}, but the loop "{node.id}" with its {node.config.max_iterations} rounds needs'
        f" {rounds} firings in a row; leave it out, and it follows from the loops"
    )
    return Issue(
        "ITERATIONS_BELOW_LOOPS", message, severity="error" if certain else "warning", pointer="/max_iterations",
        node_id=node.id, related=(node.pointer("/max_iterations"),),
        fix=({"op": "remove", "path": "/max_iterations"},),
    )  # fmt: skip
