"""Long texts of a value, such as pictures, written once in the JSON of something that holds them several times over.

Where there are any, the first line is a table of them, and the rest the JSON with a short mark in the place of each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Final

from agent_graph.core.jsonvalue import JsonValue

LONG: Final = 4_096
"""Characters from which a text is worth it."""
MOST: Final = 64
"""Texts of one value that are looked for."""


def pack(text: str, value: JsonValue) -> str:
    """`text`, a JSON text without line ends, with the long texts of `value` that stand in it twice written once."""
    table: dict[str, str] = {}
    for long in dict.fromkeys(_long_texts(value)) if len(text) > LONG else ():
        written, mark = _written(long), _written("\0" + hashlib.sha256(long.encode()).hexdigest())
        if text.count(written) > 1 and mark not in text:
            text = text.replace(written, mark)
            table[mark] = long
    return f"{_written(table)}\n{text}" if table else text


def unpack(packed: str) -> str:
    """The text that was packed; ValueError for what is none."""
    head, found, text = packed.partition("\n")
    if not found:
        return packed
    table = json.loads(head)
    for mark, long in reversed(table.items()) if isinstance(table, dict) else ():
        text = text.replace(mark, _written(long))
    return text


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _long_texts(value: JsonValue) -> Iterator[str]:
    todo, left = [value], MOST
    while todo and left:
        here = todo.pop()
        if isinstance(here, str) and len(here) >= LONG:
            left -= 1
            yield here
        elif isinstance(here, dict):
            todo += here.values()
        elif isinstance(here, list):
            todo += here
