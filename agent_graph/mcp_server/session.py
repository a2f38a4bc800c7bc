"""One client on standard input and output, from its first line to the end of its input."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from typing import Any, Final

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.memory import MessageStream, create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from agent_graph.mcp_server.lines import Reader, Writer
from agent_graph.mcp_server.wire import Unread, read, written

log = logging.getLogger(__name__)

ANSWERS_S: Final = 1.5
"""Seconds that requests under way may take after the end of input; a client that left may have piped them in."""
CLOSING_S: Final = 1.0
"""Seconds to end in order, each for the server and for what is still to be written."""
UNANSWERED: Final = frozenset({"subscriptions/listen"})
"""Requests whose answer is a stream without an end: nobody waits for it."""
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ENVELOPE_DEPTH: Final = 8
"""Levels of a message around the arguments of a tool and a value in them."""


class Session:
    """Carries lines to the server and its messages back, and knows which requests are still to be answered."""

    def __init__(
        self, server: Server[Any], descriptors: tuple[int, int], *, max_depth: int, on_end: Callable[[], None]
    ) -> None:
        """`on_end` is called when the client has left or a signal came, before what is under way is ended."""
        self._server = server
        self._on_leaving = on_end
        self._max_depth = max_depth + ENVELOPE_DEPTH
        self._loop = asyncio.get_running_loop()
        self._open: set[str] = set()
        self._answered = asyncio.Event()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._writer = Writer(descriptors[1])
        self._reader = Reader(*descriptors, on_line=self._on_line, on_end=self._on_end)
        self._inbox: MessageStream | None = None

    async def run(self) -> str:
        """Serve until the client leaves or a signal comes; returns why it ended."""
        for number in SIGNALS:
            self._loop.add_signal_handler(number, self._end, f"signal {signal.Signals(number).name}")
        async with create_client_server_memory_streams() as (ours, theirs):
            self._inbox = ours
            options = self._server.create_initialization_options()
            serving = asyncio.create_task(self._server.run(*theirs, options))
            telling = asyncio.create_task(self._tell(ours))
            serving.add_done_callback(lambda _: self._end("the server stopped"))
            self._writer.start()
            self._reader.start()
            why = await self._ended
            self._on_leaving()
            if why == "end of input":
                await self._last_answers()
            await ours[1].aclose()
            await _finish(serving)
            await _finish(telling)
        for number in SIGNALS:
            self._loop.remove_signal_handler(number)
        return why

    # -- from the client -------------------------------------------------------------------------------------------

    def _on_line(self, line: bytes) -> None:
        """On the reader's thread; returns when the line was taken, so that a fast client waits for a slow server."""
        message = read(line, max_depth=self._max_depth)
        asyncio.run_coroutine_threadsafe(self._take(message), self._loop).result()

    def _on_end(self, why: str) -> None:
        self._loop.call_soon_threadsafe(self._end, why)

    def _end(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_result(why)

    async def _take(self, message: types.JSONRPCMessage | Unread) -> None:
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
            await self._writer.write(line)
        except BrokenPipeError:
            self._end("nobody reads")

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
