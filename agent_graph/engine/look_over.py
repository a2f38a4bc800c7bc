"""Looks over all rows of a store once after the start, beside everything else, and says which are damaged."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from agent_graph.errors import AgentGraphError
from agent_graph.store.base import Store

log = logging.getLogger(__name__)


class LookOver:
    """The look that is under way; `aclose` gives it up."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.task = asyncio.create_task(self._look(), name="look over rows")

    async def _look(self) -> None:
        with contextlib.suppress(AgentGraphError):  # a store in trouble says so by itself
            async for damage in self._store.damaged_rows():
                log.error("%s: %s", damage.code, damage.message)

    async def aclose(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
