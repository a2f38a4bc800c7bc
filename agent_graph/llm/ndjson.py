"""Reads newline-delimited JSON objects from pieces of bytes, wherever those happen to be cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from agent_graph.errors import ModelBadReply

TURN = 1_000
"""Lines of one piece after which others have their turn: one packed piece may unpack to millions."""
SHOWN = 200
"""Characters of a reply that is not JSON which are kept and shown."""


async def objects(pieces: AsyncIterator[bytes], *, who: str, max_line: int) -> AsyncGenerator[dict[str, Any], None]:
    """The objects of the stream, one a line; ends where the stream ends.

    Only the byte ``\\n`` ends a line: U+2028 and its like are ordinary characters of a JSON string, and the bytes of a
    character may be spread over two pieces. Blank lines are passed over and the last line needs no end.

    Raises `ModelBadReply`: details.reason "not_json" with the beginning of the reply, or "too_large".
    """
    buffer = bytearray()
    searched = 0
    async for piece in pieces:
        buffer += piece
        start = lines = 0
        while (end := buffer.find(b"\n", max(start, searched))) >= 0:
            line = bytes(buffer[start:end])
            if line.strip():
                value = parse_object(line)
                if value is None:
                    raise await _not_json(bytes(buffer[start:]), pieces, who=who)
                yield value
            start = end + 1
            lines += 1
            if lines % TURN == 0:
                await asyncio.sleep(0)  # so that clocks and cancellation are heeded
        del buffer[:start]
        searched = len(buffer)
        if searched > max_line:
            raise ModelBadReply(
                f"{who} sent a line of more than {max_line} bytes", reason="too_large", max_bytes=max_line
            )
    if buffer.strip():
        value = parse_object(bytes(buffer))
        if value is None:
            raise await _not_json(bytes(buffer), pieces, who=who)
        yield value


def parse_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object in `line`, None where it is anything else."""
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError too
        return None
    return value if isinstance(value, dict) else None


async def _not_json(seen: bytes, pieces: AsyncIterator[bytes], *, who: str) -> ModelBadReply:
    while len(seen) < 4 * SHOWN and (more := await anext(pieces, None)) is not None:
        seen += more
    shown = seen.decode(errors="replace").strip()[:SHOWN]
    return ModelBadReply(f"{who} answered with something that is not JSON: {shown}", reason="not_json", body=shown)
