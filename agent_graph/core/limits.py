"""Every bound of the contract in one frozen record, each with the hard ceiling no setting may pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Final

from agent_graph.core.classes import dataclass

KIB = 1024
MIB = 1024 * KIB


def _limit(default: int, ceiling: int, meaning: str) -> Any:
    return field(default=default, metadata={"ceiling": ceiling, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits in force; names are those of the settings ``AGENT_GRAPH_LIMITS__<NAME>``."""

    spec_bytes: int = _limit(4 * MIB, 64 * MIB, "bytes of a graph spec as JSON")
    nodes: int = _limit(10_000, 100_000, "nodes of a graph")
    edges: int = _limit(50_000, 500_000, "edges of a graph")
    input_bytes: int = _limit(4 * MIB, 64 * MIB, "bytes of a run's input as JSON")
    json_depth: int = _limit(200, 500, "nesting of any JSON value")
    prompt_bytes: int = _limit(1 * MIB, 16 * MIB, "bytes of a rendered prompt")
    value_bytes: int = _limit(4 * MIB, 64 * MIB, "bytes of one value written to the state, or of a model's answer")
    state_bytes: int = _limit(32 * MIB, 512 * MIB, "bytes of a run's whole state")
    active_runs: int = _limit(64, 10_000, "runs driven at once; further ones wait")
    queued_runs: int = _limit(2_000, 100_000, "runs accepted and waiting for a place")
    page: int = _limit(200, 200, "rows of one page of a list")
    wait_ms: int = _limit(45_000, 55_000, "milliseconds one call may wait")
    result_bytes: int = _limit(30_000, 1_000_000, "bytes of a tool's answer")
    witness_bytes: int = _limit(256 * KIB, 4 * MIB, "bytes of a captured source")
    regex_chars: int = _limit(1_000, 10_000, "characters of a pattern")


DEFAULTS: Final = Limits()
LATER: Final = {"frame_depth": "eight frames stand inside one another, and no setting changes that yet"}
"""Named in the contract while nothing acts on them, with the reason: setting one is refused."""
OF_A_RUN: Final = ("json_depth", "prompt_bytes", "value_bytes", "state_bytes")
"""What a pure step applies. A run keeps those it was accepted with (`recorded`), so that it goes the same way under
another program's settings. Their defaults are part of the log's format: changing one would change old runs."""


def recorded(limits: Limits) -> dict[str, Any]:
    """The limits of a run that differ from their defaults, as the log keeps them."""
    return {name: getattr(limits, name) for name in OF_A_RUN if getattr(limits, name) != getattr(DEFAULTS, name)}


def of_record(record: Mapping[str, Any]) -> Limits:
    """The limits of a run whose log keeps `record`."""
    return Limits(**record) if record else DEFAULTS


def ceiling(name: str) -> int:
    """The hard ceiling of the limit `name`; KeyError when there is none of that name."""
    return {f.name: int(f.metadata["ceiling"]) for f in fields(Limits)}[name]
