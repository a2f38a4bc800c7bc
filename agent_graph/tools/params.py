"""Parameter types that several tools share; every one is typed and described, as strict clients want it."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from agent_graph.core.budgets import MEANING
from agent_graph.core.jsonvalue import JsonValue, parse_json
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.errors import AgentGraphError

ANY_JSON = {
    "anyOf": [
        {"type": "object", "additionalProperties": True},
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "number"}},
        {"type": "array", "items": {"type": "object", "additionalProperties": True}},
    ]
}


def _object(value: Any, info: ValidationInfo) -> Any:
    """Some clients send an object as a string that holds its JSON. The limits in force are the validation's context."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        limits = info.context if isinstance(info.context, Limits) else DEFAULTS
        return parse_json(value, max_bytes=2 * max(limits.spec_bytes, limits.input_bytes), max_depth=limits.json_depth)
    return value


def parsed_object(value: JsonValue, limits: Limits) -> JsonValue:
    """Some clients send an object as a string that holds its JSON; any other text stays the text it is."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            parsed = parse_json(value, max_bytes=len(value) * 4, max_depth=limits.json_depth)
        except AgentGraphError:
            return value
        return parsed if isinstance(parsed, dict) else value
    return value


class Params(BaseModel):
    """Arguments of a tool: strict, and unknown ones are refused by name before this sees them."""

    model_config = ConfigDict(extra="forbid", strict=True)


RunId: TypeAlias = Annotated[str, Field(min_length=1, max_length=100, description="Id of a run, from graph_run_start.")]
GraphId: TypeAlias = Annotated[str, Field(min_length=1, max_length=64, description="Id (name) of a graph.")]
GraphVersion: TypeAlias = Annotated[
    str, Field(max_length=80, description="A version (sha256:...) of the graph; empty = the current one.")
]
Key: TypeAlias = Annotated[
    str,
    Field(max_length=200, description="Same key and arguments: the first answer again, and nothing is done twice."),
]
Cursor: TypeAlias = Annotated[str, Field(max_length=500, description="next_cursor of the page before; empty = first.")]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=200, description="Rows of one page.")]
JsonObjectParam: TypeAlias = Annotated[
    dict[str, Any], BeforeValidator(_object), WithJsonSchema({"type": "object", "additionalProperties": True})
]
PatchParam: TypeAlias = Annotated[
    list[dict[str, Any]],
    BeforeValidator(_object),
    WithJsonSchema({"type": "array", "items": {"type": "object", "additionalProperties": True}}),
    Field(max_length=100, description='With edit: a JSON Patch (RFC 6902) on the subject, such as [{"op": "replace", '
                                      '"path": "/title", "value": "New"}]; path "" is the whole subject.'),
]  # fmt: skip
InputParam = Annotated[
    Any,
    WithJsonSchema(
        {**ANY_JSON, "description": "The run's input: an object's members become the state, a text {input}."}
    ),
]


BudgetsParam = Annotated[
    Any,
    WithJsonSchema({
        "type": "object",
        "description": "What the run may use; beside the graph's own; the lower holds. on_budget pause asks a person.",
        "properties": {
            **{name: {"type": "integer", "minimum": 1} for name in MEANING},
            "on_budget": {"enum": ["fail", "pause"], "type": "string"},
        },
        "additionalProperties": False,
    }),
]  # fmt: skip
