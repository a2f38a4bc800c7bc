"""One at a time for each name: whose turn it is, there for as long as somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field

from agent_graph.core.classes import dataclass


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Turns:
    """A lock for each name that somebody asks for."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def __len__(self) -> int:
        """How many names somebody is inside with, or waits for."""
        return len(self._turns)

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Nobody else is inside with this name."""
        turn = self._turns.setdefault(name, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[name]
