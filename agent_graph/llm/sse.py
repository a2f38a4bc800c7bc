"""Reads server-sent events from pieces of bytes, wherever those happen to be cut (WHATWG HTML, 9.2.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from agent_graph.errors import ModelBadReply
from agent_graph.llm.ndjson import TURN


async def event_data(pieces: AsyncIterator[bytes], *, who: str, max_event: int) -> AsyncGenerator[bytes, None]:
    """The data of each event; lines end with LF, CR LF or CR, comments and other fields are passed over.

    An event without the blank line after it counts too: hosts hang up right after their last word. Raises
    `ModelBadReply` (details.reason "too_large") for a line or an event of more than `max_event` bytes.
    """
    data: list[bytes] = []
    size = seen = 0
    async for line in _lines(pieces, who=who, max_line=max_event):
        seen += 1
        if seen % TURN == 0:
            await asyncio.sleep(0)  # so that clocks and cancellation are heeded
        if not line:
            if data:
                yield b"\n".join(data)
            data, size = [], 0
            continue
        name, _, value = line.partition(b":")
        if name != b"data":
            continue
        value = value.removeprefix(b" ")
        size += len(value) + 1
        if size > max_event:
            raise _too_large(who, max_event)
        data.append(value)
    if data:
        yield b"\n".join(data)


async def _lines(pieces: AsyncIterator[bytes], *, who: str, max_line: int) -> AsyncGenerator[bytes, None]:
    buffer = bytearray()
    searched = 0
    after_cr = False
    async for piece in pieces:
        if not piece:
            continue
        buffer += piece[1:] if after_cr and piece.startswith(b"\n") else piece  # a CR LF that was cut in two
        after_cr = False
        start = 0
        while (end := _end(buffer, max(start, searched))) >= 0:
            yield bytes(buffer[start:end])
            start = end + (2 if buffer[end : end + 2] == b"\r\n" else 1)
            after_cr = start == len(buffer) and buffer[end] == 0x0D
        del buffer[:start]
        searched = len(buffer)
        if searched > max_line:
            raise _too_large(who, max_line)
    if buffer:
        yield bytes(buffer)


def _end(buffer: bytearray, start: int) -> int:
    """Where the next line ends, -1 where none does."""
    line_feed = buffer.find(b"\n", start)
    carriage_return = buffer.find(b"\r", start, line_feed if line_feed >= 0 else len(buffer))
    return carriage_return if carriage_return >= 0 else line_feed


def _too_large(who: str, most: int) -> ModelBadReply:
    return ModelBadReply(f"{who} sent an event of more than {most} bytes", reason="too_large", max_bytes=most)
