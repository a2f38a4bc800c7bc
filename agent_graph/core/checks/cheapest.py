"""What a run takes at least: BUDGET_BELOW_SHORTEST_PATH where that is more than its budgets; a lower bound."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from agent_graph.core.budgets import LLM_CALLS, NODES, ON_BUDGET
from agent_graph.core.checks.shape import NodeLike
from agent_graph.core.choices import EXIT, Selections
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.wiring import Wiring


def below_shortest(wiring: Wiring, ways: Sequence[Selections], *, budgets: JsonObject) -> list[Issue]:
    """One issue for every budget that no run can keep: an error where it fails the run."""
    costs = {
        NODES: [1] * len(ways),
        LLM_CALLS: [pays(node) for node in wiring.nodes],
    }
    issues = []
    for name, cost in costs.items():
        given: Any = budgets.get(name)
        needed = least(ways, cost)[wiring.entry] if given is not None else None
        if needed is not None and given < needed:
            fails = budgets.get(ON_BUDGET, "fail") == "fail"
            message = f"`{name}` is {given}, and the shortest way through the graph takes {needed}"
            at = pointer("budgets", name)
            fix: JsonObject = {"op": "replace", "path": at, "value": needed}
            issues.append(Issue("BUDGET_BELOW_SHORTEST_PATH", message, severity="error" if fails else "warning",
                                pointer=at, fix=(fix,)))  # fmt: skip
    return issues


def pays(node: NodeLike) -> int:
    """The model calls one firing of a node makes at least: a kept answer, where a node takes one, is no call."""
    return int(node.type == "llm" and not node.config.cache)


def least(ways: Sequence[Selections], cost: Sequence[int]) -> list[int | None]:
    """By node: what its firing and all that follows cost at least; None where nothing it leads to ends.

    Of what is selected together only the dearest counts, since ways may share what comes after they meet. That makes
    it a lower bound, found in the order of cost (Knuth 1977).
    """
    found: list[int | None] = [None] * len(ways)
    waiting: list[list[int]] = [[] for _ in ways]
    left: list[int] = []
    owner: list[int] = []
    heap: list[tuple[int, int]] = []
    for node, options in enumerate(ways):
        for targets in options:
            inner = [target for target in targets if target != EXIT]
            for target in inner:
                waiting[target].append(len(left))
            if not inner:
                heapq.heappush(heap, (cost[node], node))
            left.append(len(inner))
            owner.append(node)
    while heap:
        so_far, node = heapq.heappop(heap)
        if found[node] is not None:
            continue
        found[node] = so_far
        for selection in waiting[node]:
            left[selection] -= 1
            if not left[selection]:
                before = owner[selection]
                heapq.heappush(heap, (cost[before] + so_far, before))
    return found
