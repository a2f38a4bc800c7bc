"""A text that is longer than an answer, read in parts: whole characters, nothing added, nothing lost."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from agent_graph.core.jsonvalue import JsonObject, JsonValue, size
from agent_graph.errors import InvalidArgument
from agent_graph.tools.fitting import prefix
from agent_graph.tools.registry import Call

Offset: TypeAlias = Annotated[
    int, Field(ge=0, description="For a long text: the character to begin at; then next_offset of the answer.")
]


def part(call: Call[Any], value: JsonValue, *, offset: int, name: str) -> JsonObject:
    """`{name: value}` where the value fits; of a text that does not, {name: its part from `offset` on, offset,
    characters, next_offset (null behind the last part), truncated}.

    Anything else that does not fit is left for `fitting` to cut. Raises `InvalidArgument` for an offset beyond the text
    or into something that is none. On the command line everything fits.
    """
    room = call.deps.limits.result_bytes // 2
    if offset and not isinstance(value, str):
        raise InvalidArgument(f"{name} is no text: only a text is read from an offset", argument="offset")
    if not isinstance(value, str) or (not offset and (call.caller.via == "cli" or size(value) <= room)):
        return {name: value}
    if offset > len(value):
        raise InvalidArgument(f"the text has {len(value)} characters", argument="offset", characters=len(value))
    rest = value[offset : offset + room]
    end = offset + (len(rest) if call.caller.via == "cli" else prefix(rest, room))
    more = end < len(value)
    return {
        name: value[offset:end], "offset": offset, "characters": len(value), "next_offset": end if more else None,
        "truncated": more or offset > 0,
    }  # fmt: skip
