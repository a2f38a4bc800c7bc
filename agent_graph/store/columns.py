"""JSON in a column, and the WHERE of a list; knows no table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, JsonValue, canonical_text, parse_json
from agent_graph.errors import InvalidRequest
from agent_graph.store.sqlite_errors import corrupt

_BYTES: Final = 2**31 - 1  # SQLite's own limit on a value
_DEPTH: Final = 900  # above the ceiling on JSON depth, below what the parser's recursion can take


def json_text(value: JsonValue) -> str:
    """How a JSON value is written into a column."""
    return canonical_text(value)


def json_value(text: str | bytes) -> JsonValue:
    """The value of such a column; raises `StoreCorrupt`."""
    try:
        return parse_json(text, max_bytes=_BYTES, max_depth=_DEPTH)
    except InvalidRequest as error:
        raise corrupt(None, f"a column is not JSON: {error.message}") from error


def json_object(text: str | bytes) -> JsonObject:
    """As `json_value`, of a column that holds an object."""
    value = json_value(text)
    if isinstance(value, dict):
        return value
    raise corrupt(None, "a column holds another kind of JSON than was written")


def strings(text: str | bytes) -> tuple[str, ...]:
    """As `json_value`, of a column that holds a list of strings."""
    value = json_value(text)
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    raise corrupt(None, "a column holds another kind of JSON than was written")


def where(conditions: Iterable[str]) -> str:
    """The WHERE clause that joins `conditions`, which are fixed texts of ours; values go in as parameters."""
    joined = " AND ".join(conditions)
    return f"WHERE {joined}" if joined else ""
