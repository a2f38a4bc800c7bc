"""Tells an object that says how a value looks, as JSON Schema and OpenAPI do, from a value; looks at no other name."""

from __future__ import annotations

from typing import Final

from agent_graph.core.jsonvalue import JsonValue

_TYPES: Final = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_SAYS: Final = ("$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not")
_WORDS: Final = frozenset((
    "type", *_SAYS, "$anchor", "$comment", "$defs", "$id", "$schema", "additionalProperties", "contains",
    "contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "dependentRequired",
    "dependentSchemas", "deprecated", "description", "discriminator", "else", "example", "examples",
    "exclusiveMaximum", "exclusiveMinimum", "externalDocs", "format", "if", "items", "maxContains", "maxItems",
    "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
    "multipleOf", "nullable", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "readOnly",
    "required", "then", "title", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "writeOnly", "xml",
))  # fmt: skip


def is_schema(value: JsonValue) -> bool:
    """Whether all its members are words of a schema (or ``x-...``), and what it says of the value is sound."""
    if not isinstance(value, dict) or not all(key in _WORDS or key.startswith("x-") for key in value):
        return False
    said = value.get("type")
    if isinstance(said, str):
        return said in _TYPES
    if isinstance(said, list):
        return all(isinstance(one, str) and one in _TYPES for one in said)
    return said is None and any(word in value for word in _SAYS)
