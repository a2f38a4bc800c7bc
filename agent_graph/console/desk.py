"""What a page works with: who looks at it, what they sent, and the tools, called as they may call them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Any

from agent_graph.console.forms import Form
from agent_graph.console.sessions import Session
from agent_graph.core.classes import dataclass
from agent_graph.errors import AgentGraphError
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps


class Turned(Exception):
    """A tool refused; what it answered is shown."""

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        super().__init__(envelope["error"])
        self._envelope = dict(envelope)
        self.code = str(envelope["error_code"])
        self.message = str(envelope["error"])
        self.details: Mapping[str, Any] = envelope.get("details", {})
        self.status = statuses().get(self.code, 500)

    def envelope(self) -> dict[str, Any]:
        """The answer itself, for who shows no page."""
        return self._envelope


@dataclass(frozen=True, slots=True)
class Desk:
    """One request of somebody who is logged in."""

    deps: Deps
    session: Session
    caller: Caller
    still: Callable[[], Awaitable[bool]]
    """Whether they may still look, for a page that goes on."""
    over: asyncio.Event
    """Set when the server stops: pages that go on end."""
    form: Form = field(default_factory=dict)
    """What a form sent; empty for a page that is only looked at."""

    async def ask(
        self, tool: str, arguments: Mapping[str, Any], *, whole: bool = False, caller: Caller | None = None
    ) -> Any:
        """The ``data`` of a tool's answer; with `whole` nothing of it is cut. Raises `Turned`."""
        envelope = await registry.call(self.deps, tool, arguments, caller=caller or self.caller, whole=whole)
        if not envelope["ok"]:
            raise Turned(envelope)
        return envelope["data"]


@cache
def statuses() -> dict[str, int]:
    """By code, the status of its page."""
    return {kind.code: kind.http_status for kind in _kinds(AgentGraphError)}


def _kinds(kind: type[AgentGraphError]) -> Iterator[type[AgentGraphError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kinds(narrower)
