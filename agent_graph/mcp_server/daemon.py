"""One process that owns a data folder and serves any number of assistants over it, until it has nothing left to do."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping
from typing import Any, Final

from mcp.server.lowlevel import Server

from agent_graph import __version__
from agent_graph.core.jsonvalue import JsonObject, parse_json
from agent_graph.errors import (
    AgentGraphError,
    DaemonSettingsDiffer,
    DaemonVersionMismatch,
    InvalidArgument,
    SettingInvalid,
    StoreBusy,
)
from agent_graph.mcp_server import hello
from agent_graph.mcp_server.server import build
from agent_graph.mcp_server.session import Session
from agent_graph.mcp_server.socket_lines import SocketLines
from agent_graph.settings import Settings
from agent_graph.settings import values as read
from agent_graph.settings.asked import differences
from agent_graph.tools.deps import Deps

log = logging.getLogger(__name__)

SESSIONS: Final = 256
"""Assistants at once."""
HELLO_S: Final = 10.0
"""Seconds a client has for its first line."""
GOING_S: Final = 3.0
"""Seconds that sessions have to end when the daemon stops."""
DUE_MS: Final = 24 * 60 * 60 * 1000
"""A timer or a deadline that ends within this time keeps an idle daemon here; a later one wakes its run, late, when the
next client starts a daemon."""
PASSED_OVER: Final = 100


class Daemon:
    """Every assistant's session over one open data folder."""

    def __init__(self, deps: Deps, settings: Settings, *, stays: bool = False) -> None:
        """One that `stays` serves others too, and makes no room for another."""
        self._deps = deps
        self._settings = settings
        self._stays = stays
        self._servers: dict[tuple[str, ...], Server[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sessions: set[Session] = set()
        self._connected = asyncio.Event()
        self._left = asyncio.Event()
        self._left.set()
        self._leaving: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    # -- its end ---------------------------------------------------------------------------------------------------

    async def run(self, *, idle_ms: int = 0) -> str:
        """Serve until `leave` is called, or there is nothing to do for `idle_ms` (0: for ever); returns why."""
        idle = asyncio.create_task(self._idle(idle_ms)) if idle_ms else None
        try:
            return await self._leaving
        finally:
            if idle is not None:
                idle.cancel()

    async def aclose(self) -> None:
        """Tell the clients that are still here, and end their sessions."""
        self.leave("it is stopped")
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GOING_S)

    def leave(self, why: str) -> None:
        """End; a second call does nothing."""
        if not self._leaving.done():
            self._leaving.set_result(why)

    async def _idle(self, idle_ms: int) -> None:
        while True:
            await self._left.wait()
            await self._deps.supervisor.rest()
            self._connected.clear()
            try:
                async with asyncio.timeout(idle_ms / 1000):
                    await self._connected.wait()
            except TimeoutError:
                if not self._busy() and not await self._due_soon():
                    self.leave(f"nothing to do for {idle_ms // 1000} s")
                    return

    def _busy(self) -> bool:
        load = self._deps.supervisor.load()
        return bool(self._sessions or load["active"] or load["queued"])

    async def _due_soon(self) -> bool:
        """Some run is to be woken by the clock before long."""
        now_ms = self._deps.clock.now_ms()
        overdue: list[str] = []
        while len(overdue) < PASSED_OVER:
            found = await self._deps.store.runs.next_wake(passing_over=overdue)
            if found is None or found[0] > now_ms + DUE_MS:
                return False
            if found[0] > now_ms:
                return True
            overdue.append(found[1])
        return False

    # -- a client --------------------------------------------------------------------------------------------------

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Called by the server in one go with the connection, so that none is ever without its task."""
        if self._leaving.done():
            writer.transport.abort()
            return
        self._connected.set()
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._over(done, writer))

    def _over(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._tasks.discard(task)
        writer.close()
        if not task.cancelled() and (bug := task.exception()) is not None:
            log.error("a bug of ours in a session", exc_info=bug)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = self._welcome(await _first_line(reader))
        except AgentGraphError as refusal:
            again = self._steps_aside(refusal)
            await _say(writer, {
                "ok": False, "error_code": refusal.code, "error": refusal.message, "exit": refusal.exit_code,
                "retryable": refusal.retryable, "again": again,
            })  # fmt: skip
            return
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        if not await _say(writer, {"ok": True}) or server is None:
            return
        lines = SocketLines(reader, writer)
        session = Session(server, lines, max_depth=self._settings.limits.json_depth)
        self._sessions.add(session)
        self._left.clear()
        try:
            why = await self._until_over(session, lines)
            log.info("a client left: %s; %d are here", why, len(self._sessions) - 1)
        finally:
            self._sessions.discard(session)
            if not self._sessions:
                self._left.set()
            await lines.aclose()

    async def _until_over(self, session: Session, lines: SocketLines) -> str:
        """The session, to its end or to the daemon's."""
        running = asyncio.create_task(session.run())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            with contextlib.suppress(ConnectionError):
                await lines.write(hello.bye(self._leaving.result()))
            session.end("the daemon stops")
            await running
            raise

    def _welcome(self, first: JsonObject) -> Server[Any] | None:
        """The server for a client that says this; None when it only wanted the daemon to stop. Raises what it is
        refused with."""
        if first.get("stop") is True:
            self.leave("it was asked to stop")
            return None
        if first.get(hello.KEY) != hello.PROTOCOL or first.get("version") != __version__:
            raise DaemonVersionMismatch(_another_version(first), daemon=__version__)
        if len(self._sessions) >= SESSIONS:
            raise StoreBusy(f"{SESSIONS} assistants are connected to the daemon; close one of them")
        differ = differences(self._settings, _asked(first.get("asked")))
        if differ:
            raise DaemonSettingsDiffer(
                f"the daemon of this data folder (process {os.getpid()}) runs with other settings: {'; '.join(differ)}."
                " Say the same to every client, best in settings.toml in the data folder, or use another data folder;"
                " `agent-graph daemon --stop` ends it, and the next client starts one with its own settings"
            )
        return self._server(str(first.get("toolsets") or ""))

    def _server(self, names: str) -> Server[Any]:
        try:
            toolsets = read.toolsets(names) if names else self._settings.toolsets
        except ValueError as wrong:
            raise SettingInvalid(f"toolsets is {names!r}: {wrong}.", setting="toolsets") from None
        if toolsets not in self._servers:
            self._servers[toolsets] = build(self._deps, toolsets)
        return self._servers[toolsets]

    def _steps_aside(self, refusal: AgentGraphError) -> bool:
        """A daemon that nobody uses makes room for one as the client wants it."""
        if not isinstance(refusal, DaemonVersionMismatch | DaemonSettingsDiffer) or self._stays or self._busy():
            return False
        self.leave(f"a client wants another: {refusal.message}")
        return True


def _another_version(first: Mapping[str, Any]) -> str:
    theirs = str(first.get("version", "unknown"))[:100]
    return (
        f"this client's agent-graph is version {theirs}, and the daemon of its data folder (process {os.getpid()}) is "
        f"version {__version__}. Stop the daemon with `agent-graph daemon --stop`, then restart the client"
    )


def _asked(value: Any) -> dict[str, tuple[str, str]]:
    """The settings a client asks for; what is none of those that are compared is left out."""
    pairs = value.items() if isinstance(value, dict) else ()
    return {
        name: (str(pair[0]), str(pair[1]))
        for name, pair in pairs
        if name in hello.COMPARED and isinstance(pair, list) and len(pair) == 2
    }


async def _first_line(reader: asyncio.StreamReader) -> JsonObject:
    async with asyncio.timeout(HELLO_S):
        line = await reader.readuntil(b"\n")
    first = parse_json(line, max_bytes=hello.MOST_BYTES, max_depth=5)
    if not isinstance(first, dict):
        raise InvalidArgument("a client says who it is in a JSON object")
    return first


async def _say(writer: asyncio.StreamWriter, body: dict[str, Any]) -> bool:
    """Answer a client's first line; False when it is gone."""
    try:
        writer.write(hello.line({"version": __version__, "pid": os.getpid(), **body}))
        await writer.drain()
    except ConnectionError:
        return False
    return True
