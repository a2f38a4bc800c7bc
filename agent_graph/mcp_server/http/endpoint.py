"""``/mcp``: reads a request's body within its bound, asks for the scope it needs, and hands it to the protocol.

The scope is looked for here as well as in the registry, so that a client is told by the status of the response, as the
protocol wants it. What holds is the registry.
"""

from __future__ import annotations

from typing import Final

from mcp import types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from agent_graph.errors import BodyTooLarge
from agent_graph.mcp_server.calling import GRANTED, Granted
from agent_graph.mcp_server.http.door import require
from agent_graph.mcp_server.session import ENVELOPE_DEPTH
from agent_graph.mcp_server.wire import Unread, read
from agent_graph.tools.registry import TOOLS

READING: Final = "runs:read"
METHODS: Final = {
    "resources/": READING, "subscriptions/": READING, "completion/": READING, "tasks/get": READING,
    "tasks/update": "approvals:decide", "tasks/cancel": "runs:write",
}  # fmt: skip
"""By how a method's name begins, beside ``tools/call``: what it does with what is stored."""


class Gone(Exception):
    """The client left before it had sent its request."""


class Endpoint:
    """Streamable HTTP over one session manager."""

    def __init__(self, manager: StreamableHTTPSessionManager, *, body_bytes: int, max_depth: int) -> None:
        self._manager = manager
        self._body_bytes = body_bytes
        self._max_depth = max_depth + ENVELOPE_DEPTH

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        granted: Granted = scope[GRANTED]
        if granted.principal:  # a session is its principal's: to others the protocol says there is none
            token = AccessToken(token="", client_id=granted.principal, scopes=[], subject=granted.principal)
            scope["user"] = AuthenticatedUser(token)
        if scope["method"] == "POST":
            try:
                body = await read_body(scope, receive, most=self._body_bytes)
            except Gone:
                return
            message = read(body, max_depth=self._max_depth)
            if isinstance(message, Unread):
                await Response(message.answer, 400, media_type="application/json")(scope, receive, send)
                return
            require(granted, needed(message))
            receive = _again(body, receive)
        await self._manager.handle_request(scope, receive, send)


def needed(message: types.JSONRPCMessage) -> str:
    """The scope of a message, "" for what everybody may who is let in."""
    if not isinstance(message, types.JSONRPCRequest):
        return ""
    if message.method == "tools/call":
        found = TOOLS.get(str((message.params or {}).get("name")))
        return "" if found is None else found.scope
    return next((scope for start, scope in METHODS.items() if message.method.startswith(start)), "")


async def read_body(scope: Scope, receive: Receive, *, most: int) -> bytes:
    """The whole body. Raises `BodyTooLarge` as soon as it is known to be, and `Gone`."""
    said = Headers(scope=scope).get("content-length", "")
    if said.isdigit() and int(said) > most:
        raise BodyTooLarge(f"a request has at most {most} bytes", limit=most)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        body += message.get("body", b"")
        if len(body) > most:
            raise BodyTooLarge(f"a request has at most {most} bytes", limit=most)
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive`, with the body that was read already first."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
