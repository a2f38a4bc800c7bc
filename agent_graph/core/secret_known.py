"""The forms in which a secret that is known turns up in a text: as it is, in base64, hexadecimal, addresses and JSON;
changes no text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Final

from agent_graph.core.frozen import dataclass
from agent_graph.core.secret_span import Span, places
from agent_graph.core.secret_values import SHORTEST

_KEPT: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
"""Octets that are nowhere escaped in an address."""
_PARTED: Final = re.compile(r"[^!-~]")
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a secret."""

    text: str
    edges: bool = False
    """It is the middle of base64: the characters beside it hold some bits of the secret, too."""
    parted: bool = False
    """It has a blank, or another character at which a text that comes in pieces may be shown."""

    def begun(self, text: str) -> int:
        """Where the end of `text` begins that is a beginning of it; the length of `text` where none is."""
        for length in range(min(len(self.text) - 1, len(text)), 0, -1):
            if text.endswith(self.text[:length]):
                return len(text) - length
        return len(text)


def forms_of(secrets: Iterable[str]) -> tuple[Form, ...]:
    """All forms of all secrets that are not too short to be told, short ones first."""
    found = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
    return tuple(sorted(found, key=lambda form: (len(form.text), form.text, form.edges)))


def found_in(text: str, form: Form) -> list[Span]:
    """Where a form stands in a text."""
    found = []
    for start in places(text, form.text):
        end = start + len(form.text)
        if form.edges:
            start -= start > 0 and text[start - 1] in _BASE64
            end += end < len(text) and text[end] in _BASE64
        found.append(Span(start, end))
    return found


def _forms(secret: str) -> set[Form]:
    data = secret.encode()
    said = {
        secret,
        data.hex(),
        data.hex().upper(),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }
    for kept in (b"", b"/", b"!'()*"):
        escaped = "".join(chr(c) if c in _KEPT or c in kept else f"%{c:02X}" for c in data)
        for one in (escaped, re.sub("%..", lambda found: found[0].lower(), escaped)):
            said |= {one, one.replace("%20", "+")}
    middles = set()
    for before in range(3):  # three octets are four characters, whatever stands before
        encoded = base64.b64encode(b"\0" * before + data).decode()
        middle = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        middles |= {middle, middle.replace("+", "-").replace("/", "_")}
    return {Form(one, parted=_PARTED.search(one) is not None) for one in said} | {
        Form(one, edges=True) for one in middles if len(one) >= SHORTEST
    }
