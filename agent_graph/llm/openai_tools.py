"""Tools on OpenAI's wire: offered as functions, called in pieces with arguments as JSON text, answered by id."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact, parse_json
from agent_graph.core.limits import DEFAULTS
from agent_graph.errors import InvalidRequest, ModelBadReply
from agent_graph.llm.reply import Reply, whole_characters

MOST_CALLS: Final = 256
NAME_CHARS: Final = 256


@dataclass(slots=True)
class _Call:
    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ToolCallPieces:
    """The tool calls of one streamed answer, put together by their index."""

    def __init__(self, *, max_bytes: int, who: str) -> None:
        self._calls: dict[int, _Call] = {}
        self._left = max_bytes
        self._who = who

    def take(self, pieces: object) -> None:
        """What one event adds. Raises `ModelBadReply` (details.reason "too_large") past the bound."""
        for place, piece in enumerate(pieces) if isinstance(pieces, list) else ():
            function = piece.get("function") if isinstance(piece, dict) else None
            if not isinstance(function, dict):
                continue
            index = piece.get("index")
            call = self._calls.setdefault(index if isinstance(index, int) else place, _Call())
            call.call_id = call.call_id or _text(piece.get("id"))[:NAME_CHARS]
            call.name = (call.name + _text(function.get("name")))[:NAME_CHARS]
            call.arguments.append(self._said(function.get("arguments")))
            self._left -= len(call.arguments[-1].encode(errors="replace"))
            if self._left < 0 or len(self._calls) > MOST_CALLS:
                message = f"{self._who} answered with more tool calls than are taken"
                raise ModelBadReply(message, reason="too_large")

    def _said(self, arguments: Any) -> str:
        """A piece of the arguments' text; some hosts send the object itself."""
        if isinstance(arguments, str) or arguments is None:
            return arguments or ""
        try:
            return compact(arguments)
        except ValueError as error:  # NaN
            message = f"{self._who} wants a tool called with what is no JSON value"
            raise ModelBadReply(message, reason="not_json") from error

    def end(self, reply: Reply) -> None:
        """Hand the calls over; arguments that are no JSON stay the text they are, for the model to be told."""
        for _, call in sorted(self._calls.items()):
            reply.add_tool_call(call_id=call.call_id, name=call.name, arguments=_arguments("".join(call.arguments)))


def message(said: JsonObject) -> JsonObject:
    """A message about tools as the host takes it; any other as it is."""
    if said["role"] == "tool":
        return {"role": "tool", "content": said["content"], "tool_call_id": said["call_id"]}
    calls = said.get("tool_calls")
    if not isinstance(calls, list):
        return said
    return {**said, "tool_calls": [_wanted(each) for each in calls if isinstance(each, dict)]}


def function(tool: JsonObject) -> JsonObject:
    """A tool as it is offered."""
    described: JsonObject = {name: tool[name] for name in ("name", "description", "parameters") if name in tool}
    return {"type": "function", "function": described}


def _wanted(call: JsonObject) -> JsonObject:
    given = call["arguments"]
    text = given if isinstance(given, str) else compact(given)
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": text}}


def _arguments(text: str) -> JsonValue:
    if not text.strip():
        return {}
    try:
        return parse_json(text, max_bytes=DEFAULTS.value_bytes, max_depth=DEFAULTS.json_depth)
    except InvalidRequest:
        return whole_characters(text)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
