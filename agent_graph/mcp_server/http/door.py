"""The door: looks at every request before anything else does, and counts it.

A page in a browser can be made to send requests to this machine under a name of its own (DNS rebinding). So a request
has to name a host, and come from a page, that this server is set up for; a program sends no origin.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_graph.errors import AgentGraphError, HostNotAllowed, InsufficientScope, OriginNotAllowed
from agent_graph.mcp_server.calling import GRANTED, Granted
from agent_graph.mcp_server.http.access import Access
from agent_graph.mcp_server.http.lapse import Lapse
from agent_graph.mcp_server.http.metrics import Requests
from agent_graph.mcp_server.http.rates import Rates
from agent_graph.mcp_server.http.refusals import response
from agent_graph.settings.http import HttpSettings

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
ANYWHERE: Final = ("0.0.0.0", "::", "[::]")  # noqa: S104  (names of it; nothing listens here)
OPEN: Final = "/healthz"
"""Says nothing but that somebody is there; whoever watches a server asks it by whatever address it has."""


class Door:
    """Around everything of one server."""

    def __init__(self, app: ASGIApp, http: HttpSettings, requests: Requests) -> None:
        self._app = app
        self._http = http
        self._requests = requests
        self._names = {*LOCAL_NAMES} if http.loopback or http.host in ANYWHERE else set()
        self._names |= {*http.allowed_hosts} | ({http.host} - {*ANYWHERE})
        if ":" in http.host and not http.host.startswith("["):
            self._names.add(f"[{http.host}]")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._requests.answered(scope, int(message["status"]))
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, counted)
        except AgentGraphError as refusal:
            await response(refusal, self._http)(scope, receive, counted)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if scope["path"] != OPEN and not self._is_ours(host):
            message = f"this server is not set up to be called {host[:100]!r}; http.allowed_hosts names what it is"
            raise HostNotAllowed(message)
        origin = headers.get("origin")
        own = (f"http://{host}", f"https://{host}")
        if origin is not None and origin not in own and origin not in self._http.allowed_origins:
            raise OriginNotAllowed("pages of that server may not call this one; http.allowed_origins names who may")

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        return host in self._names or (port.isdigit() and name in self._names)


class Guard:
    """Before an application: lets in who shows a token, so many times a minute, with `scope` if one is named, and for
    as long as the token does."""

    def __init__(self, app: ASGIApp, access: Access, rates: Rates, *, scope: str = "") -> None:
        self._app = app
        self._access = access
        self._rates = rates
        self._scope = scope

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        peer = f"address {connection.client.host if connection.client else ''}"
        shown = connection.headers.get("authorization")
        try:
            granted = await self._access.of_header(shown)
        except AgentGraphError:
            self._rates.take(peer)
            raise
        self._rates.take(f"principal {granted.principal}" if granted.principal else peer)
        require(granted, self._scope)
        scope[GRANTED] = granted
        async with Lapse(self._access, shown, send) as lapse:
            await self._app(scope, receive, lapse.send)


def require(granted: Granted, scope: str) -> None:
    """Raises `InsufficientScope`; "" is no scope."""
    if scope and not granted.may(scope):
        raise InsufficientScope(f"this needs the scope {scope}", scope=scope)
