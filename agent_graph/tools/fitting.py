"""Answers cut to what a client can take: whole JSON, small members untouched, and every cut named.

Room is dealt out like water: all members get what they need as long as they need little, and the large ones share what
is left, down every level. So a run's status and its cursors survive next to a state of megabytes.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, size

LEAST: Final = 48
"""Bytes a member of a list or an object is given at least; when there is not even that, the last members go."""
NAMED: Final = 6
"""Cuts that are named one by one."""
LABEL: Final = 60
"""Characters of a pointer that is named."""
NOTES_BYTES: Final = 160 + NAMED * (6 * LABEL + 64)
MARK: Final = "... [cut: {} characters in all]"


@dataclass(slots=True)
class _Cuts:
    """What was cut: the first few by pointer."""

    named: list[JsonValue] = field(default_factory=list)
    count: int = 0

    def add(self, pointer: str, note: JsonObject) -> None:
        self.count += 1
        if len(self.named) < NAMED:
            shown = pointer if len(pointer) <= LABEL else f"{pointer[: LABEL - 3]}..."
            self.named.append({"pointer": shown, **note})


def fitted(data: JsonObject, *, max_bytes: int) -> JsonObject:
    """`data` in at most `max_bytes` of JSON (at least 8 KiB). What had to be cut gets ``truncated`` true,
    ``whole_bytes`` and ``cut``: [{pointer, characters | members}] for the first few places."""
    total = size(data)
    if total <= max_bytes:
        return data
    cuts = _Cuts()
    fit = _object(data, max_bytes - NOTES_BYTES, "", cuts)
    return {**fit, "truncated": True, "whole_bytes": total, "cut": cuts.named}


def _fit(value: JsonValue, room: int, pointer: str, *, needs: int, cuts: _Cuts) -> JsonValue:
    if needs <= room:
        return value
    match value:
        case str():
            cuts.add(pointer, {"characters": len(value)})
            return _text(value, room)
        case dict():
            return _object(value, room, pointer, cuts)
        case list():
            return _list(value, room, pointer, cuts)
        case _:
            cuts.add(pointer, {"characters": needs})  # an integer of hundreds of digits
            return "..."


def _text(text: str, room: int) -> str:
    """The beginning of a text, with a mark that says how long it is where there is room for one."""
    mark = MARK.format(len(text))
    if size(mark) * 2 > room:
        mark = "..."
    return text[: prefix(text, room - size(mark) - 2)] + mark


def prefix(text: str, room: int) -> int:
    """How many characters from the beginning of a text take at most `room` bytes of JSON, quotation marks aside."""
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if size(text[:middle]) - 2 <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _object(value: JsonObject, room: int, pointer: str, cuts: _Cuts) -> JsonObject:
    sizes = [size(member) for member in value.values()]
    shares = _shares(sizes, [size(name) + 2 for name in value], room - 2)
    if len(shares) < len(value):
        cuts.add(pointer, {"members": len(value)})
    return {
        name: _fit(member, share, f"{pointer}/{_escaped(name)}", needs=needs, cuts=cuts)
        for (name, member), needs, share in zip(value.items(), sizes, shares, strict=False)
    }


def _list(value: list[JsonValue], room: int, pointer: str, cuts: _Cuts) -> list[JsonValue]:
    sizes = [size(member) for member in value]
    shares = _shares(sizes, [1] * len(value), room - 2)
    if len(shares) < len(value):
        cuts.add(pointer, {"members": len(value)})
    return [
        _fit(member, share, f"{pointer}/{index}", needs=needs, cuts=cuts)
        for index, (member, needs, share) in enumerate(zip(value, sizes, shares, strict=False))
    ]


def _shares(sizes: list[int], overheads: list[int], room: int) -> list[int]:
    """Bytes for each member, as many of them as there is room for; together with the overheads at most `room`."""
    kept, least = 0, 0
    for need, overhead in zip(sizes, overheads, strict=True):
        least += min(need, LEAST) + overhead
        if least > room:
            break
        kept += 1
    room -= sum(overheads[:kept])
    cap, left = 0, kept
    for need in sorted(sizes[:kept]):  # the smallest are served first; the rest share
        cap = room // left if left else 0
        if need > cap:
            break
        room, left = room - need, left - 1
    return [min(need, cap) if left else need for need in sizes[:kept]]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
