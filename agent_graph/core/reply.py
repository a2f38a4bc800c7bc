"""What a model's text is worth: its thinking kept apart, and the one JSON value in it; knows nothing of nodes."""

from __future__ import annotations

import re
from typing import Final

from agent_graph.core.jsonvalue import JsonValue, parse_json
from agent_graph.core.limits import DEFAULTS
from agent_graph.errors import InvalidRequest

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_BRACKET: Final = re.compile(r"[\[\]{}]")
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def leading_thinking(text: str) -> tuple[str, str]:
    """(content, thinking) where the text starts with ``<think>`` blocks.

    A block that is never closed is all thinking. Text before a lone ``</think>`` is thinking as well: some chat
    templates put the opening tag into the prompt.
    """
    thinking = []
    rest = text
    while (start := rest.lstrip()).startswith(_OPEN):
        inside, _, after = start[len(_OPEN) :].partition(_CLOSE)
        thinking.append(inside)
        rest = after.lstrip()
    if not thinking and _CLOSE in rest and _OPEN not in rest[: rest.index(_CLOSE)]:
        before, _, after = rest.partition(_CLOSE)
        return after.lstrip(), before
    return rest, "\n".join(thinking)


def all_thinking(text: str) -> tuple[str, str]:
    """(content, thinking) with every closed ``<think>`` block taken out, wherever it stands."""
    rest, leading = leading_thinking(text)
    content, thinking = [], [leading] if leading else []
    while _OPEN in rest:
        before, _, after = rest.partition(_OPEN)
        inside, closed, rest_after = after.partition(_CLOSE)
        if not closed:
            break  # a tag the text speaks of
        content.append(before)
        thinking.append(inside)
        rest = rest_after
    return "".join([*content, rest]), "\n".join(thinking)


def read_json(text: str, *, inside: bool) -> JsonValue:
    """The JSON value `text` is; blanks around it do not matter.

    With `inside` also the one object or list that stands in a code fence or among prose: the first bracket of the
    text must open it and no bracket may follow it. Nothing is guessed. Raises `errors.InvalidRequest` saying what is
    wrong.
    """
    try:
        return _strict(text)
    except InvalidRequest:
        part = _bracketed(text) if inside else None
        if part is None or part == text.strip():
            raise
        return _strict(part)


def is_closed(value: JsonValue) -> bool:
    """Whether the text of `value` shows its own end: half a number is a number, half an object is nothing."""
    return isinstance(value, dict | list | str)


def _strict(text: str) -> JsonValue:
    return parse_json(text, max_bytes=DEFAULTS.value_bytes, max_depth=DEFAULTS.json_depth)


def _bracketed(text: str) -> str | None:
    """The part from the first bracket to the one that closes it, when no bracket stands outside it."""
    first = _BRACKET.search(text)
    if first is None:
        return None
    start, depth = first.start(), 0
    for match in _STRING_OR_BRACKET.finditer(text, start):
        found = match.group()
        if found[0] == '"':
            continue
        depth += 1 if found in "[{" else -1
        if depth <= 0:
            end = match.end()
            return None if depth < 0 or _BRACKET.search(text, end) else text[start:end]
    return None
