"""Paths into JSON values: dotted or RFC 6901, reading, and writing without changing what was given.

A dotted path takes, at every object, the longest run of its segments that is an existing key: a flat key that
contains dots is found first. A path that starts with ``/`` is a JSON Pointer and is taken segment by segment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from agent_graph.core.effects import MISSING, MaybeJson
from agent_graph.core.issues import pointer as to_pointer
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.errors import NodeFailure, StatePathInvalid, StatePathNotFound

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")
_KEYS_SHOWN: Final = 20


@lru_cache(maxsize=4096)  # the same few paths of a graph, asked at every step
def split(path: str) -> tuple[str, ...]:
    """The segments of a dotted path or JSON Pointer; ValueError says what is wrong with it."""
    if path.startswith("/"):
        return _pointer_segments(path)
    segments = tuple(path.split("."))
    if "" in segments:
        raise ValueError("a path is empty" if path == "" else f"the path {path!r} has an empty segment")
    return segments


def fixed(path: str) -> tuple[str, ...] | None:
    """The segments `path` stands for in whatever value; None where that hangs on the keys there (see `resolve`)."""
    segments = split(path)
    return segments if len(segments) == 1 or path.startswith("/") else None


def read(value: JsonValue, path: str) -> MaybeJson:
    """What `value` holds at `path`, or MISSING. ValueError when it is no path."""
    found: MaybeJson = value
    for segment in resolve(value, path):
        found = _member(found, segment)
        if found is MISSING:
            break
    return found


def resolve(value: JsonValue, path: str) -> tuple[str, ...]:
    """The segments `path` stands for in `value`: an existing flat key that contains dots is one segment."""
    known = fixed(path)
    if known is not None:
        return known
    segments = split(path)
    resolved: list[str] = []
    at = 0
    here: MaybeJson = value
    while at < len(segments):
        taken = _longest_key(here, segments[at:]) if isinstance(here, dict) else 1
        segment = ".".join(segments[at : at + taken])
        here = _member(here, segment)
        resolved.append(segment)
        at += taken
    return tuple(resolved)


def put(value: JsonValue, segments: Sequence[str], new: JsonValue, *, force: bool = False) -> JsonValue:
    """`value` with `new` at `segments`; what lies beside the path is shared, nothing given is changed.

    Objects are made where there is nothing or null. In a list a segment is the index of an element, or ``-`` (or the
    list's length) for one more. Where a segment cannot be applied, `force` puts an object in the way's place (the later
    of two concurrent writes stands); else it raises `NodeFailure` TRANSFORM_INVALID.
    """
    parents: list[JsonValue] = []
    here: MaybeJson = value
    for depth, segment in enumerate(segments):
        if here is None or here is MISSING:
            here = {}
        if not isinstance(here, dict) and not (isinstance(here, list) and _position(here, segment) is not None):
            if not force:
                raise _cannot_write(here, segments, depth)
            here = {}
        parents.append(here)
        here = _member(here, segment)
    made = new
    for parent, segment in zip(reversed(parents), reversed(segments), strict=True):
        made = _with(parent, segment, made)
    return made


def remove(value: JsonValue, segments: Sequence[str]) -> JsonValue:
    """`value` without what is at `segments` (at least one); the same value when nothing is there."""
    parents: list[MaybeJson] = []
    here: MaybeJson = value
    for segment in segments:
        parents.append(here)
        here = _member(here, segment)
    if here is MISSING:
        return value
    last: Any = parents[-1]  # an object or a list: only these have members
    made: JsonValue
    if isinstance(last, dict):
        made = {key: item for key, item in last.items() if key != segments[-1]}
    else:
        index = int(segments[-1])
        made = last[:index] + last[index + 1 :]
    for parent, segment in zip(reversed(parents[:-1]), reversed(segments[:-1]), strict=True):
        made = _with(parent, segment, made)
    return made


def pointer_get(value: JsonValue, pointer: str) -> JsonValue:
    """What `value` holds at an RFC 6901 pointer; "" is all of it.

    Raises `StatePathInvalid` for what is no pointer, `StatePathNotFound` where there is nothing; its details name
    the part that exists and what is there.
    """
    if pointer == "":
        return value
    if not pointer.startswith("/"):
        raise StatePathInvalid('a JSON Pointer is empty or starts with "/"', path=pointer)
    try:
        segments = _pointer_segments(pointer)
    except ValueError as error:
        raise StatePathInvalid(str(error), path=pointer) from None
    here: JsonValue = value
    for depth, segment in enumerate(segments):
        below = _member(here, segment)
        if below is MISSING:
            raise _not_found(here, segments, depth)
        here = below  # type: ignore[assignment]  # MISSING left above
    return here


def _pointer_segments(pointer: str) -> tuple[str, ...]:
    if _BAD_ESCAPE.search(pointer):
        raise ValueError(f'in the JSON Pointer {pointer!r} a "~" is not followed by 0 or 1')
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def _longest_key(here: dict[str, JsonValue], segments: Sequence[str]) -> int:
    for count in range(len(segments), 1, -1):
        if ".".join(segments[:count]) in here:
            return count
    return 1


def _member(value: MaybeJson, segment: str) -> MaybeJson:
    if isinstance(value, dict):
        return value.get(segment, MISSING)
    if isinstance(value, list) and _INDEX.fullmatch(segment) and int(segment) < len(value):
        return value[int(segment)]
    return MISSING


def _position(items: list[JsonValue], segment: str) -> int | None:
    """Where a write to `segment` goes in a list: an element, or its end."""
    if segment == "-":
        return len(items)
    if _INDEX.fullmatch(segment) and int(segment) <= len(items):
        return int(segment)
    return None


def _with(parent: Any, segment: str, item: JsonValue) -> JsonValue:
    """A copy of an object or list that has a place for `segment`, with `item` there."""
    if isinstance(parent, dict):
        return {**parent, segment: item}
    index = len(parent) if segment == "-" else int(segment)
    return [*parent[:index], item, *parent[index + 1 :]]


def _cannot_write(here: MaybeJson, segments: Sequence[str], depth: int) -> NodeFailure:
    path = to_pointer(*segments)
    where = to_pointer(*segments[:depth]) or "the top"
    what = "a list has no such index" if isinstance(here, list) else "neither an object nor a list is there"
    return NodeFailure("TRANSFORM_INVALID", f"cannot write {path}: at {where} {what}", path=path)


def _not_found(here: JsonValue, segments: Sequence[str], depth: int) -> StatePathNotFound:
    found = to_pointer(*segments[:depth])
    where = f"at {found}" if found else "at the top"
    message = f"there is nothing at {to_pointer(*segments)}: {where} there is no {segments[depth]!r}"
    keys = list(here)[:_KEYS_SHOWN] if isinstance(here, dict) else []
    if isinstance(here, dict) and keys:
        message += ", only " + ", ".join(map(repr, keys)) + (" ..." if len(here) > len(keys) else "")
    return StatePathNotFound(message, path=to_pointer(*segments), found=found, keys=keys)


def covers(won: tuple[str, ...], a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Where paths `a` and `b` overlap, a write of `won` has decided already."""
    return won == max(a, b, key=len)[: len(won)]


def overlap(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """One of the paths is a prefix of the other."""
    n = min(len(a), len(b))
    return a[:n] == b[:n]
