"""The JSON Schemas a tool is published with, in the plain form that every client keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from agent_graph.core.jsonvalue import JsonObject, JsonValue

OUTPUT_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "data": {"type": "object"},
        "error_code": {"type": "string"},
    },
    "required": ["ok"],
}
"""One envelope for all tools. Only ``ok`` is required, so that refusals fit in clients that check them too. It is
repeated for every tool of the list, hence as short as can be."""

UNSAID: Final = (("default", ""), ("additionalProperties", True))
"""Says nothing: who leaves out what is not required means the empty text, and an object is open unless it is closed."""


def input_schema(params: type[BaseModel]) -> JsonObject:
    """The schema of a tool's arguments: references resolved in place, without titles, closed to unknown names."""
    schema = params.model_json_schema(by_alias=True)
    plain = _plain(schema, schema.get("$defs", {}))
    assert isinstance(plain, dict)
    return {"type": "object", "properties": plain.get("properties", {}), **_rest(plain), "additionalProperties": False}


def _rest(schema: JsonObject) -> JsonObject:
    return {"required": schema["required"]} if schema.get("required") else {}


def _plain(schema: Any, definitions: Mapping[str, Any]) -> JsonValue:
    if isinstance(schema, list):
        return [_plain(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema  # type: ignore[no-any-return]  # a scalar of JSON
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        merged = {**definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}
        return _plain(merged, definitions)
    plain: JsonObject = {}
    for key, value in schema.items():
        if key == "properties":
            plain[key] = {name: _plain(item, definitions) for name, item in value.items()}
        elif (key, value) in UNSAID:
            continue
        elif key in ("default", "enum", "const", "examples"):
            plain[key] = value
        elif key not in ("title", "$defs"):
            plain[key] = _plain(value, definitions)
    return plain
