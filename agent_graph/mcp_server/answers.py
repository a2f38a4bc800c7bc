"""An envelope as the result of a tool in the protocol."""

from __future__ import annotations

from mcp import types

from agent_graph.core.jsonvalue import compact
from agent_graph.tools.registry import PNG, Envelope


def answer(envelope: Envelope) -> types.CallToolResult:
    """Structured, and the same as compact text, where a refusal's code comes first; a picture beside them."""
    if not envelope["ok"]:
        envelope = {"error_code": envelope["error_code"], **envelope}
    content: list[types.ContentBlock] = []
    data = envelope.get("data")
    if isinstance(data, dict) and data.get("media_type") == PNG:
        content.append(types.ImageContent(data=str(data["data"]), mime_type=PNG))
        envelope = {**envelope, "data": {name: value for name, value in data.items() if name != "data"}}
    content.insert(0, types.TextContent(text=compact(envelope)))
    return types.CallToolResult(content=content, structured_content=envelope, is_error=not envelope["ok"])
