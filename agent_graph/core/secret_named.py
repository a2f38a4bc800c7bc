"""Finds the secrets of a text that a name before them tells: ``password=``, ``"api_key":``, ``--token``; changes no
text.
"""

from __future__ import annotations

import json
import re
from typing import Final

from agent_graph.core.secret_names import FAR_HINTS, SURE, Names, Strength, is_plural
from agent_graph.core.secret_schema import is_schema
from agent_graph.core.secret_span import LONGEST, Span
from agent_graph.core.secret_values import is_assigned, is_of_git, is_reference, is_secret, looks_random

_LETTERS: Final = "A-Za-z0-9_.\u00c0-\u024f-"
_AFTER_NAME: Final = re.compile(
    rf"(?P<rest>[{_LETTERS}]{{0,64}}+)(?P<close>\\{{0,3}}[\"'`])?+"
    r"(?:[ \t]{1,4}(?:for|of|to|f\u00fcr|von|pour|para)[ \t]{1,4}[\w.'-]{1,32}(?:[ \t][\w.'-]{1,32}){0,3}?)?"
    r"(?P<blank>[ \t]{0,4})(?P<sign>:=|=>|==?|:|[\uff1a\uff1d\u306f\u662f\u4e3a\u70ba]"
    r"|(?:is|ist|es|est|was|war)[ \t]|(?<=[ \t])value[ \t]?=[ \t]?|(?<=[A-Za-z])>)"
    r"[ \t]{0,8}+\n?+[ \t]{0,64}+(?P<scheme>(?i:bearer|basic|token|digest)[ \t]{1,4}+)?+"
)
_FLAG: Final = re.compile(r"(?P<rest>[A-Za-z0-9_-]{0,64}+)[ \t]{1,4}+[\"']?(?P<value>[!#-&(-:=?-\[\]-_a-~]{1,256}+)")
_NO_VALUE: Final = frozenset((
    "accepts", "argument", "asks", "bool", "by", "can", "cannot", "does", "expects", "flag", "flags", "given",
    "has", "instead", "int", "must", "only", "option", "options", "or", "and", "parameter", "prompts", "provided",
    "reads", "required", "requires", "set", "sets", "should", "string", "str", "switch", "takes", "text", "the",
    "to", "value", "was", "when", "where", "which", "will", "with", "is", "are", "if", "in", "from", "for", "on",
    "it", "of", "via", "als", "der", "die", "mit", "oder", "und", "wird",
))  # fmt: skip
"""Words that stand behind an option where somebody speaks of it."""
_OPEN: Final = re.compile(r"(\\{0,3})([\"'`])")
_QUOTED: Final = {'"': re.compile(r"[!#-\[\]-~]{1,512}+"), "'": re.compile(r"[!-&(-\[\]-~]{1,512}+"),
                  "`": re.compile(r"[!-\[\]-_a-~]{1,512}+")}  # fmt: skip
_BARE: Final = re.compile(r"[!#$%*+./:=?@A-Z^_a-z~0-9-]{1,512}+")
_LITERAL: Final = re.compile(r"[!#-%*-:=?-Z^_a-z~]{1,512}+")
_IN_TAGS: Final = re.compile(r"([^<>\s]{1,256}+)</")
_NO_LITERAL: Final = frozenset(("none", "null", "true", "false", "nil", "undefined", "yes", "no", "on", "off", "0", "1",
                                "required", "optional", "string", "str"))  # fmt: skip
_NUMBER: Final = re.compile(r"-?[0-9][0-9.eE+-]*+")
_PARTS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"(?P<key>\s*+:)?+|[{}\[\]]|-?[0-9][0-9.eE+-]*+", re.DOTALL)
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]*(?:[a-z][A-Z]|[A-Z]{2}[a-z]|[0-9=])[A-Za-z0-9+/=_-]*\Z")
_LEFT: Final = 64
_BEFORE: Final = 48
"""Characters in which a commit is spoken of."""


def behind_names(text: str, small: str, names: Names) -> list[Span]:
    """Where they are, in no order."""
    found: list[Span] = []
    for hint in names.hints if small.isascii() else (*names.hints, *FAR_HINTS):
        at = small.find(hint)
        while at >= 0:
            behind, end = _behind_name(text, at, len(hint), names)
            found += behind
            at = small.find(hint, max(at + 1, end))
    return found


def _behind_name(text: str, at: int, length: int, names: Names) -> tuple[list[Span], int]:
    """The secret, or the secrets of the object, that a name with a hint at `at` says of what follows it; and the end of
    that object, within which no other need be looked for (0 = there is none)."""
    after = _AFTER_NAME.match(text, at + length)
    flag = _FLAG.match(text, at + length) if after is None else None
    if after is None and flag is None:
        return [], 0
    start = at
    while start > max(0, at - _LEFT) and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    rest = after or flag
    assert rest is not None
    name = text[start : rest.end("rest")]
    if start == at and text[at - 1 : at] == " ":  # "api key: ..."
        name = f"{text[max(0, at - 12) : at - 1].rpartition(' ')[2]}_{name}"
    strength = names.strength(name)
    if strength == "none":
        return [], 0
    if after is None:
        alone = start == 0 or text[start - 1] in " \t\n\"'`(["
        return _flagged(name, rest, strength) if alone else [], 0
    value = after.end()
    if after["sign"] == ">":
        tagged = _IN_TAGS.match(text, value) if text[start - 1 : start] == "<" and strength in SURE else None
        return [Span(tagged.start(1), tagged.end(1))] if tagged and is_secret(tagged[1], strength, names) else [], 0
    if after["close"] and after["sign"] not in ("=", "==") and not after["scheme"]:
        return _member(text, value, after["close"], strength=strength, name=name, names=names)
    return _assigned(text, after, name, strength=strength, names=names), 0


def _flagged(name: str, flag: re.Match[str], strength: Strength) -> list[Span]:
    """The value of ``--password VALUE``, which is no word that speaks of the option."""
    said = flag["value"]
    if not name.startswith("-") or strength not in (*SURE, "weak"):
        return []
    if said[0] in "-<[|=:" or said[-1] in ".,;:!?)]" or said.lower() in _NO_VALUE or is_reference(said):
        return []
    if said.isupper() and said.replace("_", "").isalpha():
        return []  # the place of one, in a text of help
    if strength == "weak" and not looks_random(said, least=8):
        return []
    return [Span(flag.start("value"), flag.end("value"))]


def _member(text: str, at: int, quote: str, *, strength: Strength, name: str, names: Names) -> tuple[list[Span], int]:
    """What stands behind ``"name":``, told as in a value that is JSON."""
    opened = _OPEN.match(text, at)
    if opened:
        end = _closing(text, opened.end(), opened[1], opened[2])
        content = text[opened.end() : end]
        told = is_secret(content, strength, names)
        return [Span(opened.end(), end, sure=told)] if content and (told or end == len(text)) else [], 0
    if strength not in SURE:
        return [], 0
    if text[at : at + 1] in ("{", "["):
        return _inside(text, at)
    number = None if is_plural(name) else _NUMBER.match(text, at)
    return [Span(number.start(), number.end(), quote)] if number else [], 0


def _inside(text: str, at: int) -> tuple[list[Span], int]:
    """Every string and number of the object or list that begins at `at`, unless it is a schema; all of one that does
    not end."""
    found: list[Span] = []
    depth = 0
    for part in _PARTS.finditer(text, at, at + LONGEST):
        said = part[0]
        if said[0] in "{[":
            depth += 1
        elif said[0] in "}]":
            depth -= 1
            if not depth:
                return [] if _says_a_schema(text[at : part.end()]) else found, part.end()
        elif said[0] != '"':
            found.append(Span(part.start(), part.end(), '"'))
        elif not part["key"] and len(said) > 2:
            found.append(Span(part.start() + 1, part.end() - 1))
    end = min(len(text), at + LONGEST)
    return [Span(at + 1, end)], end


def _says_a_schema(text: str) -> bool:
    try:
        return is_schema(json.loads(text))
    except (ValueError, RecursionError):
        return False


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


def _assigned(text: str, after: re.Match[str], name: str, *, strength: Strength, names: Names) -> list[Span]:
    """What stands behind ``name =`` or ``name:``, where it looks as if nobody had thought it up to be read."""
    opened = _OPEN.match(text, after.end())
    begin = opened.end() if opened else after.end()
    if strength in SURE and _is_of_environment(text, after, name):
        literal = _LITERAL.match(text, begin)
        if literal and _is_literal(text, literal):
            return [Span(begin, literal.end())]
    pattern = _QUOTED[opened[2]] if opened else _BARE
    bare = pattern.match(text, begin)
    if bare is None:
        return []
    said = bare[0] if opened else bare[0].rstrip(".:!?")
    if after["scheme"] and len(said) >= 8 and _ENCODED.match(said):
        return [Span(begin, begin + len(said))]
    if not opened and text[begin + len(said) : begin + len(said) + 1] in ("(", "[") and said.replace("_", "").isalnum():
        return []  # it is called
    if strength == "faint" and not _is_said_faintly(name, after["sign"], said):
        return []
    if strength == "weak" and is_of_git(said, text[max(0, after.start() - _BEFORE - _LEFT) : after.start()]):
        return []
    least = 16 if strength == "weak" else 6
    if not is_assigned(said, least=least, names=names, quoted=opened is not None):
        return []
    return [Span(begin, begin + len(said))]


def _is_of_environment(text: str, after: re.Match[str], name: str) -> bool:
    """Whether it is ``NAME=value``, as an environment is written."""
    return (
        name.isupper() and "-" not in name and after["sign"] == "=" and not after["close"] and not after["blank"]
        and after.end() == after.end("sign")
    )  # fmt: skip


def _is_literal(text: str, literal: re.Match[str]) -> bool:
    said = literal[0]
    if text[literal.end() : literal.end() + 1] in ("(", "[", "{", "<"):
        return False
    return said.lower() not in _NO_LITERAL and not is_reference(said) and "environ" not in said


def _is_said_faintly(name: str, sign: str, said: str) -> bool:
    """``pass`` is what a test did, too: behind it a colon and a path are none."""
    if name.lower() != "pass" or sign == "=":
        return True
    return not name.isupper() and not any(c in said for c in "./_:")
