"""Takes secrets out of JSON values and texts, by the name of a key and by shape; changes nothing that is none.

The same rules hold wherever something comes in, so that what is kept, shown and sealed is one and the same thing.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache
from typing import Any, Final

from agent_graph.core import secret_shapes
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.secret_known import Form, forms_of, found_in
from agent_graph.core.secret_names import RANK, SURE, Names, Strength, is_plural, names_with, words_of
from agent_graph.core.secret_schema import is_schema
from agent_graph.core.secret_span import Span
from agent_graph.core.secret_values import SHORTEST, is_secret

REDACTED: Final = "[redacted]"
_PICTURE: Final = re.compile("data:image/[a-z0-9.+-]{1,40};base64,[A-Za-z0-9+/]*={0,2}")
"""All of a text that is a picture: nothing else can stand in it."""
_NAMING: Final = ("name", "key", "header", "path", "field", "variable")
"""Members that say what the ``value`` beside them is."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """The rules in force: the program's own, and what the operator adds and takes away."""

    names: Names = field(default_factory=Names)
    patterns: tuple[Any, ...] = ()
    """Compiled RE2 patterns of further secrets, each matched within a line."""
    exceptions: tuple[Any, ...] = ()
    """Compiled RE2 patterns: what one of them matches in full is no secret."""
    known: tuple[Form, ...] = field(default=(), repr=False)
    """The forms of the secrets this program itself was given, short ones first."""

    def value(self, value: JsonValue) -> JsonValue:
        """`value` without secrets; the very same where it holds none."""
        return self._value(value, "none") if self._may_hold(value) else value

    def members(self, body: JsonObject) -> JsonObject:
        """As `value`, of an object."""
        redacted = self.value(body)
        assert isinstance(redacted, dict)
        return redacted

    def shapes(self, value: JsonValue) -> JsonValue:
        """As `value`, and no name of a key counts: for what names secrets and holds none, such as a spec."""
        return self._shapes(value) if self._may_hold(value) else value

    def text(self, text: str) -> str:
        """`text` without secrets."""
        found = self.spans(text)
        return self.cut(text, found) if found else text

    def spans(self, text: str) -> list[Span]:
        """Where its secrets are, those that only what follows can tell among them."""
        if not self._is_suspect(text):
            return []
        found = secret_shapes.spans(text, self.names)
        for form in self.known:
            found += found_in(text, form)
        if self.patterns:
            start = 0
            for line in text.splitlines(keepends=True):
                found += [Span(start + m.start(), start + m.end()) for p in self.patterns for m in p.finditer(line)]
                start += len(line)
        return [span for span in found if not self._is_excepted(text[span.start : span.end])]

    def begun(self, text: str) -> int:
        """Where the end of `text` begins that can become a known secret in which there are blanks; else its length."""
        return min((form.begun(text) for form in self.known if form.parted), default=len(text))

    def cut(self, text: str, found: list[Span], start: int = 0, end: int | None = None) -> str:
        """The characters of `text` from `start` to `end`, what is surely a secret replaced."""
        end = len(text) if end is None else end
        parts: list[str] = []
        for span in sorted(span for span in found if span.sure and span.end > start):
            if span.start >= end:
                break
            if span.start < start:
                start = max(start, span.end)  # inside of the one before
                continue
            if text[span.start : span.end] != REDACTED:
                parts += (text[start : span.start], span.quote, REDACTED, span.quote)
                start = span.end
        return "".join((*parts, text[start:end]))

    def describe(self) -> JsonObject:
        """What an operator has added and taken away, without the secrets that are known."""
        return {
            "names": [*("_".join(words) for words in self.names.more)],
            "patterns": [*(pattern.pattern for pattern in self.patterns)],
            "except_names": [*sorted("_".join(words) for words in self.names.less)],
            "except_patterns": [*(pattern.pattern for pattern in self.exceptions)],
        }

    # -- within ----------------------------------------------------------------------------------------------------

    def _is_excepted(self, text: str) -> bool:
        return any(pattern.fullmatch(text) for pattern in self.exceptions)

    def _is_suspect(self, text: str) -> bool:
        if self.patterns and any(pattern.search(text) for pattern in self.patterns):
            return True
        if len(text) < SHORTEST:
            return False
        small = secret_shapes.lowered(text)
        if len(text) >= secret_shapes.LONG:
            return _suspicion(self.names, self.known).search(small) is not None
        for form in self.known:
            if len(form.text) > len(text):
                break
            if form.text in text:
                return True
        return secret_shapes.is_suspect(small, self.names)

    def _may_hold(self, value: JsonValue) -> bool:
        """One look over all texts and names of a value at once: most hold nothing that begins like a secret."""
        if isinstance(value, str):
            return not _is_picture(value) and self._is_suspect(value)
        strength = self.names.strength
        texts: list[str] = []
        todo: list[JsonValue] = [value]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                if not _is_picture(item):
                    texts.append(item)
            elif isinstance(item, dict):
                if ("value" in item or "values" in item) and self._told_beside(item) != "none":
                    return True
                for key, member in item.items():
                    if strength(key) != "none":
                        return True
                    todo.append(member)
                texts += item
            elif isinstance(item, list):
                todo += item
        return bool(texts) and self._is_suspect("\n".join(texts))

    def _value(self, value: JsonValue, under: Strength) -> JsonValue:
        """One frame of the stack for a level of nesting, so that no depth the limits allow is too deep."""
        if isinstance(value, str):
            return self._string(value, under)
        if isinstance(value, list):
            items: list[JsonValue] = []
            for item in value:
                items.append(self._value(item, under))  # noqa: PERF401  (a comprehension is a frame of its own)
            return items
        if isinstance(value, dict):
            made: JsonObject = {}
            for key, member, strength in self._members(value, under):
                made[self._key(key, made)] = self._value(member, strength)
            return made
        if under in SURE and isinstance(value, int | float) and not isinstance(value, bool):
            return REDACTED
        return value

    def _string(self, text: str, under: Strength) -> str:
        if text and under != "none" and is_secret(text, under, self.names):
            return text if text == REDACTED or self._is_excepted(text) else REDACTED
        clean = text if _is_picture(text) else self.text(text)
        return REDACTED if under in SURE and clean != text else clean

    def _members(self, body: JsonObject, under: Strength) -> list[tuple[str, JsonValue, Strength]]:
        """(key, value, how surely it is a secret) of an object."""
        if under != "none" and is_schema(body):
            under = "none"  # it says how a secret looks
        told = self._told_beside(body)
        found: list[tuple[str, JsonValue, Strength]] = []
        for key, value in body.items():
            strength = self._under(key, value, under)
            found.append((key, value, told if strength == "none" and key in ("value", "values") else strength))
        return found

    def _under(self, key: str, value: JsonValue, under: Strength) -> Strength:
        strength = self.names.strength(key)
        if under in SURE:
            return strength if RANK[strength] > RANK[under] else under
        if strength not in SURE and isinstance(value, dict):
            return "none"
        counts = isinstance(value, int | float) and strength != "none" and is_plural(key)
        return "none" if counts else strength

    def _told_beside(self, body: JsonObject) -> Strength:
        """What ``{"name": "Authorization", "value": ...}`` says of the value."""
        if "value" not in body and "values" not in body:
            return "none"
        said = (body[name] for name in _NAMING if name in body)
        found = [self.names.strength(text.rpartition("/")[2]) for text in said if isinstance(text, str)]
        return max(found, key=RANK.__getitem__, default="none")

    def _key(self, key: str, made: JsonObject) -> str:
        name = self.text(key)
        return name if name == key or name not in made else f"{name} {len(made)}"

    def _shapes(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            made: JsonObject = {}
            for key, member in value.items():
                made[key] = self._shapes(member)
            return made
        if isinstance(value, list):
            items: list[JsonValue] = []
            for item in value:
                items.append(self._shapes(item))  # noqa: PERF401  (see `_value`)
            return items
        return self._string(value, "none") if isinstance(value, str) else value


PLAIN: Final = Redactor()
"""The program's own rules, and nothing of an operator's."""


def redactor(
    *, names: tuple[str, ...] = (), patterns: tuple[str, ...] = (), except_names: tuple[str, ...] = (),
    except_patterns: tuple[str, ...] = (), known: tuple[str, ...] = (),
) -> Redactor:  # fmt: skip
    """The rules with an operator's. ValueError says which pattern is none, or which name has no letters."""
    more = tuple(_words(name) for name in names)
    less = frozenset(_words(name) for name in except_names)
    return Redactor(names_with(more, less), _compiled(patterns), _compiled(except_patterns), forms_of(known))


@lru_cache(maxsize=16)
def _suspicion(names: Names, known: tuple[Form, ...]) -> Any:
    import re2  # here, not above: a run of short texts never needs it

    of_known = "".join("|" + re2.escape(secret_shapes.lowered(form.text)) for form in known)
    return re2.compile(secret_shapes.suspicion(names) + of_known)


def _is_picture(text: str) -> bool:
    return text.startswith("data:image/") and _PICTURE.fullmatch(text) is not None


def _words(name: str) -> tuple[str, ...]:
    words = words_of(name)
    if not words:
        raise ValueError(f"{name!r} has no letters of the English alphabet")
    return words


def _compiled(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    if not patterns:
        return ()
    import re2  # here, not above: most operators add none

    made = []
    options = re2.Options()
    options.log_errors = False
    for pattern in patterns:
        try:
            compiled = re2.compile(pattern, options)
        except re2.error as wrong:
            raise ValueError(f"{pattern!r} is no RE2 pattern: {wrong}") from None
        if compiled.search("") is not None:
            raise ValueError(f"{pattern!r} matches nothing at all, so it would be found everywhere")
        made.append(compiled)
    return tuple(made)


def is_secret_key(key: str) -> bool:
    """Whether a member of that name may hold a secret; ``max_tokens`` and other counts do not."""
    return PLAIN.names.strength(key) != "none"


def redact(value: JsonValue) -> JsonValue:
    """A copy of `value` without secrets by the program's own rules; the argument is left as it is."""
    return PLAIN.value(value)
