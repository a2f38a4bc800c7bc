"""Finds secrets in a text: by their own shape, and behind a name that says what they are; changes no text.

Every search begins at a word that a secret of its kind cannot be without, so a text without such words costs a few
plain searches and no pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from agent_graph.core.secret_names import Names, is_plural

SHORTEST: Final = 8
"""A text of fewer characters holds no secret that could be told by its shape."""
LONGEST: Final = 65_536
"""Characters after which a private key, or an object of secrets, is taken to be over."""
BACK: Final = 256
"""How many characters before a secret say that it is one, at most."""


class Span(NamedTuple):
    """Characters of a text that are a secret."""

    start: int
    end: int
    quote: str = ""
    """What is to stand around what takes their place: a number becomes a string."""
    sure: bool = True
    """False where only what follows can tell."""


Look: TypeAlias = Callable[[str, int], int]
"""The end of the secret that begins at a place; 0 where none does."""

_PRINTED: Final = "".join(map(chr, range(0x21, 0x7F)))
"""ASCII that is printed, without the space."""
_PEM: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY: Final = re.compile(r"(?:[A-Za-z0-9+/=:,.()\s-]|\\[nr])*+")
_PEM_BEGUN: Final = re.compile(r"-----BEGIN[A-Z0-9 ]{0,48}-{0,5}\Z")
_PEM_HEAD: Final = 64
_ADDRESS: Final = re.compile(r"://([!#%&()*+,.0-9;=?A-Z^_a-z|~\\-]{1,256}+:[!#%&()+,.0-9:;=?A-Z^_a-z|~\\-]{1,256}+)@")
_BEARER: Final = re.compile(r"bearer[ \t]+([A-Za-z0-9._~+/=-]{8,}+)", re.IGNORECASE)
_AFTER_NAME: Final = re.compile(
    r"(?P<rest>[A-Za-z0-9_.-]{0,64}+)(?P<close>\\{0,3}[\"'`])?+[ \t]{0,4}+(?P<sign>:=|=>|==?|:|[ \t]is[ \t]|is[ \t])"
    r"[ \t]{0,8}+\n?+[ \t]{0,64}+(?P<scheme>(?i:bearer|basic|token|digest)[ \t]{1,4}+)?+"
)
_OPEN: Final = re.compile(r"(\\{0,3})([\"'`])")
_BARE: Final = re.compile(r"[!#$%*+./:=?@A-Z^_a-z~0-9-]{6,512}+")
_NUMBER: Final = re.compile(r"-?[0-9][0-9.eE+-]*+")
_PARTS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"(?P<key>\s*+:)?+|[{}\[\]]|-?[0-9][0-9.eE+-]*+", re.DOTALL)
_IS_ID: Final = re.compile(r"(?:hmac-)?sha(?:1|256|384|512):[0-9a-f]+\Z|(?:run|apr|inc|wit)-[0-9a-z]+\Z")
_LEFT: Final = 64

_OWN_SHAPES: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (
        ("sk-", "pk-", "rk-"),
        r"[spr]k-(?=[A-Za-z0-9_-]{0,40}?[0-9])(?:[A-Za-z]{2,8}[0-9]{0,2}-){0,3}[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*",
    ),
    (("sk_", "pk_", "rk_"), r"[spr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    (("glpat-",), r"glpat-[A-Za-z0-9_-]{20,}"),
    (("xox",), r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    (("akia", "asia"), r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    (("aiza",), r"AIza[A-Za-z0-9_-]{35}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    (("npm_",), r"npm_[A-Za-z0-9]{36}"),
    (("pypi-",), r"pypi-[A-Za-z0-9_-]{40,}"),
    (("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    (("gsk_",), r"gsk_[A-Za-z0-9]{32,}"),
    (("xai-",), r"xai-[A-Za-z0-9]{32,}"),
    (("agt_",), r"agt_[0-9a-f]{12}_[A-Za-z0-9_-]{32,}"),
    (("whsec_",), r"whsec_[A-Za-z0-9+/=]{24,}"),
    (("dop_v1_",), r"dop_v1_[0-9a-f]{64}"),
    (("sg.",), r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (("age-secret-key-",), r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    (("eyj",), r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
)  # fmt: skip
"""What every key of a kind begins with (in lower case), and its shape."""


def _of_pattern(pattern: str) -> Look:
    compiled = re.compile(rf"(?<![A-Za-z0-9]){pattern}")

    def look(text: str, at: int) -> int:
        found = compiled.match(text, at)
        return found.end() if found else 0

    return look


def _private_key(text: str, at: int) -> int:
    begun = _PEM.match(text, at)
    if begun is None:
        return 0
    body = _PEM_BODY.match(text, begun.end(), begun.end() + LONGEST)
    assert body is not None, "it matches nothing, too"
    ended = _PEM_END.search(text, begun.end(), body.end())
    return ended.end() if ended else body.end()


_LOOKS: Final[tuple[tuple[str, Look], ...]] = (
    *((hint, look) for hints, pattern in _OWN_SHAPES for look in [_of_pattern(pattern)] for hint in hints),
    ("-----begin", _private_key),
)
_GROUPED: Final = (("://", _ADDRESS), ("bearer", _BEARER))
_PREFIXES: Final = tuple(hint for hints, _ in _OWN_SHAPES for hint in hints)
HINTS: Final[tuple[str, ...]] = (*(hint for hint, _ in _LOOKS), *(hint for hint, _ in _GROUPED))


def suspicion(names: Names) -> str:
    """A pattern (RE2) that is found in every text, in lower case, in which `spans` finds something."""
    own = "|".join(map(re.escape, _PREFIXES))
    named = "|".join(map(re.escape, names.hints))
    return (
        rf"(?:^|[^a-z0-9])(?:{own})[a-z0-9_.-]{{4}}|-----begin|://[^\s/@]+:[^\s/@]+@|bearer[ \t]+\S"
        rf"|(?:{named})[a-z0-9_.-]{{0,64}}\\{{0,3}}[\"'`]?[ \t]{{0,4}}(?::|=|is[ \t])"
    )


def lowered(text: str) -> str:
    """In lower case, every character where it was."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(c.lower() if c.isascii() else c for c in text)


def spans(text: str, names: Names) -> list[Span]:
    """Where the secrets of a text are, in no order; they may overlap."""
    small = lowered(text)
    found: list[Span] = []
    for hint, look in _LOOKS:
        at = small.find(hint)
        while at >= 0:
            end = look(text, at)
            if end:
                found.append(Span(at, end))
            at = small.find(hint, max(at + 1, end))
    for hint, pattern in _GROUPED:
        for at in _places(small, hint):
            match = pattern.match(text, at)
            if match and (hint != "bearer" or _looks_random(match[1], least=8)):
                found.append(Span(match.start(1), match.end(1)))
    for hint in names.hints:
        at = small.find(hint)
        while at >= 0:
            behind, end = _behind_name(text, at, len(hint), names)
            found += behind
            at = small.find(hint, max(at + 1, end))
    return found


def unfinished(text: str, found: list[Span]) -> int:
    """Where a text begins that what follows could make a secret, or part of one; its length where it is none of it."""
    run = len(text.rstrip(_PRINTED))
    begun = _PEM_BEGUN.search(text, max(0, len(text) - _PEM_HEAD))
    open_ends = [span.start for span in found if span.end >= len(text)]
    return min(run, len(text) if begun is None else begun.start(), *open_ends, len(text))


def _places(small: str, hint: str) -> Iterator[int]:
    at = small.find(hint)
    while at >= 0:
        yield at
        at = small.find(hint, at + 1)


def _behind_name(text: str, at: int, length: int, names: Names) -> tuple[list[Span], int]:
    """The secret, or the secrets of the object, that a name with a hint at `at` says of what follows it; and the end of
    that object, within which no other need be looked for (0 = there is none)."""
    after = _AFTER_NAME.match(text, at + length)
    if after is None:
        return [], 0
    start = at
    while start > max(0, at - _LEFT) and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    name = text[start : after.end("rest")]
    if start == at and text[at - 1 : at] == " ":  # "api key: ..."
        name = f"{text[max(0, at - 12) : at - 1].rpartition(' ')[2]}_{name}"
    strength = names.strength(name)
    if strength == "none":
        return [], 0
    strong, value = strength == "strong", after.end()
    if after["close"] and after["sign"] == ":" and not after["scheme"]:
        return _member(text, value, after["close"], strong=strong, plural=is_plural(name))
    return _assigned(text, value, least=6 if strong else 16), 0


def _member(text: str, at: int, quote: str, *, strong: bool, plural: bool) -> tuple[list[Span], int]:
    """What stands behind ``"name":``, told as in a value that is JSON."""
    opened = _OPEN.match(text, at)
    if opened:
        end = _closing(text, opened.end(), opened[1], opened[2])
        content = text[opened.end() : end]
        told = strong or is_like_secret(content)
        return [Span(opened.end(), end, sure=told)] if content and (told or end == len(text)) else [], 0
    if not strong:
        return [], 0
    if text[at : at + 1] in ("{", "["):
        return _inside(text, at)
    number = None if plural else _NUMBER.match(text, at)
    return [Span(number.start(), number.end(), quote)] if number else [], 0


def _inside(text: str, at: int) -> tuple[list[Span], int]:
    """Every string and number of the object or list that begins at `at`; all of one that does not end."""
    found: list[Span] = []
    depth = 0
    for part in _PARTS.finditer(text, at, at + LONGEST):
        said = part[0]
        if said[0] in "{[":
            depth += 1
        elif said[0] in "}]":
            depth -= 1
            if not depth:
                return found, part.end()
        elif said[0] != '"':
            found.append(Span(part.start(), part.end(), '"'))
        elif not part["key"] and len(said) > 2:
            found.append(Span(part.start() + 1, part.end() - 1))
    end = min(len(text), at + LONGEST)
    return [Span(at + 1, end)], end


def _closing(text: str, at: int, slashes: str, quote: str) -> int:
    """Where a string that began before `at` ends: at its quote, at the end of the line, or with the text."""
    line = text.find("\n", at)
    last = len(text) if line < 0 else line
    place = text.find(quote, at, last)
    while place >= 0:
        before = place
        while before > at and text[before - 1] == "\\":
            before -= 1
        escapes = place - before
        if (escapes % 2 == 0) if not slashes else (escapes <= len(slashes)):
            return before if slashes else place
        place = text.find(quote, place + 1, last)
    return last


def _assigned(text: str, at: int, *, least: int) -> list[Span]:
    """What stands behind ``name =`` or ``name:``, where it looks as if nobody had thought it up to be read."""
    opened = _OPEN.match(text, at)
    begin = opened.end() if opened else at
    bare = _BARE.match(text, begin)
    if bare is None:
        return []
    said = bare[0].rstrip(".:!?")
    return [Span(begin, begin + len(said))] if _looks_random(said, least=least) else []


def is_like_secret(content: str) -> bool:
    """Whether what stands under a weak name can be a secret: no word, no sentence and no id."""
    if len(content) < SHORTEST or _IS_ID.match(content):
        return False
    return "=" in content or not any(map(str.isspace, content))


def _looks_random(text: str, *, least: int) -> bool:
    if len(text) < least or _IS_ID.match(text):
        return False
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))
