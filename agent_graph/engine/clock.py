"""The time, as milliseconds UTC that never go back within a process."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where times come from; a test brings its own."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 UTC."""
        ...


class SystemClock:
    """The machine's clock. When it is set back, this one goes on from where it was: time that passes is always seen.

    It jumps forward with the machine's, as after a sleep.
    """

    def __init__(self) -> None:
        self._last = 0
        self._ticks = time.monotonic_ns() // 1_000_000

    def now_ms(self) -> int:
        now_ms, ticks = time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
        self._last = max(self._last + ticks - self._ticks, now_ms)
        self._ticks = ticks
        return self._last
