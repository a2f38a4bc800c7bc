"""What a run can take by its graph and its budgets, and what recorded runs took; the two are never mixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject


@dataclass(frozen=True, slots=True)
class Taken:
    """What one completed run took. None where it is not known."""

    llm_calls: int
    nodes: int
    tokens: int | None
    """Of prompts and answers; None when a host did not say for some call."""
    wall_clock_ms: int | None
    """From its start to its end, waiting for people included."""


def worst_case(calls: Mapping[str, int | None], budgets: Mapping[str, Any]) -> JsonObject:
    """{llm_calls {worst, likely, least}, tokens, nodes, wall_clock_ms}: bounds, null where nothing bounds it.

    `calls` are those of `facts.facts` (``model_calls``); a graph bounds no tokens and no time, so these are the run's
    budgets. `worst` is with every attempt failing and every loop to its bound, `likely` with every loop once.
    """
    most = budgets.get("max_llm_calls")
    bounded = {name: value if most is None else most if value is None else min(value, most)
               for name, value in calls.items()}  # fmt: skip
    return {
        "llm_calls": bounded, "tokens": budgets.get("max_tokens"), "nodes": budgets.get("max_nodes"),
        "wall_clock_ms": budgets.get("max_wall_clock_ms"),
    }  # fmt: skip


def recorded(runs: Sequence[Taken]) -> JsonObject | None:
    """{runs, llm_calls, nodes, tokens, wall_clock_ms}, each {p50, p95, runs}; None without a run.

    Percentiles are by nearest rank: values that were seen, never between two of them. A measure that is not known of
    any run is null.
    """
    if not runs:
        return None
    return {
        "runs": len(runs),
        "llm_calls": _spread(run.llm_calls for run in runs),
        "nodes": _spread(run.nodes for run in runs),
        "tokens": _spread(run.tokens for run in runs),
        "wall_clock_ms": _spread(run.wall_clock_ms for run in runs),
    }


def _spread(values: Iterable[int | None]) -> JsonObject | None:
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return {"p50": _rank(known, 50), "p95": _rank(known, 95), "runs": len(known)}


def _rank(ordered: Sequence[int], percent: int) -> int:
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]
