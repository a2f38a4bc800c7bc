"""Which JSON Schemas are right beyond doubt by their few usual keywords, told in one pass without the library.

What it does not know it leaves to `core.schema`, which asks the meta-schema; so it never says that one is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonValue, is_number

TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
WEIGHT: Final = 20_000
"""Keywords and what stands in them, beyond which applying the schema is tried too."""


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value) and len({*value}) == len(value)


def _types(value: Any) -> bool:
    return value in TYPES if isinstance(value, str) else bool(value) and _texts(value) and {*value} <= {*TYPES}


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


_WORDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _types,
    "required": _texts,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_number),
    **dict.fromkeys(("title", "description", "pattern", "format"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("enum", "examples"), lambda value: isinstance(value, list)),
    **dict.fromkeys(("default", "const"), lambda _value: True),
    "uniqueItems": lambda value: isinstance(value, bool),
}
_SCHEMA: Final = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames"})
_SCHEMAS: Final = frozenset({"anyOf", "oneOf", "allOf"})


def plainly_right(schema: JsonValue) -> bool:
    """Whether `schema` is one that the meta-schema accepts, that refers to nothing and is small."""
    weight = 0
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            return False
        for word, value in part.items():
            weight += 1 + (len(value) if isinstance(value, list | dict) else 0)
            if word in _SCHEMA:
                todo.append(value)
            elif word in _SCHEMAS and isinstance(value, list) and value:
                todo += value
            elif word == "properties" and isinstance(value, dict):
                todo += value.values()
            elif word not in _WORDS or not _WORDS[word](value):
                return False
        if weight > WEIGHT:
            return False
    return True
