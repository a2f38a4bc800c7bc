"""Finds the secrets of a text that their own shape, an address or a command tells, and those behind a name; changes no
text.

Every search begins at a word that a secret of its kind cannot be without, so a text without such words costs a few
plain searches and no pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from agent_graph.core import secret_places
from agent_graph.core.secret_named import behind_names
from agent_graph.core.secret_names import FAR_HINTS, Names
from agent_graph.core.secret_span import LONGEST, Span

Look: TypeAlias = Callable[[str, int], int]
"""The end of the secret that begins at a place; 0 where none does."""

LONG: Final = 400
"""Characters from which on one pass by an automaton is faster than a search for each word."""
_PRINTED: Final = "".join(map(chr, range(0x21, 0x7F)))
"""ASCII that is printed, without the space."""
_PEM: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY: Final = re.compile(r"(?:[A-Za-z0-9+/=:,.()\s-]|\\[nr])*+")
_PEM_BEGUN: Final = re.compile(r"-----BEGIN[A-Z0-9 ]{0,48}-{0,5}\Z")
_PEM_HEAD: Final = 64

_OWN_SHAPES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "-", ("sk-", "pk-", "rk-"),
        r"[spr]k-(?=[A-Za-z0-9_-]{0,40}?[0-9])(?:[A-Za-z]{2,8}[0-9]{0,2}-){0,3}[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*",
    ),
    ("-", ("glpat-", "gldt-", "glrt-"), r"gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}"),
    ("-", ("xox",), r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("-", ("xapp-",), r"xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    ("-", ("pypi-",), r"pypi-[A-Za-z0-9_-]{40,}"),
    ("-", ("xai-",), r"xai-[A-Za-z0-9]{32,}"),
    ("-", ("nvapi-",), r"nvapi-[A-Za-z0-9_-]{40,}"),
    ("-", ("gocspx-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("-", ("tskey-",), r"tskey-[a-z]{3,8}-[A-Za-z0-9-]{16,}"),
    ("-", ("xkeysib-",), r"xkeysib-[0-9a-f]{32,}[A-Za-z0-9-]*"),
    ("-", ("age-secret-key-",), r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    ("_", ("sk_", "pk_", "rk_"), r"[spr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("_", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("_", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    ("_", ("npm_",), r"npm_[A-Za-z0-9]{36,}"),
    ("_", ("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    ("_", ("gsk_",), r"gsk_[A-Za-z0-9]{32,}"),
    ("_", ("r8_",), r"r8_[A-Za-z0-9]{30,}"),
    ("_", ("agt_",), r"agt_[0-9a-f]{12}_[A-Za-z0-9_-]{32,}"),
    ("_", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{24,}"),
    ("_", ("dop_v1_", "doo_v1_"), r"do[op]_v1_[0-9a-f]{64,}"),
    ("_", ("shpat_", "shpss_", "shpca_"), r"shp(?:at|ss|ca)_[0-9a-fA-F]{32,}"),
    ("_", ("glsa_",), r"glsa_[A-Za-z0-9_]{32,}"),
    ("_", ("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    ("_", ("lin_api_",), r"lin_api_[A-Za-z0-9]{32,}"),
    ("_", ("sbp_",), r"sbp_[0-9a-f]{40,}"),
    (".", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    (".", ("hvs.",), r"hvs\.[A-Za-z0-9_-]{20,}"),
    (".", ("sg.",), r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (".", ("eyj",), r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("a", ("akia", "asia"), r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("a", ("aiza",), r"AIza[A-Za-z0-9_-]{35,}"),
)  # fmt: skip
"""A sign without which there is no key of a kind, what every one begins with (in lower case), and its shape."""


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


_LOOKS: Final[tuple[tuple[str, str, Look], ...]] = (
    *((sign, hint, look) for sign, hints, pattern in _OWN_SHAPES for look in [_of_pattern(pattern)] for hint in hints),
    ("-", "-----begin", _private_key),
)
_BY_SIGN: Final[tuple[tuple[str, tuple[str, ...]], ...]] = tuple(
    (sign, tuple(hint for one, hint in (*((s, h) for s, h, _ in _LOOKS), *secret_places.HINTS) if one == sign))
    for sign in ("-", "_", ".", "a", "/", ":", "=", " ")
)
"""What to look for in a text that has a sign."""
_NAMED_BY: Final = (":", "=", "is ", "ist ", "es ", "est ", "was ", "war ", "is\t", "-", ">")
"""One of these stands behind a name in a text of ASCII, or before it."""
_STEM: Final = r"pass(?:w|ph|co|ord|e?[0-9_.-]|e?\b)"
"""Not ``passes`` and ``passing``, of which texts are full."""
_OWN: Final = (
    rf"(?:^|[^a-z0-9])(?:{'|'.join(re.escape(hint) for _, hints, _ in _OWN_SHAPES for hint in hints)})[a-z0-9_.-]{{4}}"
    "|-----begin"
)
"""What of `suspicion` tells of them."""


def is_suspect(small: str, names: Names) -> bool:
    """Whether a short text, in lower case, may hold a secret: always where `spans` finds something."""
    for sign, hints in _BY_SIGN:
        if sign in small:
            for hint in hints:
                if hint in small:
                    return True
    far = not small.isascii()
    if not far and not any(sign in small for sign in _NAMED_BY):
        return False
    return any(hint in small for hint in ((*names.hints, *FAR_HINTS) if far else names.hints))


def suspicion(names: Names) -> str:
    """A pattern (RE2) that is found in every text, in lower case, in which `spans` finds something."""
    named = "|".join(_STEM if hint == "pass" else re.escape(hint) for hint in names.hints)
    far = "|".join(map(re.escape, FAR_HINTS))
    signs = r"(?::|=|\x{ff1a}|\x{ff1d}|\x{306f}|\x{662f}|\x{4e3a}|\x{70ba}|(?:is|ist|es|est|was|war)[ \t])"
    of = r"[ \t]+(?:for|of|to|f\x{fc}r|von|pour|para)[ \t][^\n]*"
    return (
        rf"{_OWN}|{secret_places.SUSPICION}|(?:{far})"
        rf"|(?:{named})[a-z0-9_.\x{{c0}}-\x{{24f}}-]*\\{{0,3}}[\"'`]?"
        rf"(?:(?:{of})?[ \t]*{signs}|[ \t]+value[ \t]?=|>[^<\s]+</)|-[a-z0-9_-]*(?:{named})[a-z0-9_-]*[ \t]"
    )


def lowered(text: str) -> str:
    """In lower case, every character where it was."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(c.lower() if c.isascii() else c for c in text)


def spans(text: str, names: Names) -> list[Span]:
    """Where the secrets of a text are, in no order; they may overlap."""
    small = lowered(text)
    found: list[Span] = []
    long = len(text) >= LONG
    if not long or _automaton(_OWN).search(small):
        for sign, hint, look in _LOOKS:
            if sign not in small:
                continue
            at = small.find(hint)
            while at >= 0:
                end = look(text, at)
                if end:
                    found.append(Span(at, end))
                at = small.find(hint, max(at + 1, end))
    if not long or _automaton(secret_places.SUSPICION).search(small):
        found += secret_places.spans(text, small)
    return found + behind_names(text, small, names)


@lru_cache(maxsize=2)
def _automaton(pattern: str) -> Any:
    import re2  # here, not above: a run of short texts never needs it

    return re2.compile(pattern)


def unfinished(text: str, found: list[Span]) -> int:
    """Where a text begins that what follows could make a secret, or part of one; its length where it is none of it."""
    run = len(text.rstrip(_PRINTED))
    begun = _PEM_BEGUN.search(text, max(0, len(text) - _PEM_HEAD))
    open_ends = [span.start for span in found if span.end >= len(text)]
    return min(run, len(text) if begun is None else begun.start(), *open_ends, len(text))
