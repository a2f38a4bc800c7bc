"""Refusals where no tool is called and so no envelope is answered: as errors of JSON-RPC."""

from __future__ import annotations

from typing import Any, Final

from mcp import MCPError, types

from agent_graph.errors import AgentGraphError, Corrupt, Upstream
from agent_graph.tools import registry

NOBODY_COULD: Final = "this list has one page; leave the cursor out"


def protocol_error(refusal: Any, **about: str) -> MCPError:
    """The error of a refusal's envelope: what the client can mend is `-32602`, all else `-32603`; the envelope and
    `about` are its data."""
    ours = _classes()[refusal["error_code"]]
    code = types.INTERNAL_ERROR if issubclass(ours, Upstream | Corrupt) else types.INVALID_PARAMS
    return MCPError(code, f"{refusal['error_code']}: {refusal['error']}", {**about, **refusal})


def refused(refusal: AgentGraphError, **about: str) -> MCPError:
    """The error of a refusal of our own."""
    return protocol_error(registry.failure(refusal), **about)


def refuse_cursor(params: types.PaginatedRequestParams) -> None:
    """Lists come in one page. Raises `MCPError` for a cursor, which nobody can have been given."""
    if params.cursor:
        raise MCPError(types.INVALID_PARAMS, NOBODY_COULD)


def _classes() -> dict[str, type[AgentGraphError]]:
    """By code; a family's own code is also that of one of its members, which is then the one."""
    found: dict[str, type[AgentGraphError]] = {}
    open_: list[type[AgentGraphError]] = [AgentGraphError]
    while open_:
        one = open_.pop()
        found[one.code] = one
        open_ += one.__subclasses__()
    return found
