"""So many requests a minute: each caller has a bucket that fills evenly, and holds what it may send at once."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import Final

from agent_graph.errors import TooManyRequests

CALLERS: Final = 10_000
"""Buckets that are kept; beyond that the one that was used least lately is forgotten, and full again."""
BURST: Final = 4
"""Seconds' worth a caller may send at once."""


class Rates:
    """The buckets of one server."""

    def __init__(self, per_minute: int) -> None:
        """0 bounds nothing."""
        self._per_second = per_minute / 60
        self._most = max(1.0, self._per_second * BURST)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By caller: what is left, and when that was."""

    def take(self, caller: str) -> None:
        """One request. Raises `TooManyRequests`."""
        if not self._per_second:
            return
        now = time.monotonic()
        left, since = self._buckets.pop(caller, (self._most, now))
        left = min(self._most, left + (now - since) * self._per_second)
        self._buckets[caller] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._buckets) > CALLERS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait_s = max(1, math.ceil((1 - left) / self._per_second))
            raise TooManyRequests(f"too many requests; go on in {wait_s} s", retry_after_s=wait_s)
