"""Gives a sign of life now and then, and looks whether the files of the store are still there.

The owner of a data folder does both on the loop that drives its runs, so that one that is stopped or stuck is silent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from agent_graph.errors import AgentGraphError
from agent_graph.store.base import Store

log = logging.getLogger(__name__)

BEAT_MS: Final = 2_000


class Heartbeat:
    """`beat` gives the sign of life; `lost` is called once, with what the store raises when its files are gone."""

    def __init__(self, store: Store, *, beat: Callable[[], None], lost: Callable[[AgentGraphError], None]) -> None:
        self._store = store
        self._beat = beat
        self._lost = lost
        self._intact = True
        self._timer: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Start."""
        if self._timer is None:
            self._timer = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)

    def look(self) -> None:
        """One beat. One whose files are gone is alive still, for whoever wants to read."""
        self._beat()
        if self._intact:
            try:
                self._store.check()
            except AgentGraphError as loss:
                self._intact = False
                log.error("%s", loss.message)
                self._lost(loss)

    async def _watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(BEAT_MS / 1000)
