"""Every tool in the order of the contract; importing this fills the registry.

A tool is a function under `registry.tool` in some module of this package: each module here is imported, so that adding
a tool is adding its file. Its place in the list is its place in `ORDER`, which names the tools of the contract that are
still to come too. The operator's own tools have none: no assistant is shown them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Final

from agent_graph import tools
from agent_graph.tools.registry import TOOLS, Tool

ORDER: Final = (
    # core
    "graph_create", "graph_list", "graph_inspect", "graph_render", "graph_execute", "graph_run_start",
    "graph_run_wait", "graph_run_get", "graph_run_list", "graph_run_cancel", "graph_run_state", "graph_run_events",
    "graph_run_checkpoint", "graph_run_resume", "graph_run_signal", "graph_run_receipt", "graph_approval_list",
    "graph_approval_get", "graph_approval_request", "graph_approval_decide", "graph_step_next", "graph_step_submit",
    "graph_policy_check", "graph_template_list", "graph_template_instantiate", "graph_template_candidates",
    "graph_template_outcomes", "graph_source_witness_capture", "graph_source_witness_get", "graph_status",
    # author
    "graph_draft_open", "graph_draft_edit", "graph_draft_get", "graph_draft_publish", "graph_draft_discard",
    "graph_validate", "graph_convert", "graph_diff",
    # test
    "graph_paths", "graph_test", "graph_run_fork", "graph_run_compare",
    # connect
    "graph_connection_list", "graph_connection_describe", "graph_node_try",
)  # fmt: skip

for _module in sorted(found.name for found in pkgutil.iter_modules(tools.__path__)):
    if _module != "toolsets":
        importlib.import_module(f"{tools.__name__}.{_module}")


def shown(toolsets: Sequence[str]) -> tuple[Tool, ...]:
    """The tools of these toolsets, always in the same order."""
    return tuple(TOOLS[name] for name in ORDER if name in TOOLS and TOOLS[name].toolset in toolsets)
