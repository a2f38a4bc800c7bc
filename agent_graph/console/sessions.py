"""Who is logged in: sessions kept in memory, each opened by a token or by a link that works once.

A session holds no right of its own. The token it was opened with is looked at again at every request, so that one that
is revoked or over ends the session with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Final, Protocol, TypeAlias

from agent_graph.core.classes import dataclass
from agent_graph.engine.clock import Clock
from agent_graph.errors import AccessTokenInvalid, LoginLinkInvalid
from agent_graph.tools.deps import Caller, Progress, Via

IDLE_MS: Final = 30 * 60 * 1000
LONGEST_MS: Final = 12 * 60 * 60 * 1000
LINK_MS: Final = 10 * 60 * 1000
MOST: Final = 1_000
"""Sessions at once; beyond that the one that was used least lately ends."""
OF_ONE: Final = 10
"""Sessions of one token at once; the same holds for them."""


class Visitor(Protocol):
    """Whom a token lets in."""

    def caller(self, via: Via, *, client: str = "", progress: Progress | None = None) -> Caller: ...


LetIn: TypeAlias = Callable[[str], Awaitable[Visitor]]
"""From a token to whom it lets in. Raises `AccessTokenInvalid` where it lets nobody in."""


@dataclass(slots=True)
class Session:
    """One browser that has logged in."""

    key: str = field(repr=False)
    """The digest of what the browser holds."""
    token: str = field(repr=False)
    """"" of one that came by the link: the local user."""
    form_key: str = field(repr=False)
    """What every form of this session carries, and no page of another server can know."""
    began_ms: int
    used_ms: int
    streams: int = 0
    """Pages of it that go on."""
    notice: str = ""
    """Said once, on the next page."""
    over: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    """Set when it is closed: its pages that go on end."""

    def noticed(self) -> str:
        """What is to be said, taken away."""
        said, self.notice = self.notice, ""
        return said


class Sessions:
    """Those of one server; they end with it."""

    def __init__(self, clock: Clock, let_in: LetIn) -> None:
        self._clock = clock
        self._let_in = let_in
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self.over = asyncio.Event()
        """Set when the server stops."""
        self._links: dict[str, int] = {}
        """By digest: until when a link can be used."""

    async def open(self, token: str) -> str:
        """Log in with a token; what the browser is to hold. Raises what `LetIn` raises."""
        await self._let_in(token)
        return self._begin(token)

    def link(self) -> str:
        """The key of a new link for the local user. It works once, and for `LINK_MS`."""
        key = secrets.token_urlsafe(32)
        self._links[_digest(key)] = self._clock.now_ms() + LINK_MS
        return key

    def open_link(self, key: str) -> str:
        """Log in as the local user; what the browser is to hold. Raises `LoginLinkInvalid`."""
        until_ms = self._links.pop(_digest(key), 0)
        if self._clock.now_ms() >= until_ms:
            raise LoginLinkInvalid(
                "this link was used already, or is over: log in with a token (agent-graph tokens create NAME),"
                " or start agent-graph serve anew for another link"
            )
        return self._begin("")

    async def find(self, held: str) -> tuple[Session, Caller] | None:
        """The session of what a browser holds, and who it is as a caller; None when it has to log in (again)."""
        now_ms = self._clock.now_ms()
        session = self._sessions.get(_digest(held)) if held else None
        if session is None:
            return None
        caller = await self.caller(session)
        if caller is None:
            self.close(session)
            return None
        session.used_ms = now_ms
        if session.key in self._sessions:  # it may have been closed meanwhile
            self._sessions.move_to_end(session.key)
        return session, caller

    async def caller(self, session: Session) -> Caller | None:
        """Who the session is now; None when it was closed, is over, or its token lets nobody in any more."""
        over_ms = min(session.used_ms + IDLE_MS, session.began_ms + LONGEST_MS)
        if session.key not in self._sessions or self._clock.now_ms() >= over_ms:
            return None
        if not session.token:
            return Caller("console")
        try:
            return (await self._let_in(session.token)).caller("console")
        except AccessTokenInvalid:
            return None

    def close(self, session: Session) -> None:
        self._sessions.pop(session.key, None)
        session.over.set()

    def _begin(self, token: str) -> str:
        held, now_ms = secrets.token_urlsafe(32), self._clock.now_ms()
        key = _digest(held)
        self._sessions[key] = Session(key, token, secrets.token_urlsafe(32), now_ms, now_ms)
        same = [one.key for one in self._sessions.values() if one.token == token]
        if len(same) > OF_ONE:
            self.close(self._sessions[same[0]])  # the order is that of their use
        if len(self._sessions) > MOST:
            self.close(next(iter(self._sessions.values())))
        return held


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
