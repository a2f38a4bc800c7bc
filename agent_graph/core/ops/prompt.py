"""Prompt templates: placeholders found once, values put in once and never looked at again.

A placeholder is ``{name}``, ``{a.b.0}`` or ``{/json/pointer}``, then optionally ``?`` (nothing there: empty) or
``|json`` (a string with its quotes). A name starts with a letter or ``_`` and goes on with letters, digits, ``_`` and
``-``; a pointer holds no white space, quote or brace. A placeholder in two braces stays, in one. Every other brace is
text, so JSON needs no escaping.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import MaybeJson, Missing
from agent_graph.core.jsonvalue import canonical, text_of
from agent_graph.errors import NodeFailure

_PLACEHOLDER: Final = r"""(?:[^\W\d][\w-]*(?:\.[\w-]+)*|/(?:[^\s{}"'~?|]|~[01])*)(?:\?|\|json)?"""
_KEPT_CHARS: Final = 4_000
"""Longer texts are parsed each time."""
_TOKEN: Final = re.compile(rf"\{{(\{{{_PLACEHOLDER}\}})\}}|\{{({_PLACEHOLDER})\}}")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A place in a template."""

    path: str
    optional: bool = False
    """Empty, not an error, when there is nothing at `path`; null is something."""
    as_json: bool = False
    """Strings are written as JSON too."""


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: texts and placeholders in the order in which they stand."""

    parts: tuple[str | Placeholder, ...]

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    def render(self, resolve: Callable[[str], MaybeJson], *, max_bytes: int) -> str:
        """The text with every value in its place: strings raw, other values as compact JSON.

        Raises `NodeFailure` PROMPT_VALUE_MISSING, with every missing path in its details, and VALUE_TOO_LARGE as soon
        as the text has more than `max_bytes` characters (bytes are never fewer).
        """
        found = {place: resolve(place.path) for place in dict.fromkeys(self.placeholders)}
        _check_present(found)
        texts = {place: _text(place, value) for place, value in found.items()}
        left = max_bytes
        for part in self.parts:
            left -= len(texts[part] if isinstance(part, Placeholder) else part)
            if left < 0:
                raise NodeFailure("VALUE_TOO_LARGE", f"the text is larger than {max_bytes} bytes", limit=max_bytes)
        return "".join(texts[part] if isinstance(part, Placeholder) else part for part in self.parts)


def parse(text: str) -> Template:
    """The template written as `text`; every text is one."""
    return _kept(text) if len(text) <= _KEPT_CHARS else _parse(text)


@lru_cache(maxsize=2048)  # a check of a graph asks for the same few texts again and again
def _kept(text: str) -> Template:
    return _parse(text)


def _parse(text: str) -> Template:
    parts: list[str | Placeholder] = []
    literal: list[str] = []
    at = 0
    for match in _TOKEN.finditer(text):
        literal.append(text[at : match.start()])
        at = match.end()
        escaped, placeholder = match.groups()
        if escaped:
            literal.append(escaped)
            continue
        _flush(literal, parts)
        path = placeholder.removesuffix("?").removesuffix("|json")
        parts.append(Placeholder(path, placeholder.endswith("?"), placeholder.endswith("|json")))
    literal.append(text[at:])
    _flush(literal, parts)
    return Template(tuple(parts))


def _flush(literal: list[str], parts: list[str | Placeholder]) -> None:
    text = "".join(literal)
    literal.clear()
    if text:
        parts.append(text)


def _check_present(found: dict[Placeholder, MaybeJson]) -> None:
    missing = [place.path for place, value in found.items() if isinstance(value, Missing) and not place.optional]
    if missing:
        paths = list(dict.fromkeys(missing))
        named = ", ".join(f"{{{path}}}" for path in paths)
        message = f"there is no value for {named}; write {{{paths[0]}?}} where it may be absent"
        raise NodeFailure("PROMPT_VALUE_MISSING", message, paths=paths)


def _text(place: Placeholder, value: MaybeJson) -> str:
    if isinstance(value, Missing):
        return ""
    return canonical(value).decode() if place.as_json else text_of(value)
