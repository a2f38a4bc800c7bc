"""A clock that a test sets."""

from __future__ import annotations

BEGIN_MS = 1_800_000_000_000


class Hands:
    """What the clock shows is `at_ms`, until a test moves it."""

    def __init__(self) -> None:
        self.at_ms = BEGIN_MS

    def now_ms(self) -> int:
        return self.at_ms
