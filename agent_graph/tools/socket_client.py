"""Talks to the process that owns a data folder, through the socket in it or what is in its place."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, parse_json
from agent_graph.errors import InvalidRequest
from agent_graph.tools import socket_wire as wire
from agent_graph.tools.socket_address import connected

if TYPE_CHECKING:
    from agent_graph.engine.approvers import Proof

_DEPTH = 1_000
"""Nesting of a reply: more than any limit allows a value, as the owner checked it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of `folder`, one connection a request. Each method raises ConnectionError when it is gone, also in
    the middle of an answer; what it did by then is unknown."""

    folder: Path
    client: str = ""

    async def answers(self) -> bool:
        """Somebody listens."""
        try:
            async with self._connection():
                return True
        except ConnectionError:
            return False

    async def call(self, tool: str, arguments: JsonObject, *, proof: Proof | None = None) -> JsonObject:
        """The envelope of a tool; `proof` shows that an approver is there."""
        proven: JsonObject = {} if proof is None else {"approver": proof.name, "secret": proof.secret}
        return await self._ask({"tool": tool, "arguments": arguments, "client": self.client, **proven})

    async def watch(self, run_id: str, *, cursor: int = 0) -> AsyncIterator[JsonObject]:
        """An envelope that says whether the run is there, then what `live.follow` gives."""
        async with self._connection() as (reader, writer):
            writer.write(wire.line({"watch": run_id, "cursor": cursor}))
            await writer.drain()
            first = item = await _read(reader)
            yield first
            while first.get("ok") and not (item.get("type") == "run_status" and item.get("status") in ENDED):
                item = await _read(reader)
                yield item

    async def _ask(self, request: JsonObject) -> JsonObject:
        async with self._connection() as (reader, writer):
            writer.write(wire.line(request))
            await writer.drain()
            return await _read(reader)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        try:
            connection = await _connected(self.folder / wire.SOCKET_NAME)
        except OSError as error:
            raise ConnectionRefusedError(f"nobody answers at {self.folder / wire.SOCKET_NAME}: {error}") from error
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=wire.REPLY_BYTES)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _connected(path: Path) -> socket.socket:
    """By a thread: an owner has to answer before a connection through loopback is one, and it may be this process."""
    connecting = asyncio.ensure_future(asyncio.to_thread(connected, path))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_close)
        raise


def _close(connecting: asyncio.Future[socket.socket]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()


ENDED = frozenset({"completed", "failed", "cancelled"})


async def _read(reader: asyncio.StreamReader) -> JsonObject:
    try:
        text = await reader.readuntil(b"\n")
        message = parse_json(text, max_bytes=wire.REPLY_BYTES, max_depth=_DEPTH)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, InvalidRequest) as error:
        raise ConnectionResetError("the owner of the data folder went away before it had answered") from error
    if not isinstance(message, dict):
        raise ConnectionResetError("what the owner of the data folder said is no message")
    return message
