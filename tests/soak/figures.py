"""What a process holds on to, measured from inside, and the line through a series of such figures."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STATM = Path("/proc/self/statm")
DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True)
class Held:
    """One look. `descriptors` counts the one that looking takes."""

    at_ms: int
    rss_bytes: int
    tasks: int
    threads: int
    descriptors: int


def held(at_ms: int) -> Held:
    """What this process holds now; on Linux."""
    pages = int(STATM.read_text(encoding="ascii").split()[1])
    return Held(
        at_ms, pages * os.sysconf("SC_PAGE_SIZE"), len(asyncio.all_tasks()), threading.active_count(),
        len(list(DESCRIPTORS.iterdir())),
    )  # fmt: skip


def growth(points: Sequence[tuple[int, int]]) -> float:
    """How far the straight line of least squares through (at_ms, value) rises from the first point to the last."""
    if len(points) < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    together = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return together / spread * (points[-1][0] - points[0][0]) if spread else 0.0
