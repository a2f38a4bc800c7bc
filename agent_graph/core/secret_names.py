"""Says of a name whether what stands under it is a secret; looks at no value."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from agent_graph.core.frozen import dataclass

Strength: TypeAlias = Literal["none", "weak", "strong"]
"""``strong``: whatever stands there is one; ``weak``: what looks like one is (a token can be a word, too)."""
Words: TypeAlias = tuple[str, ...]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STRONG: Final = frozenset((
    "apikey", "authorization", "credential", "credentials", "passphrase", "passwd", "password", "passwords", "pwd",
    "secret", "secrets",
))  # fmt: skip
_WEAK: Final = frozenset(("bearer", "cookie", "cookies"))
_KEY_OF: Final = frozenset(("access", "api", "encryption", "integrity", "private", "secret", "signing"))
_TOKEN_OF: Final = frozenset(("access", "api", "auth", "bearer", "csrf", "id", "refresh", "secret", "session"))
_NO_TOKEN: Final = frozenset((
    "bos", "cls", "continuation", "current", "end", "eos", "first", "last", "mask", "next", "pad", "page", "sep",
    "special", "start", "stop", "unk", "unknown",
))  # fmt: skip
_ABOUT: Final = frozenset((
    "age", "at", "attempts", "chars", "count", "counts", "days", "description", "digest", "enabled", "env", "expires",
    "expiry", "field", "fields", "file", "format", "hint", "id", "ids", "kind", "label", "length", "limit", "max",
    "min", "mode", "ms", "name", "names", "number", "path", "policy", "prompt", "required", "rotation", "size",
    "strength", "total", "type", "types", "url", "used", "version",
))  # fmt: skip
"""Last words of names of what is only about a secret: ``password_length``, ``secret_name``, ``token_count``."""
_STILL: Final = frozenset((
    "a", "again", "b", "b64", "backup", "base", "base64", "change", "confirm", "confirmation", "current", "data",
    "default", "dev", "hash", "header", "hex", "json", "new", "old", "pem", "plain", "plaintext", "previous",
    "primary", "prod", "raw", "repeat", "root", "salt", "secondary", "staging", "str", "string", "test", "text", "val",
    "value", "values",
))  # fmt: skip
"""Words behind which it is still the secret itself: ``password_confirmation``, ``SECRET_KEY_BASE``."""
_HINTS: Final = ("secret", "passw", "passphrase", "pwd", "token", "credential", "authorization", "cookie", "bearer",
                 "key")  # fmt: skip
_PLURAL: Final = frozenset(("credentials", "cookies", "passwords", "secrets"))


@dataclass(frozen=True, slots=True)
class Names:
    """Which names are secrets: those of the program, an operator's `more`, less the operator's `less`, as words."""

    more: tuple[Words, ...] = ()
    less: frozenset[Words] = frozenset()

    @property
    def hints(self) -> tuple[str, ...]:
        """Lower case texts one of which is in every name of a secret."""
        return (*_HINTS, *sorted({words[0] for words in self.more}.difference(_HINTS)))

    def strength(self, name: str) -> Strength:
        """How surely a member of that name holds a secret; ``max_tokens`` and other counts never do."""
        return _strength(name, self.more, self.less)


def words_of(name: str) -> Words:
    """``("api", "key")`` of ``apiKey``, ``API_KEY`` and ``x.api-key`` alike."""
    return tuple(word.lower() for word in _WORDS.findall(name))


def is_plural(name: str) -> bool:
    """Whether a number under that name counts secrets and is none: ``secrets: 3``."""
    return words_of(name)[-1] in _PLURAL


@lru_cache(maxsize=4096)
def _strength(name: str, more: tuple[Words, ...], less: frozenset[Words]) -> Strength:
    if len(name) > 256 or "/" in name:
        return "none"
    words = words_of(name)
    if words in less or not words:
        return "none"
    if any(_holds(words, wanted) for wanted in more):
        return "strong"
    return "none" if words[-1] in _ABOUT else _ours(words)


def _ours(words: Words) -> Strength:
    while (
        len(words) > 1 and words[-1] not in _STRONG and (words[-1].isdigit() or words[-1] in _STILL - {"key", "token"})
    ):
        words = words[:-1]
    if words[-1] in _STRONG or (words[-1] in ("key", "token") and words[-2:-1] and words[-2] in _STRONG):
        return "strong"
    pairs = len(words) > 1
    if pairs and ((words[-1] == "key" and words[-2] in _KEY_OF) or (words[-1] == "token" and words[-2] in _TOKEN_OF)):
        return "strong"
    if pairs and words[-1] == "tokens" and words[-2] in _TOKEN_OF:
        return "weak"  # of numbers none is taken for one
    if words[-1] == "token":
        return "none" if pairs and words[-2] in _NO_TOKEN else "weak"
    return "weak" if words[-1] in _WEAK else "none"


def _holds(words: Words, wanted: Words) -> bool:
    return any(words[start : start + len(wanted)] == wanted for start in range(len(words) - len(wanted) + 1))
