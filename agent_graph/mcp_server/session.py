"""One client, from its first line to the end of its input, whatever carries its lines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.memory import MessageStream, create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from agent_graph.mcp_server.lines import END_OF_INPUT, Lines
from agent_graph.mcp_server.wire import Unread, read, written

log = logging.getLogger(__name__)

ANSWERS_S: Final = 1.5
"""Seconds that requests under way may take after the end of input; a client that left may have piped them in."""
CLOSING_S: Final = 1.0
"""Seconds to end in order, each for the server and for what is still to be written."""
UNANSWERED: Final = frozenset({"subscriptions/listen"})
"""Requests whose answer is a stream without an end: nobody waits for it."""
ENVELOPE_DEPTH: Final = 8
"""Levels of a message around the arguments of a tool and a value in them."""
LONG: Final = 256 * 1024
"""Bytes of a line that is read on a thread, so that it keeps no other client waiting."""


class Session:
    """Carries lines to the server and its messages back, and knows which requests are still to be answered."""

    def __init__(
        self, server: Server[Any], lines: Lines, *, max_depth: int, on_end: Callable[[], None] = lambda: None
    ) -> None:
        """`on_end` is called when the client has left or `end` came, before what is under way is ended."""
        self._server = server
        self._lines = lines
        self._on_leaving = on_end
        self._max_depth = max_depth + ENVELOPE_DEPTH
        self._loop = asyncio.get_running_loop()
        self._open: set[str] = set()
        self._answered = asyncio.Event()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._inbox: MessageStream | None = None

    async def run(self) -> str:
        """Serve until the client leaves or `end` is called; returns why it ended."""
        async with create_client_server_memory_streams() as (ours, theirs):
            self._inbox = ours
            options = self._server.create_initialization_options()
            serving = asyncio.create_task(self._server.run(*theirs, options))
            telling = asyncio.create_task(self._tell(ours))
            serving.add_done_callback(lambda _: self.end("the server stopped"))
            try:
                self._lines.start(on_line=self._take, on_end=self.end)
                why = await self._ended
                self._on_leaving()
                if why == END_OF_INPUT:
                    await self._last_answers()
                await ours[1].aclose()
            finally:
                await _finish(serving)
                await _finish(telling)
        return why

    def end(self, why: str) -> None:
        """End the session; a second call does nothing."""
        if not self._ended.done():
            self._ended.set_result(why)

    # -- from the client -------------------------------------------------------------------------------------------

    async def _take(self, line: bytes) -> None:
        if len(line) > LONG:
            message = await asyncio.to_thread(read, line, max_depth=self._max_depth)
        else:
            message = read(line, max_depth=self._max_depth)
        if isinstance(message, Unread):
            await self._write(message.answer)
            return
        match message:
            case types.JSONRPCRequest() if message.method not in UNANSWERED:
                self._open.add(str(message.id))
            case types.JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                self._settle(params.get("requestId"))  # nobody answers it any more
            case _:
                pass
        assert self._inbox is not None
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # it ended meanwhile
            await self._inbox[1].send(SessionMessage(message))

    # -- to the client ---------------------------------------------------------------------------------------------

    async def _tell(self, ours: MessageStream) -> None:
        async for item in ours[0]:
            if isinstance(item, SessionMessage):
                await self._write(written(item.message))
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settle(item.message.id)

    async def _write(self, line: bytes) -> None:
        try:
            await self._lines.write(line)
        except ConnectionError:
            self.end("nobody reads")

    def _settle(self, request_id: object) -> None:
        self._open.discard(str(request_id))
        if not self._open:
            self._answered.set()

    async def _last_answers(self) -> None:
        deadline = self._loop.time() + ANSWERS_S
        while self._open and (left := deadline - self._loop.time()) > 0:
            self._answered.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), left)


async def _finish(task: asyncio.Task[None]) -> None:
    """Give it a moment to end by itself, then end it."""
    await asyncio.wait({task}, timeout=CLOSING_S)
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CLOSING_S)
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        log.error("the session ended badly: %s", error, exc_info=error)
