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
    """The machine's clock. When it is set back, this one stands still until the machine's has caught up."""

    def __init__(self) -> None:
        self._last = 0

    def now_ms(self) -> int:
        now_ms = time.time_ns() // 1_000_000
        self._last = max(self._last, now_ms)
        return self._last
