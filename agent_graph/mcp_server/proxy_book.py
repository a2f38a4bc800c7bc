"""What a front remembers of a session: what is still to be answered, and what a new daemon has to be told again.

Imports the standard library alone.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from agent_graph.mcp_server.proxy_link import Link

AGAIN = "agent-graph-front:"
"""Begins the ids of requests that are the front's own; no client sees them."""
REMEMBERED = ("initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe")
_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?\d+|"[ !#-\[\]-~]*"),"(?:result|error)":')


class Message:
    """A line of the client, as far as it can be read; what cannot is the daemon's to refuse."""

    __slots__ = ("answered", "body", "id", "line", "method")

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.answered = False
        """The client has its answer."""
        body: Any = None
        with contextlib.suppress(ValueError, RecursionError):  # the daemon says what is wrong with it
            body = json.loads(line)
        self.body: dict[str, Any] = body if isinstance(body, dict) else {}
        self.method = self.body.get("method") if isinstance(self.body.get("method"), str) else ""
        given = self.body.get("id")
        asks = self.method and isinstance(given, int | str) and not isinstance(given, bool)
        self.id = _key(given) if asks else ""
        """The id of a request as JSON, "" for all else: under another id the daemon answers nobody."""

    @property
    def params(self) -> dict[str, Any]:
        params = self.body.get("params")
        return params if isinstance(params, dict) else {}


class Book:
    """Guard it by the front's lock: two threads write in it."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Message, Link]] = {}
        self._again: dict[str, Message] = {}
        """What a new daemon is told first, in order."""
        self._count = 0

    def sent(self, message: Message, link: Link) -> None:
        """It goes to this daemon now."""
        if message.id:
            self._open[message.id] = message, link
        self.remember(message)
        if message.method == "notifications/cancelled":
            self._open.pop(_key(message.params.get("requestId")), None)  # nobody answers it any more
        elif message.method == "resources/unsubscribe":
            self._again.pop(f"resources/subscribe {message.params.get('uri')}", None)

    def remember(self, message: Message) -> None:
        """A daemon that takes this one's place is to hear it too."""
        if message.method in REMEMBERED:
            what = f" {message.params.get('uri')}" if message.method == "resources/subscribe" else ""
            self._again[message.method + what] = message

    def told_again(self) -> list[bytes]:
        """The lines for a new daemon, with ids of our own."""
        lines = []
        for message in self._again.values():
            body = dict(message.body)
            if message.id:
                self._count += 1
                body["id"] = f"{AGAIN}{self._count}"
            lines.append(json.dumps(body, separators=(",", ":")).encode() + b"\n")
        return lines

    def heard(self, line: bytes) -> bool:
        """A line of the daemon; whether it is for the client."""
        found = _ANSWER.match(line)
        if found is not None:
            key = found[1].decode(errors="replace")
        else:
            try:
                body = json.loads(line)
            except (ValueError, RecursionError):
                return True
            if not isinstance(body, dict) or "method" in body:
                return True
            key = _key(body.get("id"))
        self._open.pop(key, None)
        return not key.startswith(f'"{AGAIN}')

    def lost(self, link: Link) -> list[str]:
        """The ids of the requests that this daemon answers no more; they are settled with that."""
        lost = [(key, message) for key, (message, where) in self._open.items() if where is link]
        for key, message in lost:
            del self._open[key]
            if message.method == "initialize" and self._again.get("initialize") is message:
                del self._again["initialize"]  # the client is told that it went wrong
        return [key for key, _ in lost]


def refused(key: str, code: str, message: str, *, retryable: bool) -> bytes:
    """The error that answers the request whose id is `key`, as JSON."""
    data = {"error_code": code, "retryable": retryable}
    error = json.dumps({"code": -32000, "message": f"{code}: {message}", "data": data}, separators=(",", ":"))
    return b'{"jsonrpc":"2.0","id":' + key.encode() + b',"error":' + error.encode() + b"}\n"


def _key(value: Any) -> str:
    """An id as the JSON that the daemon writes."""
    return json.dumps(value)
