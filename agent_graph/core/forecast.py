"""What a run is likely to take, from runs that were recorded; it guesses nothing where nothing was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
