"""Expires approvals, and wakes runs that the clock is to wake, on time, whether anybody looks or not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from agent_graph.core.run import Run
from agent_graph.engine.commands import Command, Expire
from agent_graph.engine.shell import Shell
from agent_graph.errors import AgentGraphError

log = logging.getLogger(__name__)

FIRST_LOOK_MS: Final = 30
"""After the start: whoever has opened the folder comes first, and is often through by then."""
LOOK_AGAIN_MS: Final = 30_000
"""The longest sleep before the clock is looked at again: a machine that slept wakes gates late, not never."""


class Expiry:
    """One timer for all gates of a data folder. `ask` hands a command to a run's driver."""

    def __init__(self, shell: Shell, ask: Callable[[str, Command], Awaitable[Run]]) -> None:
        self._shell = shell
        self._ask = ask
        self._timer: asyncio.Task[None] | None = None
        self._stuck: dict[str, int] = {}
        """Runs whose gates cannot be expired, and until when they are passed over."""

    def watch(self) -> None:
        """Start the timer; a second call does nothing."""
        if self._timer is None:
            self._timer = asyncio.create_task(self._watch())
            self._timer.add_done_callback(self._ended)

    async def stop(self) -> None:
        """End the timer; an expiry under way is still recorded by its run."""
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)

    def _ended(self, timer: asyncio.Task[None]) -> None:
        if not timer.cancelled() and (bug := timer.exception()) is not None:
            log.error("the timer of approvals ended by a bug and begins anew", exc_info=bug)
            self._timer = None
            asyncio.get_running_loop().call_later(LOOK_AGAIN_MS / 1000, self.watch)

    async def _watch(self) -> None:
        gates = self._shell.notify.gates
        expired: tuple[int, str] | None = None
        if self._shell.store.storage == "durable":  # looking into memory has what was put off be written
            await asyncio.sleep(FIRST_LOOK_MS / 1000)
        while True:
            gates.clear()
            try:
                left_ms, found = await self._next()
            except AgentGraphError as error:
                log.error("approvals could not be expired: %s", error.message)
                left_ms, found = LOOK_AGAIN_MS, None
            if left_ms <= 0 and found is not None:
                if found == expired:  # it is still there: do not spin on it
                    self._set_aside(found[1], "it is over and does not expire")
                else:
                    await self._expire(found[1])
                    expired = found
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_ms / 1000):  # not `wait_for`: before 3.12 it can swallow a cancellation
                    await gates.wait()

    async def _expire(self, run_id: str) -> None:
        try:
            await self._ask(run_id, Expire())
        except AgentGraphError as error:
            self._set_aside(run_id, error.message)

    def _set_aside(self, run_id: str, why: str) -> None:
        """Look at the run's gates later again: it must not keep those of other runs from expiring."""
        log.error("an approval of run %s could not be expired: %s", run_id, why)
        self._stuck[run_id] = self._shell.clock.now_ms() + LOOK_AGAIN_MS

    async def _next(self) -> tuple[int, tuple[int, str] | None]:
        """How long to sleep, and the approval to look at then."""
        now_ms = self._shell.clock.now_ms()
        self._stuck = {run_id: until_ms for run_id, until_ms in self._stuck.items() if until_ms > now_ms}
        found = await self._shell.store.runs.next_wake(passing_over=tuple(self._stuck))
        if found is None:
            return LOOK_AGAIN_MS, None
        return min(LOOK_AGAIN_MS, found[0] - now_ms), found
