"""The examples of the tools, as an assistant reads them in their descriptions, do what they say."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.tools.registry import TOOLS
from agent_graph.tools.toolsets import ORDER
from tests.docs.tools_page import described
from tests.fakes.opened import Tools, opened
from tests.mcp_server.whole_path import PAID
from tests.tools.specs import gated, keep

NAMES = [name for name in ORDER if name in TOOLS]
REFUSED = {"graph_run_checkpoint": "CHECKPOINT_NOT_FOUND"}
"""Examples of what a small run does not have."""


async def _prepared(tools: Tools, name: str) -> dict[str, str]:
    """A folder in which the example of a tool has something to work on: ids by what stands for them."""
    if name not in ("graph_create", "graph_template_instantiate"):
        await tools.ok("graph_create", template={"id": "council_deliberation", "name": "my_council"})
    for spec in (keep(), gated(), {**PAID, "name": "order"}):
        await tools.ok("graph_create", spec=spec)
    run_id = (await tools.ended("keep", {"findings": ["x"]}))["run_id"]
    waiting = await tools.run("gated", {"draft": "x"})
    await tools.ok("graph_run_wait", run_id=waiting, until="waiting")
    (gate,) = (await tools.ok("graph_approval_list"))["approvals"]
    witness = await tools.ok("graph_source_witness_capture", locator="a page", content="The bridge opened in 1932.")
    if name in ("graph_run_resume", "graph_run_cancel", "graph_approval_request"):
        run_id = waiting
    if name == "graph_run_signal":
        run_id = await tools.run("order", {})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    return {"run-...": run_id, "apr-...": gate["approval_id"], "wit-...": witness["witness_id"]}


@pytest.mark.parametrize("name", NAMES)
async def test_the_example_of_a_tool_works(name: str) -> None:
    async with opened() as deps:
        tools = Tools(deps)
        ids = await _prepared(tools, name)
        arguments = {key: ids.get(str(value), value) for key, value in described(TOOLS[name])[1].items()}
        envelope: Any = await tools.envelope(name, **arguments)
        assert envelope.get("error_code", "") == REFUSED.get(name, ""), envelope
