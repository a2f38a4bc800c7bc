"""Every tool in the order of the contract; importing this fills the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_graph.tools import (
    approvals,
    graphs,
    history,
    keeping,
    policy,
    runs,
    signals,
    status,
    templates,
    tokens,
    validation,
)
from agent_graph.tools.registry import TOOLS, Tool

HOMES: Final = (graphs, runs, signals, history, approvals, policy, templates, status, keeping, tokens, validation)
"""The modules whose import registers their tools."""

ORDER: Final = (
    "graph_create", "graph_list", "graph_inspect", "graph_render", "graph_run_start", "graph_run_wait",
    "graph_run_get", "graph_run_list", "graph_run_cancel", "graph_run_signal", "graph_run_state", "graph_run_events",
    "graph_approval_list", "graph_approval_get", "graph_approval_decide", "graph_policy_check", "graph_template_list",
    "graph_template_instantiate", "graph_status", "graph_validate",
)  # fmt: skip


def shown(toolsets: Sequence[str]) -> tuple[Tool, ...]:
    """The tools of these toolsets, always in the same order."""
    return tuple(TOOLS[name] for name in ORDER if TOOLS[name].toolset in toolsets)
