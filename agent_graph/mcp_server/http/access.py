"""From what a request shows to whom it lets in: tokens of this server, and those of an OAuth issuer.

The console asks here too. A stranger is told that a token does not do, and not why; the log says it.
"""

from __future__ import annotations

import logging
from typing import Final

from agent_graph.engine.clock import Clock
from agent_graph.errors import AccessTokenInvalid
from agent_graph.mcp_server.calling import LOCAL, Granted
from agent_graph.mcp_server.http.oauth import Issuer
from agent_graph.settings.http import HttpSettings
from agent_graph.store.base import TokenStore
from agent_graph.tools.tokens import PREFIX, holder

log = logging.getLogger(__name__)

MOST_CHARS: Final = 16_384
"""Characters of a token; an issuer's has a few thousand."""
NONE_SHOWN: Final = "show a token: Authorization: Bearer TOKEN (the operator makes it: agent-graph tokens create NAME)"
NOT_VALID: Final = "this token does not let anybody in here"


class Access:
    """Who may come in to one server."""

    def __init__(self, tokens: TokenStore, http: HttpSettings, clock: Clock) -> None:
        self._tokens = tokens
        self._http = http
        self._clock = clock
        self.issuer = Issuer(http) if http.oauth_issuer else None

    async def of_header(self, authorization: str | None) -> Granted:
        """Whom an ``Authorization`` header lets in. Raises as `of_token`."""
        if self._http.auth == "none":
            return LOCAL
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise AccessTokenInvalid(NONE_SHOWN, shown=False)
        return await self.of_token(token.strip())

    async def of_token(self, token: str) -> Granted:
        """Whom a token lets in. Raises `AccessTokenInvalid`; `InsufficientScope` for an issuer's token that lacks what
        every one has to hold; `Upstream` errors while the issuer's keys cannot be had."""
        if len(token) > MOST_CHARS or not token.isascii():
            raise AccessTokenInvalid(NOT_VALID, shown=True)
        if token.startswith(PREFIX):
            row = await holder(self._tokens, token, now_ms=self._clock.now_ms())
            if row is not None:
                return Granted(row.principal, frozenset(row.scopes), self._http.sharing)
            log.info("a token of this server was refused: unknown, revoked or over")
        elif self.issuer is not None:
            principal, scopes = await self.issuer.holder(token)
            return Granted(principal, scopes, self._http.sharing)
        raise AccessTokenInvalid(NOT_VALID, shown=True)
