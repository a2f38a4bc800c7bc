"""An edit of an approval's subject: what was typed as a value, as a JSON Patch, and as a comparison line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from agent_graph.console.rendering import pretty
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, json_equal, parse_json
from agent_graph.core.limits import Limits

STEPS: Final = 100
"""Most steps of a patch; an edit of more replaces the whole."""
LINES: Final = 2_000
"""Most lines that are compared: the time it takes grows with their square."""
AROUND: Final = 3
"""Lines shown around a change."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a comparison: `kind` is added, removed, same, or gap where equal lines are left out."""

    kind: str
    text: str


def value_of(typed: str, *, like: JsonValue, limits: Limits) -> JsonValue:
    """What was typed in place of the subject `like`: a text in place of a text, else JSON.

    A browser sends all line ends alike, so a text whose lines all ended as on Windows gets those back. Raises
    `InputInvalid`, `InputTooLarge`, `InputTooDeep`.
    """
    if isinstance(like, str):
        windows = "\r\n" in like and like.count("\n") == like.count("\r\n")
        return typed.replace("\n", "\r\n") if windows else typed
    return parse_json(typed, max_bytes=limits.input_bytes, max_depth=limits.json_depth)


def patch_between(before: JsonValue, after: JsonValue) -> list[JsonObject]:
    """A JSON Patch (RFC 6902) that makes `after` of `before`; empty when they are the same."""
    steps = list(_steps("", before, after))
    return steps if len(steps) <= STEPS else [{"op": "replace", "path": "", "value": after}]


def _steps(path: str, before: JsonValue, after: JsonValue) -> Iterator[JsonObject]:
    if json_equal(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            if name not in after:
                yield {"op": "remove", "path": _at(path, name)}
        for name, value in after.items():
            if name in before:
                yield from _steps(_at(path, name), before[name], value)
            else:
                yield {"op": "add", "path": _at(path, name), "value": value}
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from _steps(f"{path}/{index}", old, new)
        for index in range(len(before) - 1, len(after) - 1, -1):
            yield {"op": "remove", "path": f"{path}/{index}"}
        for new in after[len(before) :]:
            yield {"op": "add", "path": f"{path}/-", "value": new}
    else:
        yield {"op": "replace", "path": path, "value": after}


def _at(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def compared(before: JsonValue, after: JsonValue) -> Sequence[Line] | None:
    """The two line by line, changes with some lines around them; None where they are too long for that."""
    old, new = pretty(before).split("\n"), pretty(after).split("\n")
    if max(len(old), len(new)) > LINES:
        return None
    lines: list[Line] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(AROUND):
        if lines or group[0][1] > 0:
            lines.append(Line("gap", ""))
        for tag, from_old, to_old, from_new, to_new in group:
            if tag == "equal":
                lines += [Line("same", text) for text in old[from_old:to_old]]
                continue
            lines += [Line("removed", text) for text in old[from_old:to_old]]
            lines += [Line("added", text) for text in new[from_new:to_new]]
    return lines
