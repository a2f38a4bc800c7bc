"""A server with an odd model: one that prints, warns, and starts programs that print; or one that never lets go."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import warnings

from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.mcp_server.lines import StdioLines, take_descriptors
from agent_graph.mcp_server.serve import end_soon
from agent_graph.mcp_server.server import build
from agent_graph.mcp_server.session import Session
from agent_graph.system.event_loop import on_signal
from tests.fakes.opened import opened


async def prints(call: CallModel) -> str:
    print("a node that prints")
    sys.stdout.write("without the end of its line")
    os.write(1, b"past everything that buffers\n")
    await asyncio.to_thread(subprocess.run, ["echo", "a child that prints"], check=True)
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    return f"read: {sys.stdin.read()!r}"


async def clings(call: CallModel) -> str:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def main(odd: str) -> None:
    descriptors = take_descriptors()
    model = ScriptedModel({"prints": prints, "clings": clings}[odd])
    async with opened(model) as deps:
        session = Session(build(deps), StdioLines(descriptors), max_depth=200, on_end=end_soon)
        with on_signal(session.end):
            await session.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
