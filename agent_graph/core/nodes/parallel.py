"""`parallel`: starts named branches, each with its own input, that meet at a join."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, Milliseconds, NodeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `parallel` node."""

    branches: list[dict[str, Any]] = field(default_factory=list)
    """[{id, entry, input?}]; `input` is a state path, left out = the current value."""
    join: str = ""
    """The node where the branches meet."""
    timeout_ms: Milliseconds | None = None
    max_parallelism: int | None = None
    fail_policy: str = "fail_fast"
    for_each: dict[str, Any] | None = None
    entry: str = ""
    graph_name: str = ""
    graph_version: str = ""


CHOOSES: Final = True
_OVER_DATA = "only static branches are available yet"
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": _OVER_DATA,
    "input_key": "a branch names its own `input`",
    "timeout_ms": "nothing bounds the branches as a whole yet",
    "max_parallelism": "the graph's `max_parallelism` holds; a bound of its own is not available yet",
    "fail_policy": 'a failed branch fails the run; only "fail_fast" is available yet',
    "for_each": _OVER_DATA,
    "entry": _OVER_DATA,
    "graph_name": _OVER_DATA,
    "graph_version": _OVER_DATA,
}
