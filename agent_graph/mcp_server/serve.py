"""`agent-graph mcp --in-process`: opens the data folder and serves its tools on stdio until the client leaves."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from typing import Final

from agent_graph.errors import AgentGraphError, DataDirLocked
from agent_graph.settings import Settings
from agent_graph.system.event_loop import on_signal

LAST_MOMENT_S: Final = 4.5
"""Seconds from the client's leaving to the end of the process, whatever then still holds on: the store is safe against
a kill at any point."""


def main(settings: Settings) -> int:
    """Serve one client; returns the exit code: 0 when it left or a signal asked to stop, 5 when the store cannot be
    used."""
    from agent_graph.mcp_server.lines import take_descriptors

    _log_to_stderr(settings.log)
    try:
        descriptors = take_descriptors()
    except OSError as error:
        say(f"standard input and output are needed for the protocol: {error.strerror}")
        return 2
    try:
        return asyncio.run(_serve(settings, descriptors))
    except AgentGraphError as refusal:
        say(f"{refusal.code}: {refusal.message}")
        return 5 if isinstance(refusal, DataDirLocked) else refusal.exit_code


async def _serve(settings: Settings, descriptors: tuple[int, int]) -> int:
    from agent_graph.app import open_app

    async with open_app(settings, recover=True, remark=say) as deps:
        gc.disable()  # importing makes many objects and no garbage
        from agent_graph.mcp_server.lines import StdioLines
        from agent_graph.mcp_server.server import build
        from agent_graph.mcp_server.session import Session

        gc.freeze()
        gc.enable()
        server = build(deps, settings.toolsets)
        lines = StdioLines(descriptors)
        session = Session(server, lines, max_depth=settings.limits.json_depth, on_end=end_soon)
        with on_signal(session.end):
            logging.getLogger(__name__).info("stopping: %s", await session.run())
    return 0


def end_soon() -> None:
    """See to it that the process ends, also when something in it does not let go."""
    guard = threading.Timer(LAST_MOMENT_S, os._exit, (0,))
    guard.daemon = True
    guard.start()


def say(sentence: str) -> None:
    """A remark to the person who started this; standard output is the protocol's."""
    sys.stderr.write(f"agent-graph: {sentence}\n")
    sys.stderr.flush()


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
