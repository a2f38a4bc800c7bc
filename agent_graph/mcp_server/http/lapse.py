"""Ends an answer that goes on when whoever asked for it is let in no more: a token was revoked, or is over."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final

from starlette.types import Message, Send

from agent_graph.errors import AccessTokenInvalid, AgentGraphError, InsufficientScope
from agent_graph.mcp_server.http.access import Access

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""Seconds between two looks: for so long a stream outlives its token."""


class Lapse:
    """Around the answer to one request; a short one costs no more than a timer. Use it as an async context manager."""

    def __init__(self, access: Access, authorization: str | None, send: Send) -> None:
        self._access = access
        self._authorization = authorization
        self._send = send
        self._begun = False
        self._lapsed: AgentGraphError | None = None
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Lapse:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._again()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()
        if self._lapsed is None or self._task.uncancel() > self._cancelling:
            return False
        if kind is not None and not issubclass(kind, asyncio.CancelledError):
            return False
        log.info("an answer was ended: its token lets nobody in any more")
        if not self._begun:
            raise self._lapsed
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return True

    async def send(self, message: Message) -> None:
        """In place of `send`: what has begun is ended as an answer, what has not is refused."""
        self._begun = True
        await self._send(message)

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = asyncio.create_task(self._check())

    async def _check(self) -> None:
        try:
            await self._access.of_header(self._authorization)
        except (AccessTokenInvalid, InsufficientScope) as refusal:
            self._lapsed = refusal
            self._task.cancel()
            return
        except AgentGraphError:
            log.debug("whether a token still does could not be told", exc_info=True)
        self._again()
