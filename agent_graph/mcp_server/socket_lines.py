"""A client at the other end of a socket, as lines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agent_graph.mcp_server.lines import CHUNK, END_OF_INPUT, Splitter


class SocketLines:
    """The two streams of one connection; `aclose` it when its session is over."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._reading: asyncio.Task[None] | None = None

    def start(self, *, on_line: Callable[[bytes], Awaitable[None]], on_end: Callable[[str], None]) -> None:
        self._reading = asyncio.create_task(self._read(on_line, on_end))

    async def write(self, line: bytes) -> None:
        self._writer.write(line)
        await self._writer.drain()

    async def aclose(self) -> None:
        """Stop reading, and let the client have what was written to it if it takes that at once."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._writer.close()

    async def _read(self, on_line: Callable[[bytes], Awaitable[None]], on_end: Callable[[str], None]) -> None:
        splitter = Splitter()
        chunk = b"-"
        while chunk:
            chunk = b""
            with contextlib.suppress(ConnectionError):
                chunk = await self._reader.read(CHUNK)
            for line in splitter.feed(chunk) if chunk else splitter.rest():
                await on_line(line)
        on_end(END_OF_INPUT)
