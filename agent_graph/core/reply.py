"""What a model's text is worth: its thinking kept apart, and the one JSON value in it; knows nothing of nodes."""

from __future__ import annotations

import re
from typing import Final

from agent_graph.core.jsonvalue import JsonValue, parse_json
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.errors import InvalidRequest

OPEN: Final = "<think>"
CLOSE: Final = "</think>"
_BLANKS: Final = re.compile(r"\s+")
_BRACKET: Final = re.compile(r"[\[\]{}]")
_STRING_OR_BRACKET: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
"""A string without an end is taken to the end of the text: looked at once, not once for every quote in it, and without
remembering where to go back to (``*+``)."""


def leading_thinking(text: str) -> tuple[str, str]:
    """(content, thinking) where the text starts with ``<think>`` blocks.

    A block that is never closed is all thinking. Text before a lone ``</think>`` is thinking as well, where it does
    not look like JSON: some chat templates put the opening tag into the prompt.
    """
    thinking: list[str] = []
    at, start = 0, _past_blanks(text, 0)
    while text.startswith(OPEN, start):
        close = text.find(CLOSE, start)
        if close < 0:
            return "", "\n".join([*thinking, text[start + len(OPEN) :]])
        thinking.append(text[start + len(OPEN) : close])
        at = start = _past_blanks(text, close + len(CLOSE))
    if not thinking and not text.startswith(("{", "["), start):
        close = text.find(CLOSE)
        if close >= 0 and text.find(OPEN, 0, close) < 0:
            return text[_past_blanks(text, close + len(CLOSE)) :], text[:close]
    return text[at:], "\n".join(thinking)


def all_thinking(text: str) -> tuple[str, str]:
    """(content, thinking) with every closed ``<think>`` block taken out, wherever it stands."""
    rest, leading = leading_thinking(text)
    content, thinking = [], [leading] if leading else []
    at = 0
    while (start := rest.find(OPEN, at)) >= 0 and (close := rest.find(CLOSE, start)) >= 0:
        content.append(rest[at:start])
        thinking.append(rest[start + len(OPEN) : close])
        at = close + len(CLOSE)
    return "".join([*content, rest[at:]]), "\n".join(thinking)


def _past_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def read_json(text: str, *, inside: bool, limits: Limits = DEFAULTS) -> JsonValue:
    """The JSON value `text` is; blanks around it do not matter.

    With `inside` also the one object or list that stands in a code fence or among prose: the first bracket of the
    text must open it and no bracket may follow it. Nothing is guessed. Raises `errors.InvalidRequest` saying what is
    wrong, that it is beyond `limits` too.
    """
    try:
        return _strict(text, limits)
    except InvalidRequest:
        part = _bracketed(text) if inside else None
        if part is None or part == text.strip():
            raise
        return _strict(part, limits)


def is_closed(value: JsonValue) -> bool:
    """Whether the text of `value` shows its own end: half a number is a number, half an object is nothing."""
    return isinstance(value, dict | list | str)


def _strict(text: str, limits: Limits) -> JsonValue:
    return parse_json(text, max_bytes=limits.value_bytes, max_depth=limits.json_depth)


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
