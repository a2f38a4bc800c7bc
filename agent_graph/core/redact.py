"""Takes secrets out of JSON values before a person or a model sees them; changes no value that is not a secret."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from agent_graph.core.jsonvalue import JsonValue

REDACTED: Final = "[redacted]"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset((
    "apikey", "authorization", "bearer", "cookie", "cookies", "credential", "credentials", "passphrase", "passwd",
    "password", "pwd", "secret", "secrets",
))  # fmt: skip
_KEY_OF = frozenset(("access", "api", "encryption", "integrity", "private", "secret", "signing"))
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|(?<=://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)"
    r"|(?i:(?<=\bbearer )[A-Za-z0-9._~+/=-]{8,})",
    re.DOTALL,
)


def is_secret_key(key: str) -> bool:
    """Whether a member of that name holds a secret; ``max_tokens`` and other counts do not."""
    words = [word.lower() for word in _WORDS.findall(key)]
    if any(word in _SECRET_WORDS for word in words) or words[-1:] == ["token"]:
        return True
    return any(first in _KEY_OF and second == "key" for first, second in pairwise(words))


def redact(value: JsonValue) -> JsonValue:
    """A copy of `value` without secrets, by key name and by the shape of strings; the argument is left as it is."""
    return _redact(value, under_secret=False)


def _redact(value: JsonValue, *, under_secret: bool) -> JsonValue:
    if isinstance(value, str):
        return REDACTED if under_secret and value else _SHAPES.sub(REDACTED, value)
    if isinstance(value, dict):
        return {k: _redact(v, under_secret=under_secret or is_secret_key(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_redact(v, under_secret=under_secret) for v in value]
    if under_secret and isinstance(value, int | float) and not isinstance(value, bool):
        return REDACTED
    return value
