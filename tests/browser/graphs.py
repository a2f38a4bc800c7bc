"""What stands in the console while it is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.fakes.opened import Tools
from tests.specs import Json, gate, llm, put, spec
from tests.tools.specs import gated

DRAFT = {"draft": {"title": "Hello", "lines": ["one", "two"]}}
TALE = spec(llm("tell", "Tell slowly: {input}", output_key="tale"), put("note", noted=True),
            edges="tell>note note>END", output_key="tale", name="tale")  # fmt: skip
ROUND = spec(
    llm("draft", "Draft: {input}", output_key="draft"), gate("ask", subject_key="draft", channels=["console", "cli"]),
    put("send", sent=True), edges="draft>ask ask>send send>END", output_key="draft", name="letter",
)  # fmt: skip


async def waiting(tools: Tools, value: Any = None, *, name: str = "gated", **config: Any) -> Json:
    """A run that waits at its gate; its approval."""
    await tools.ok("graph_create", spec=gated(name, **config), overwrite=True)
    return await stopped(tools, await tools.run(name, DRAFT if value is None else value))


async def stopped(tools: Tools, run_id: str) -> Json:
    """The approval the run waits for."""
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    found: Json = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"][0]
    return found


async def approval(tools: Tools, approval_id: str) -> Json:
    found: Json = (await tools.ok("graph_approval_get", approval_id=approval_id))["approval"]
    return found


async def followed(tools: Tools, run_id: str) -> None:
    """Until some page hears what the run's model writes."""
    await come_true(lambda: run_id in tools.deps.supervisor.shell.notify._watches)


async def come_true(test: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not test():  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0.01)
