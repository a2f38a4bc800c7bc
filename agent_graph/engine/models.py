"""Which model host is used, chosen when the first call needs it; the choice itself belongs to whoever composes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent_graph.llm.base import ModelClient


@dataclass(frozen=True, slots=True)
class Chosen:
    """A host, the model used when none is named, and what a person should know about the choice ("" = nothing)."""

    client: ModelClient
    model: str
    remark: str = ""


class Models:
    """The host of a process. A choice that fails is made again at the next call."""

    def __init__(self, choose: Callable[[], Awaitable[Chosen]], *, remark: Callable[[str], None] | None = None) -> None:
        self._choose = choose
        self._remark = remark
        self._chosen: Chosen | None = None
        self._lock = asyncio.Lock()

    @property
    def chosen(self) -> Chosen | None:
        """The choice, once it was made."""
        return self._chosen

    async def get(self) -> Chosen:
        """The host; raises what choosing raises (`ModelNotConfigured`, `ModelUnreachable` ...)."""
        async with self._lock:
            if self._chosen is None:
                self._chosen = await self._choose()
                if self._chosen.remark and self._remark is not None:
                    self._remark(self._chosen.remark)
            return self._chosen

    async def aclose(self) -> None:
        if self._chosen is not None:
            await self._chosen.client.aclose()
