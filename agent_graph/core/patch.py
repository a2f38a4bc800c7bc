"""Applies a JSON Patch (RFC 6902) to a value; changes nothing it was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy, deepcopy
from typing import Any

from agent_graph.core.jsonvalue import JsonValue, json_equal, size


class PatchFailed(ValueError):
    """The patch does not fit the value; the sentence says which step."""


def applied(value: JsonValue, patch: Iterable[Mapping[str, Any]], *, max_bytes: int | None = None) -> JsonValue:
    """`value` with the steps of `patch`, all of them, or the first of them that does not fit: `PatchFailed`.

    With `max_bytes` copies of more than that in all do not fit: each can double what is there.
    """
    holder: dict[str, Any] = {"": value}
    copied = 0
    for step in patch:
        try:
            for path in (step["path"], step.get("from", "")):
                _unshare(holder, path)
            if max_bytes is not None and step["op"] == "copy":
                copied += size(_read(holder, step["from"]))
                if copied > max_bytes:
                    raise ValueError(f"the copies are larger than {max_bytes} bytes")
            apply_in_place(holder, step)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
            raise PatchFailed(f"{step.get('op')} at {step.get('path')!r} does not fit: {error}") from error
    if "" not in holder:
        raise PatchFailed("it leaves nothing")
    found: JsonValue = holder[""]
    return found


def apply_in_place(holder: dict[str, Any], step: Mapping[str, Any]) -> None:
    """One step on the value under "" in `holder`. Raises KeyError, IndexError, TypeError or ValueError."""
    op, path = step["op"], step["path"]
    match op:
        case "add":
            _add(holder, path, deepcopy(step["value"]))
        case "remove":
            _take(holder, path)
        case "replace":
            _read(holder, path)
            here, last = _parent(holder, path)
            here[_place(here, last)] = deepcopy(step["value"])  # in its place, also among the members of an object
        case "move":
            if path.startswith(step["from"] + "/"):
                raise ValueError("a value cannot be moved into itself")
            _add(holder, path, _take(holder, step["from"]))
        case "copy":
            _add(holder, path, deepcopy(_read(holder, step["from"])))
        case "test":
            if not json_equal(_read(holder, path), step["value"]):
                raise ValueError("there is another value")
        case _:
            raise ValueError(f"there is no operation {op!r}")


def _parent(holder: dict[str, Any], path: str) -> tuple[Any, str]:
    if path and not path.startswith("/"):
        raise ValueError("a pointer is empty or starts with /")
    segments = [segment.replace("~1", "/").replace("~0", "~") for segment in path.split("/")]
    here: Any = holder
    for segment in segments[:-1]:
        here = here[_place(here, segment)]
    return here, segments[-1]


def _unshare(holder: dict[str, Any], path: str) -> None:
    """Copy what a path leads through, so that what was given stays as it is."""
    here: Any = holder
    for segment in path.split("/")[:-1]:
        place = _place(here, segment.replace("~1", "/").replace("~0", "~"))
        here[place] = copy(here[place])
        here = here[place]


def _place(here: Any, segment: str) -> Any:
    if not isinstance(here, list):
        return segment
    if not segment.isascii() or not segment.isdecimal() or (segment != "0" and segment.startswith("0")):
        raise ValueError(f"{segment!r} is no index")
    return int(segment)


def _read(holder: dict[str, Any], path: str) -> Any:
    here, last = _parent(holder, path)
    return here[_place(here, last)]


def _take(holder: dict[str, Any], path: str) -> Any:
    here, last = _parent(holder, path)
    return here.pop(_place(here, last))


def _add(holder: dict[str, Any], path: str, value: Any) -> None:
    here, last = _parent(holder, path)
    if not isinstance(here, list):
        here[last] = value
        return
    place = len(here) if last == "-" else _place(here, last)
    if place > len(here):
        raise IndexError("the list is shorter")
    here.insert(place, value)
