"""Tells the outside what was written down to be told: in order, until it was taken or too often not.

At least once: a notice goes from the list after somebody has taken it, so one is told again where the process ends in
between; its id says that it is the same. Nothing that a run does waits for any of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from agent_graph.connect.base import Letter, Receipt, Target
from agent_graph.core.jsonvalue import JsonObject, compact
from agent_graph.engine.announce import Announcer
from agent_graph.engine.clock import Clock
from agent_graph.errors import AgentGraphError
from agent_graph.store.base import Pending, Store

log = logging.getLogger(__name__)

FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 600_000
"""Between two tries of one notice: the first is doubled up to the second."""
LOOK_AGAIN_MS: Final = 30_000
TOO_OLD_MS: Final = 7 * 24 * 3_600_000
"""A notice that waited so long is given up unsaid."""
MOST_WAITING: Final = 10_000
"""Notices that wait for one target; beyond that the oldest are given up."""
LEAVING_S: Final = 3.0
"""Seconds a program that ends stays for what can be told at once."""


class Outbox:
    """One teller for each target. `console` is the address of the console, where this process serves one."""

    def __init__(
        self, store: Store, clock: Clock, targets: Sequence[Target], *, announcer: Announcer, tries: int
    ) -> None:
        self.console = ""
        self._store = store
        self._clock = clock
        self._targets = tuple(targets)
        self.announcer = announcer
        self._tries = tries
        self._wakes = announcer.wakes
        self._wakes.update({target.name: asyncio.Event() for target in self._targets})
        self._tellers: dict[str, asyncio.Task[None]] = {}
        self._paused_until_ms: dict[str, int] = {}
        """A target that is away is left alone until then."""
        self._taken: dict[str, int] = {}
        """The number of what a target has taken, as long as that could not be written down."""
        self._leaving = False

    def watch(self) -> None:
        """Start telling; a second call does nothing."""
        for target in self._targets:
            if target.name not in self._tellers:
                self._begin(target)

    async def stop(self) -> None:
        """Tell what can be told at once, for `LEAVING_S` at most, and end; the rest waits for the next start."""
        self._leaving = True
        self.announcer.written()
        if self._tellers:
            _, late = await asyncio.wait(self._tellers.values(), timeout=LEAVING_S)
            for teller in late:
                teller.cancel()
            await asyncio.gather(*self._tellers.values(), return_exceptions=True)
        for target in self._targets:
            await target.aclose()

    async def state(self) -> JsonObject:
        """By target: {waiting, delivered, given_up, delivered_at_ms, failed_at_ms, failure}."""
        nothing: JsonObject = {
            "waiting": 0, "delivered": 0, "given_up": 0, "delivered_at_ms": None, "failed_at_ms": None, "failure": "",
        }  # fmt: skip
        found: JsonObject = {target.name: nothing for target in self._targets}
        for one in await self._store.outbox.states():
            if one.target in found:
                found[one.target] = {
                    "waiting": one.waiting, "delivered": one.delivered, "given_up": one.given_up,
                    "delivered_at_ms": one.delivered_at_ms, "failed_at_ms": one.failed_at_ms, "failure": one.failure,
                }  # fmt: skip
        return found

    # -- one target ------------------------------------------------------------------------------------------------

    def _begin(self, target: Target) -> None:
        teller = self._tellers[target.name] = asyncio.create_task(self._tell_on(target))
        teller.add_done_callback(partial(self._ended, target))

    def _ended(self, target: Target, teller: asyncio.Task[None]) -> None:
        if not teller.cancelled() and (bug := teller.exception()) is not None:
            log.error("telling the %s ended by a bug and begins anew", target.name, exc_info=bug)
            if not self._leaving:
                asyncio.get_running_loop().call_later(LOOK_AGAIN_MS / 1000, self._begin, target)

    async def _tell_on(self, target: Target) -> None:
        wake = self._wakes[target.name]
        while True:
            wake.clear()
            try:
                left_ms = await self._step(target)
            except AgentGraphError as error:
                log.error("what the %s is to be told could not be read or kept: %s", target.name, error.message)
                left_ms = LOOK_AGAIN_MS
            if left_ms <= 0:
                continue
            if self._leaving:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_ms, LOOK_AGAIN_MS) / 1000):
                    await wake.wait()

    async def _step(self, target: Target) -> int:
        """Tell one notice, if the moment of one has come; milliseconds until it is worth looking again."""
        name, now_ms = target.name, self._clock.now_ms()
        taken = self._taken.get(name)
        if taken is not None:
            await self._store.outbox.delivered(name, taken, at_ms=now_ms)
            del self._taken[name]
        paused_ms = self._paused_until_ms.get(name, 0) - now_ms
        if paused_ms > 0:
            return paused_ms
        found = await self._store.outbox.due(name, now_ms=now_ms)
        if not isinstance(found, Pending):
            return LOOK_AGAIN_MS if found is None else max(1, found - now_ms)
        if now_ms - found.at_ms > TOO_OLD_MS:
            await self._give_up(name, found, Receipt("refused", "it waited for more than seven days"))
            return 0
        receipt = await target.tell(Letter(found.notice_id, self._body(found)))
        if receipt.state == "delivered":
            self._taken[name] = found.number
            self._paused_until_ms.pop(name, None)
        else:
            await self._failed(name, found, receipt)
        return 0

    async def _failed(self, name: str, found: Pending, receipt: Receipt) -> None:
        if found.tries + 1 >= self._tries:
            await self._give_up(name, found, receipt)
            return
        now_ms = self._clock.now_ms()
        pause_ms = max(receipt.not_before_ms, min(FIRST_PAUSE_MS << min(found.tries, 20), LONGEST_PAUSE_MS))
        log.warning("the %s was not told of %s: %s; again in %d s", name, found.notice_id, receipt.said,
                    pause_ms // 1000)  # fmt: skip
        next_at_ms = now_ms + pause_ms
        if receipt.state == "away":  # it keeps its place: what comes after it waits too, and a restart tries at once
            self._paused_until_ms[name], next_at_ms = next_at_ms, now_ms
        await self._store.outbox.failed(
            name, found.number, at_ms=now_ms, why=receipt.said, next_at_ms=next_at_ms, most=MOST_WAITING
        )

    async def _give_up(self, name: str, found: Pending, receipt: Receipt) -> None:
        log.error("the %s is not told of %s: %s", name, found.notice_id, receipt.said)
        await self._store.outbox.failed(
            name, found.number, at_ms=self._clock.now_ms(), why=receipt.said, next_at_ms=None, most=MOST_WAITING
        )

    def _body(self, found: Pending) -> bytes:
        body = found.body
        data = body.get("data")
        if self.console and isinstance(data, dict):
            approval, run = data.get("approval_id"), data.get("run_id")
            where = f"approvals/{approval}" if approval else f"runs/{run}"
            body = {**body, "data": {**data, "link": f"{self.console}/{where}"}}
        return compact(body).encode()
