"""`agent-graph mcp` as a process of its own, in process or as a front, spoken to line by line."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
FRONT = (sys.executable, "-m", "agent_graph", "mcp")
SERVER = (*FRONT, "--in-process")
ANSWER_S = 15.0
GONE_S = 8.0
"""Seconds a server may take to be gone once its client is: its last moment is 4.5, the rest is for a busy machine."""


def environment(script: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "AGENT_GRAPH_SCRIPT": str(script), **(more or {})}


def initialize(version: str = "2025-06-18") -> list[dict[str, Any]]:
    """The handshake's two messages; the request has id 0."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]


def call(request_id: Any, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


def message_in(line: bytes) -> Any:
    """The one JSON-RPC object of a line of standard output, which must be nothing else."""
    assert line.endswith(b"\n")
    assert b"\r" not in line
    assert not line.startswith(b"\xef\xbb\xbf")
    message = json.loads(line.decode("utf-8"))
    assert message["jsonrpc"] == "2.0"
    assert {"id", "method"} & set(message)
    return message


class Lines:
    """A server's process. Every line it writes is checked to be JSON-RPC."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen: list[Any] = []

    async def send(self, *messages: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def next(self) -> Any:
        """The next message of the server."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), ANSWER_S)
        assert line, (await self.errors())[-2_000:]
        self.seen.append(message_in(line))
        return self.seen[-1]

    async def answer(self, request_id: Any) -> Any:
        """The answer to a request, with what came before it in `seen`."""
        while (message := await self.next()).get("id") != request_id:
            pass
        return message

    async def tool(self, request_id: Any, tool: str, /, **arguments: Any) -> Any:
        """The envelope a call is answered with."""
        await self.send(call(request_id, tool, **arguments))
        return (await self.answer(request_id))["result"]["structuredContent"]

    async def ready(self) -> None:
        await self.send(*initialize())
        await self.answer(0)

    async def end_of_input(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.gone()

    async def gone(self) -> int:
        """The exit code, when it comes in time: also that of one that has said nothing, and has first to start."""
        return await asyncio.wait_for(self.process.wait(), GONE_S if self.seen else ANSWER_S)

    async def errors(self) -> str:
        assert self.process.stderr is not None
        return (await asyncio.wait_for(self.process.stderr.read(), ANSWER_S)).decode(errors="replace")


@asynccontextmanager
async def started(
    script: Path, folder: Path | str = ":memory:", *, env: Mapping[str, str] | None = None,
    command: tuple[str, ...] = SERVER, stdin: int = asyncio.subprocess.PIPE,
    stdout: int = asyncio.subprocess.PIPE,
) -> AsyncIterator[Lines]:  # fmt: skip
    """A server; it is killed when the block ends, unless it is gone already."""
    arguments = ("--data-dir", str(folder)) if command[-1] != "-" else ()
    process = await asyncio.create_subprocess_exec(
        *command[: -1 if command[-1] == "-" else None], *arguments, stdin=stdin, stdout=stdout,
        stderr=asyncio.subprocess.PIPE, env=environment(script, env), limit=64 * 1024 * 1024,
    )  # fmt: skip
    try:
        yield Lines(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        transport = getattr(process, "_transport")  # noqa: B009  (asyncio closes it late, and a warning fails a test)
        transport.close()
