"""A line of the wire as a message, and what is answered to a line that is none.

The line is read strictly (`core.jsonvalue`). One that cannot be read is answered all the same, under its own id where
one can be found: a client that waits for ever is worse off than one that is told.
"""

from __future__ import annotations

import re
from typing import Final

from mcp import types
from pydantic import ValidationError

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, compact, parse_json
from agent_graph.errors import AgentGraphError, InputTooLarge, InvalidRequest
from agent_graph.mcp_server.lines import LINE_BYTES, TooLong
from agent_graph.tools.registry import failure

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
_PIECES: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]|[^"\[\]{}]++', re.DOTALL)
_MOST_PIECES: Final = 2_000_000
"""Pieces of a line that are looked at for its id; a line of the largest call has fewer."""
_MOST_KEPT: Final = 1_000
"""Pieces of an outline; a message has a handful of members."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that is no message, and the line to answer."""

    answer: bytes


def read(line: bytes, *, max_depth: int) -> types.JSONRPCMessage | Unread:
    """The message in `line`. Never raises."""
    try:
        if line == TooLong:
            raise InputTooLarge(f"a line of more than {LINE_BYTES} bytes", limit=LINE_BYTES)
        value = parse_json(line, max_bytes=LINE_BYTES, max_depth=max_depth)
    except InvalidRequest as refusal:
        return Unread(_refused(line, refusal))
    request_id = value.get("id") if isinstance(value, dict) else None
    try:
        message = types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return Unread(_error(request_id, INVALID_REQUEST, "not a JSON-RPC 2.0 message", {}))
    if isinstance(message, types.JSONRPCNotification) and isinstance(value, dict) and "id" in value:
        return Unread(_error(None, INVALID_REQUEST, "an id is a text or a whole number", {}))
    return message


def written(message: types.JSONRPCMessage) -> bytes:
    """The line of a message: UTF-8 whatever the locale, integers exact."""
    body: JsonObject = message.model_dump(by_alias=True, exclude_unset=True)
    return (compact(body) + "\n").encode(errors="replace")


def _refused(line: bytes, refusal: AgentGraphError) -> bytes:
    """A call whose arguments cannot be read is a tool's refusal, which a model can mend; all else a parse error."""
    outline = _outline(line)
    request_id = outline.get("id")
    if outline.get("method") == "tools/call" and isinstance(request_id, int | str):
        envelope = failure(refusal)
        envelope = {"error_code": refusal.code, **envelope}
        result: JsonObject = {
            "content": [{"type": "text", "text": compact(envelope)}], "structuredContent": envelope, "isError": True,
            "resultType": "complete",
        }  # fmt: skip
        return _line({"jsonrpc": "2.0", "id": request_id, "result": result})
    return _error(request_id, PARSE_ERROR, f"{refusal.code}: {refusal.message}", failure(refusal))


def _error(request_id: object, code: int, message: str, data: JsonObject) -> bytes:
    known = request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None
    error: JsonObject = {"code": code, "message": message}
    if data:
        error["data"] = data
    return _line({"jsonrpc": "2.0", "id": known, "error": error})


def _line(body: JsonObject) -> bytes:
    return (compact(body) + "\n").encode(errors="replace")


def _outline(line: bytes) -> JsonObject:
    """The line's own members without what is nested in them; {} when even that cannot be read."""
    kept: list[str] = []
    depth = 0
    for count, match in enumerate(_PIECES.finditer(line.decode(errors="replace"))):
        if count >= _MOST_PIECES or len(kept) >= _MOST_KEPT:
            return {}
        piece = match.group()
        depth -= piece in "]}"
        if depth == 0 or (depth == 1 and piece not in "[]{}"):
            kept.append(piece)
        elif depth == 1 and piece in "[{":
            kept.append("null")
        depth += piece in "[{"
    try:
        outline = parse_json("".join(kept), max_bytes=LINE_BYTES, max_depth=2)
    except InvalidRequest:
        return {}
    return outline if isinstance(outline, dict) else {}
