"""A server on a free port of this machine, within the test's own process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server

STARTED_S = 10.0


@asynccontextmanager
async def served(server: Server[Any]) -> AsyncIterator[str]:
    """The address of its endpoint."""
    app = server.streamable_http_app(retry_interval=100)
    config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
    http = uvicorn.Server(config)
    http.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    serving = asyncio.create_task(http.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        http.should_exit = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(serving, STARTED_S)
        listening.close()
