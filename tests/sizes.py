"""How much a slow suite does: `AGENT_GRAPH_TEST_SIZE` is ci (the default) or full."""

from __future__ import annotations

import os

SIZE = os.environ.get("AGENT_GRAPH_TEST_SIZE", "ci")
if SIZE not in ("ci", "full"):
    raise ValueError(f"AGENT_GRAPH_TEST_SIZE is {SIZE!r}; it can be ci or full")

FULL = SIZE == "full"


def size(ci: int, full: int) -> int:
    """The number of cases to run: `ci` on every change, `full` for the figures a change quotes."""
    return full if FULL else ci
