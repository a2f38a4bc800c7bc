"""What makes one JSON value of another, as a JSON Patch (RFC 6902): not the shortest there is, and never too long."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonObject, JsonValue, json_equal, size

MOST: Final = 100
MOST_BYTES: Final = 8_000


def difference(
    before: JsonValue, after: JsonValue, *, most: int = MOST, max_bytes: int = MOST_BYTES
) -> tuple[list[JsonObject], bool]:
    """The steps that make `after` of `before`, and whether these are all: at most so many, of so many bytes."""
    found: list[JsonObject] = []
    room = max_bytes
    steps = _steps(before, after, "")
    for step in islice(steps, most):
        room -= size(step)
        if room < 0:
            return found, False
        found.append(step)
    return found, next(steps, None) is None


def _steps(before: Any, after: Any, at: str) -> Iterator[JsonObject]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _members(before, after, at)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(before, after, at)
    elif not json_equal(before, after):
        yield {"op": "replace", "path": at, "value": after}


def _members(before: dict[str, Any], after: dict[str, Any], at: str) -> Iterator[JsonObject]:
    for key, value in before.items():
        place = f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
        if key in after:
            yield from _steps(value, after[key], place)
        else:
            yield {"op": "remove", "path": place}
    for key, value in after.items():
        if key not in before:
            yield {"op": "add", "path": f"{at}/{key.replace('~', '~0').replace('/', '~1')}", "value": value}


def _items(before: list[Any], after: list[Any], at: str) -> Iterator[JsonObject]:
    """Place by place; what is longer is cut or lengthened at its end."""
    for place, (one, other) in enumerate(zip(before, after, strict=False)):
        yield from _steps(one, other, f"{at}/{place}")
    for place in range(len(before) - 1, len(after) - 1, -1):
        yield {"op": "remove", "path": f"{at}/{place}"}
    for value in after[len(before) :]:
        yield {"op": "add", "path": f"{at}/-", "value": value}
