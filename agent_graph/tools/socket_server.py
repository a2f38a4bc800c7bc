"""Lets other processes of the same user work with a data folder through the process that owns it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, JsonValue, parse_json
from agent_graph.engine.approvers import Proof
from agent_graph.errors import AgentGraphError, InputTooLarge, InvalidArgument, StoreBusy
from agent_graph.tools import live, registry, socket_door
from agent_graph.tools import socket_wire as wire
from agent_graph.tools.deps import Caller, Deps

log = logging.getLogger(__name__)

CONNECTIONS: Final = 64
"""Requests that are answered at once, those who watch a run included."""
UNHEARD: Final = 128
"""Clients that may have their line still to send; one more, and the one that has kept silent for longest is left."""
REQUEST_S: Final = 10.0
"""Seconds a client has to send its line."""
SKIPPED_BYTES: Final = 65_536
"""Bytes of a line too long that are read at a time."""
LINGER_S: Final = 60.0
"""Seconds a client may leave what it was sent unread before it is left."""


@asynccontextmanager
async def serve(deps: Deps, folder: Path, *, loopback: bool = False) -> AsyncIterator[None]:
    """Answer on the folder's socket, or through `loopback`, until the block ends; the caller holds the folder's lock.

    No client can hurt the owner: one that vanishes, stalls or sends nonsense costs its own connection.
    """
    importlib.import_module("agent_graph.tools.toolsets")  # fills the registry
    door = socket_door.door(folder / wire.SOCKET_NAME, loopback=loopback)
    requests = _Requests(deps)
    try:
        await door.open(requests.connected, limit=wire.request_bytes(deps.limits))
        yield
    finally:
        door.close()
        await requests.close()


class _Requests:
    """Every connection of one owner."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._tasks: set[asyncio.Task[None]] = set()
        self._unheard: dict[asyncio.StreamWriter, None] = {}
        """Clients that have not sent their line, the first to come first."""
        self._answered = 0
        """How many are being answered."""
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Called by the server in one go with the connection, so that none is ever without its task."""
        if self._closed:
            writer.transport.abort()
            return
        if len(self._unheard) >= UNHEARD:
            silent = next(iter(self._unheard))
            del self._unheard[silent]
            silent.transport.abort()
        self._unheard[writer] = None
        task = asyncio.create_task(self._hear(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._left(done, writer))

    def _left(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._tasks.discard(task)
        self._unheard.pop(writer, None)
        writer.close()
        if not task.cancelled() and (bug := task.exception()) is not None:
            log.error("a bug of ours at the socket", exc_info=bug)

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, TimeoutError, StoreBusy) as lost:
            log.debug("a client of the socket is gone: %r", lost)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._request(reader)
            self._unheard.pop(writer, None)
            if request is None:
                return
            with self._place():
                if "watch" in request:
                    await self._watch(request, reader, writer)
                    return
                answer = await self._answer(request)
        except AgentGraphError as refusal:
            answer = registry.failure(refusal)
        await _send(writer, answer)

    @contextlib.contextmanager
    def _place(self) -> Iterator[None]:
        """One of the requests that are answered. Raises `StoreBusy` when there are too many."""
        if self._answered >= CONNECTIONS:
            raise StoreBusy(f"{CONNECTIONS} others are being answered; try again")
        self._answered += 1
        try:
            yield
        finally:
            self._answered -= 1

    async def _request(self, reader: asyncio.StreamReader) -> JsonObject | None:
        """The one line of a client; None when it went away without one."""
        limits = self._deps.limits
        try:
            async with asyncio.timeout(REQUEST_S):
                text = await _line(reader)
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            most = wire.request_bytes(limits)
            raise InputTooLarge(f"a request takes at most {most} bytes", limit=most) from None
        request = parse_json(text, max_bytes=wire.request_bytes(limits), max_depth=limits.json_depth + 8)
        if not isinstance(request, dict):
            raise InvalidArgument("a request is a JSON object")
        return request

    async def _answer(self, request: JsonObject) -> registry.Envelope:
        if "settings" in request:
            return registry.success(self._settings(request["settings"]))
        caller = Caller("cli", str(request.get("client", ""))[:200], approver=await self._approver(request))
        name, arguments = request.get("tool"), request.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise InvalidArgument("a request names a tool and its arguments, a run to watch, or settings")
        return await registry.call(self._deps, name, arguments, caller=caller)

    def _settings(self, names: JsonValue) -> JsonObject:
        """Who this owner is, and its values of the settings that are named."""
        if not isinstance(names, list):
            raise InvalidArgument("settings is a list of their names")
        known = {name: one for name, one in self._deps.settings().items() if name in names}
        shown = {name: one["value"] for name, one in known.items() if isinstance(one, dict) and "value" in one}
        return {"pid": os.getpid(), "settings": shown}

    async def _approver(self, request: JsonObject) -> str:
        """The approver whose secret the line holds, "" without one. Raises `ApproverSecretWrong`."""
        if "approver" not in request:
            return ""
        name, secret = request["approver"], request.get("secret")
        if not isinstance(name, str) or not isinstance(secret, str):
            raise InvalidArgument("an approver's name comes with their secret")
        return await self._deps.approvers.prove(Proof(name, secret), now_ms=self._deps.clock.now_ms())

    async def _watch(self, request: JsonObject, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        run_id, cursor = request["watch"], request.get("cursor", 0)
        if not isinstance(run_id, str) or not isinstance(cursor, int) or isinstance(cursor, bool) or cursor < 0:
            raise InvalidArgument("to watch takes a run's id and the seq of the first event")
        await self._deps.store.runs.get(run_id)
        shown = asyncio.create_task(self._show(run_id, cursor, writer))
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({shown, gone}, return_when=asyncio.FIRST_COMPLETED)
            if shown.done():
                shown.result()
        finally:
            for task in (shown, gone):
                task.cancel()
            await asyncio.gather(shown, gone, return_exceptions=True)

    async def _show(self, run_id: str, cursor: int, writer: asyncio.StreamWriter) -> None:
        await _send(writer, registry.success({"run_id": run_id}))
        async with aclosing(live.follow(self._deps, run_id, cursor=cursor)) as items:  # type: ignore[type-var]  # it is a generator
            async for item in items:
                await _send(writer, item)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line. One that is too long is read to its end before it is refused: who still writes reads nothing."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        while (piece := await reader.read(SKIPPED_BYTES)) and not piece.endswith(b"\n"):
            pass
        raise


async def _send(writer: asyncio.StreamWriter, message: JsonObject) -> None:
    writer.write(wire.line(message))
    try:
        async with asyncio.timeout(LINGER_S):
            await writer.drain()
    except TimeoutError:
        raise StoreBusy("the client reads nothing") from None
