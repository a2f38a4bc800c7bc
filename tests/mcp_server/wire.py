"""A client that speaks the protocol message by message, in either era, over memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import types
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from agent_graph.mcp_server.server import build
from agent_graph.tools.deps import Deps

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "0"},
}


class Wire:
    """A client that sends messages and keeps whatever comes; `capabilities` are what it declares on each request."""

    def __init__(self, era: str, streams: Any) -> None:
        self._era = era
        self.capabilities: dict[str, Any] = {}
        self._read, self._write = streams
        self._number = 1_000
        self.seen: list[Any] = []

    async def send(self, method: str, request_id: int | None = None, **params: Any) -> None:
        if self._era == "auto":
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": self.capabilities}
            params = {**params, "_meta": {**meta, **params.get("_meta", {})}}
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            message["id"] = request_id
        await self._write.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message)))

    async def next(self) -> Any:
        """The next message, whatever it is."""
        item = await self._read.receive()
        message = item.message.model_dump(by_alias=True, exclude_unset=True)
        self.seen.append(message)
        return message

    async def answer(self, request_id: int) -> Any:
        while True:
            message = await self.next()
            if message.get("id") == request_id:
                return message

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its answer."""
        self._number += 1
        await self.send(method, self._number, **params)
        return await self.answer(self._number)

    async def reply(self, request_id: int, result: dict[str, Any]) -> None:
        """Send what reads as the answer to a request of the server's."""
        message = {"jsonrpc": "2.0", "id": request_id, "result": result}
        await self._write.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message)))

    async def call(self, request_id: int, tool: str, meta: dict[str, Any] | None = None, **arguments: Any) -> None:
        more = {"_meta": meta} if meta else {}
        await self.send("tools/call", request_id, name=tool, arguments=arguments, **more)

    def progress(self) -> list[Any]:
        return [one["params"] for one in self.seen if one.get("method") == "notifications/progress"]


@asynccontextmanager
async def wired(deps: Deps, era: str) -> AsyncIterator[Wire]:
    server = build(deps)
    async with create_client_server_memory_streams() as (ours, theirs):
        serving = asyncio.create_task(server.run(*theirs, server.create_initialization_options()))
        wire = Wire(era, ours)
        if era == "legacy":
            info = {"name": "wire", "version": "0"}
            await wire.send("initialize", 0, protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
            await wire.answer(0)
            await wire.send("notifications/initialized")
        yield wire
        await ours[1].aclose()
        await serving
