"""Log messages to a client of the older revisions that asked for them: what was refused in its own calls, and why.

The program's log is not sent: it is about other clients too. It goes to standard error.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from mcp import types
from mcp.server.lowlevel import Server

from agent_graph.mcp_server.calling import Context, connection_of
from agent_graph.tools.registry import Envelope

LEVELS: Final[tuple[str, ...]] = get_args(types.LoggingLevel)
"""From the least to the most serious."""
_KEY: Final = "agent-graph/log-level"
"""Where the level of a connection is among what the SDK keeps for it."""


def serve(server: Server[Any]) -> None:
    """Add ``logging/setLevel`` to `server`; revision 2026-07-28 has it no more."""

    async def set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        connection_of(context).state[_KEY] = params.level
        return types.EmptyResult()

    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)


async def tell(context: Context, tool: str, envelope: Envelope) -> None:
    """Send what was refused to a client that asked for messages of that level: a refusal is a warning, a bug of ours
    an error."""
    wanted = connection_of(context).state.get(_KEY)
    if wanted is None or envelope["ok"]:
        return
    level: types.LoggingLevel = "error" if envelope["error_code"] == "INTERNAL" else "warning"
    if LEVELS.index(level) >= LEVELS.index(wanted):
        data = {"tool": tool, "error_code": envelope["error_code"], "error": envelope["error"]}
        params = types.LoggingMessageNotificationParams(level=level, logger="agent-graph", data=data)
        await context.session.send_notification(
            types.LoggingMessageNotification(params=params), related_request_id=context.request_id
        )
