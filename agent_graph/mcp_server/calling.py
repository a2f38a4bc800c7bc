"""Who calls, as every handler of the protocol tells the tools: the local user, or whom the door over HTTP let in."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from mcp.server.context import ServerRequestContext

from agent_graph.core.classes import dataclass
from agent_graph.tools.deps import SCOPES, Caller, Progress, Sharing, Via

Context: TypeAlias = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Granted:
    """Who was let in, and with what."""

    principal: str
    """"" is the local user."""
    scopes: frozenset[str]
    sharing: Sharing = "none"

    def may(self, scope: str) -> bool:
        return self.caller("assistant").may(scope)

    def caller(self, via: Via, *, client: str = "", progress: Progress | None = None) -> Caller:
        """Whoever this is, as it calls a tool."""
        return Caller(via, client, progress, self.principal, self.scopes, self.sharing)


LOCAL: Final = Granted("", SCOPES)
NOBODY: Final = Granted("", frozenset())
"""Of a request that came in past the door: it may do nothing."""
GRANTED: Final = "agent_graph.granted"
"""Where the door leaves it in a request's ASGI scope."""


def granted_to(context: Context) -> Granted:
    """A request without HTTP comes from a process of this user."""
    if context.request is None:
        return LOCAL
    found = context.request.scope.get(GRANTED)
    return found if isinstance(found, Granted) else NOBODY


def caller_of(context: Context) -> Caller:
    """Who calls a tool, or reads a resource, with this request."""
    return granted_to(context).caller("assistant", client=_client(context), progress=_progress(context))


def _client(context: Context) -> str:
    """The name the client gave itself, "" where it gave none."""
    params = context.session.client_params
    return params.client_info.name if params is not None else ""


def _progress(context: Context) -> Progress:
    """How to tell of progress; where the client did not ask for it, nobody is told."""

    async def tell(count: int, message: str) -> None:
        await context.session.report_progress(count, message=message)

    return tell


def connection_of(context: Context) -> Any:
    """What the SDK keeps for as long as the client is connected: `state`, `exit_stack`, `outbound`. It hands it to no
    handler by a public name yet. Since 2026-07-28 every request has one of its own."""
    return context.session._connection
