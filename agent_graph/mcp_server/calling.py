"""Who calls, as every handler of the protocol tells the tools."""

from __future__ import annotations

from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext

from agent_graph.tools.deps import Caller, Progress

Context: TypeAlias = ServerRequestContext[Any, Any]


def caller_of(context: Context) -> Caller:
    """The client of a request, and how to tell it of progress; where it did not ask for it, it is not told."""
    return Caller("assistant", client=_client(context), progress=_progress(context))


def _client(context: Context) -> str:
    """The name the client gave itself, "" where it gave none."""
    params = context.session.client_params
    return params.client_info.name if params is not None else ""


def _progress(context: Context) -> Progress:
    async def tell(count: int, message: str) -> None:
        await context.session.report_progress(count, message=message)

    return tell


def connection_of(context: Context) -> Any:
    """What the SDK keeps for as long as the client is connected: `state`, `exit_stack`, `outbound`. It hands it to no
    handler by a public name yet. Since 2026-07-28 every request has one of its own."""
    return context.session._connection
