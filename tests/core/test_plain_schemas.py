"""core.plain_schemas: what is called right without the library is right by the meta-schema too."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from agent_graph.core import plain_schemas
from agent_graph.core.plain_schemas import plainly_right

PLAIN: list[Any] = [
    {}, True, {"type": "string", "maxLength": 3, "pattern": "a"}, {"type": ["string", "null"]},
    {"type": "object", "required": ["a"], "properties": {"a": {"enum": [1, None]}, "b": False},
     "additionalProperties": False},
    {"type": "array", "items": {"anyOf": [{"const": 1}, {"minimum": 0.5}]}, "uniqueItems": True, "default": [],
     "title": "t", "description": "d", "examples": [1]},
]  # fmt: skip
NOT_TOLD: list[Any] = [
    3, {"type": "strin"}, {"type": []}, {"type": ["string", "string"]}, {"type": 5}, {"required": ["a", "a"]},
    {"required": "a"}, {"maxLength": -1}, {"maxLength": True}, {"maxLength": 1.0}, {"minimum": "1"}, {"minimum": True},
    {"pattern": 1}, {"enum": 1}, {"uniqueItems": 1}, {"anyOf": []}, {"anyOf": {}}, {"properties": []},
    {"items": [{}]}, {"items": {"$ref": "#"}}, {"$defs": {}}, {"if": {}}, {"x-note": 1}, {"properties": {"a": 1}},
]  # fmt: skip


@pytest.mark.parametrize("schema", PLAIN)
def test_usual_schemas_are_told_at_once(schema: Any) -> None:
    assert plainly_right(schema)
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("schema", NOT_TOLD)
def test_what_is_wrong_or_unusual_is_left_to_the_library(schema: Any) -> None:
    assert not plainly_right(schema)


def test_a_large_one_is_left_to_the_library() -> None:
    assert plainly_right({"enum": [*range(plain_schemas.WEIGHT - 1)]})
    assert not plainly_right({"enum": [*range(plain_schemas.WEIGHT)]})
