"""Where in a text a secret is, and how far one is looked for; finds none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST: Final = 65_536
"""Characters after which a private key, or an object of secrets, is taken to be over."""
BACK: Final = 512
"""How many characters before a secret say that it is one, at most."""


class Span(NamedTuple):
    """Characters of a text that are a secret."""

    start: int
    end: int
    quote: str = ""
    """What is to stand around what takes their place: a number becomes a string."""
    sure: bool = True
    """False where only what follows can tell."""


def places(small: str, hint: str) -> Iterator[int]:
    """Where `hint` is in a text."""
    at = small.find(hint)
    while at >= 0:
        yield at
        at = small.find(hint, at + 1)
