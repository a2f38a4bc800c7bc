"""Places at a model host: at most so many calls in flight from everything we run, first come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Limiter:
    """One first-in first-out gate per host label. Waiting here is no part of any time limit."""

    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def place(self, host: str, *, parallel: int) -> AsyncIterator[None]:
        """Hold one of the host's `parallel` places."""
        gate = self._gates.get(host)
        if gate is None:
            gate = self._gates[host] = asyncio.Semaphore(parallel)
        async with gate:
            yield
