"""An envelope as the result of a tool in the protocol."""

from __future__ import annotations

from mcp import types

from agent_graph.core.jsonvalue import compact
from agent_graph.tools.registry import Envelope


def answer(envelope: Envelope) -> types.CallToolResult:
    """Structured, and the same as compact text, where a refusal's code comes first."""
    if not envelope["ok"]:
        envelope = {"error_code": envelope["error_code"], **envelope}
    return types.CallToolResult(
        content=[types.TextContent(text=compact(envelope))], structured_content=envelope, is_error=not envelope["ok"]
    )
