"""Finds secrets by the address or the command they stand in, such as ``https://hooks...`` and ``curl -u``; changes no
text.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agent_graph.core.secret_span import Span
from agent_graph.core.secret_values import is_reference, looks_random

_WORD: Final = r"[!#-&(-\[\]-_a-~]{1,256}"
"""Of a command: printed ASCII but quotes and the backslash."""
_GAP: Final = r"\b(?:[^\n\\]|\\\n|\\.){0,300}?[ \t\n]"
"""From a command to an option of it, over lines that go on."""


def _command(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("GAP", _GAP).replace("WORD", _WORD), re.IGNORECASE | re.DOTALL)


_PLACES: Final[tuple[tuple[str, str, re.Pattern[str], int], ...]] = (
    ("/", "://", re.compile(
        r"://([!#-&(-.0-9;=?A-Z^_a-z|~@\\-]{0,256}+:[!#-&(-.0-9:;=?A-Z^_a-z|~@\\-]{1,256})@(?=[A-Za-z0-9$%_<({\[.-]|\Z)"
    ), 1),
    ("/", "://", re.compile(r"://([A-Za-z0-9_-]{16,256}+)@"), 16),
    ("/", "hook", re.compile(
        r"hooks?\.(?:slack(?:-gov)?\.com/(?:services|workflows|triggers)|zapier\.com/hooks/[a-z]{1,20}"
        r"|office\.com/webhookb?2?)/([!#-&(-;=?-Z^_a-z~]{8,})",
        re.IGNORECASE,
    ), 1),
    ("/", "hook", re.compile(r"hooks?/([A-Za-z0-9_@/-]{20,})"), 20),
    ("/", "/key/", re.compile(r"/key/([A-Za-z0-9_-]{20,})"), 20),
    (":", ":aa", re.compile(r"(?<=[0-9]{7}):(AA[A-Za-z0-9_-]{32,})"), 1),
    ("=", "sig=", re.compile(r"(?<=[?&;])sig=([A-Za-z0-9%+/=_.-]{16,})", re.IGNORECASE), 16),
    ("=", "signature=", re.compile(r"(?<=[?&;-])signature=([A-Za-z0-9%+/=_.-]{16,})", re.IGNORECASE), 16),
    ("=", "auth=(", re.compile(r"auth=\(\s?[\"'][^\"'\n]{0,128}[\"'],\s?[\"']([!#-&(-~]{1,256})[\"']"), 1),
    (" ", "bearer", re.compile(r"bearer[ \t]+([A-Za-z0-9._~+/=-]{8,}+)", re.IGNORECASE), 8),
    ("-", "curl", _command(r"curlGAP(?:-[a-z]{0,8}u|--user|--proxy-user)[ =]{0,2}[\"']?[^\s:\"'@]{1,128}:(WORD)"), 1),
    ("-", "mysql", _command(r"mysql[a-z]{0,10}GAP-p(WORD)"), 1),
    ("-", "sshpass", _command(r"sshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?(WORD)"), 1),
    ("-", "docker login", _command(r"docker loginGAP-p[ \t]{1,4}[\"']?(WORD)"), 1),
    ("-", "redis-cli", _command(r"redis-cliGAP-a[ \t]{1,4}[\"']?(WORD)"), 1),
    ("-", "-pass", _command(r"-pass(?:in|out)?[ \t]{1,4}pass:(WORD)"), 1),
)  # fmt: skip
"""A sign and a word there is none without, the place, and how many characters are to look drawn by lot (1 = any)."""
HINTS: Final = (*((sign, hint) for sign, hint, _, _ in _PLACES if hint != "bearer"), (" ", "bearer"))
SUSPICION: Final = (
    r"://[^\s/]*@|hooks?(?:\.[a-z.-]+)?/|/key/|[0-9]:aa|sig(?:nature)?=|auth=\(|bearer[ \t]+\S|curl\s|mysql[a-z]*\s"
    r"|sshpass\s|docker login|redis-cli|-pass(?:in|out)?[ \t]"
)
"""What of `shapes.suspicion` tells of them."""


def spans(text: str, small: str) -> list[Span]:
    """Where they are."""
    found = []
    for sign, hint, pattern, least in _PLACES:
        if sign not in small:
            continue
        at = small.find(hint)
        while at >= 0:
            match = pattern.match(text, at)
            if match and _is_one(match, least):
                found.append(Span(match.start(1), match.end(1)))
            at = small.find(hint, max(at + 1, match.end(1) if match else 0))
    return found


def _is_one(match: re.Match[Any], least: int) -> bool:
    said = match[1]
    if least > 1:
        return looks_random(said, least=least)
    return not is_reference(said) and not is_reference(said.rpartition(":")[2])
