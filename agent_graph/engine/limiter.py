"""Places at a model host: fair between runs, first come first served within one, fewer while the host is overloaded.

A host takes `parallel` calls at once. Those who wait are served in turns, a call of each run, so that a run with
hundreds of calls costs one that has a single call no more than one call's wait. Waiting here is no part of any time
limit, is no attempt, and ends at once when it is cancelled.

A host that says it has too much (``MODEL_OVERLOADED``) gets half as many calls, and for a moment none that is new: a
quarter of a second, twice as long each time it says so again, or what it asked for by ``Retry-After``. It gets one
more after each round of good answers. Calls that were on the wire when it said so say nothing new. A limit on the
rate of one model (429) holds the calls of that model back, a full queue (503) all of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.core.failure import LONGEST_ASKED_MS
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import ModelOverloaded

FIRST_HOLD_MS: Final = 250
LONGEST_HOLD_MS: Final = 5_000
RATE: Final = 429
"""The status that speaks of one model's rate; any other overload is the host's."""


@dataclass(slots=True, eq=False)
class Place:
    """One call's place at a host: wait for it by entering, give it back by leaving."""

    gate: _Gate
    run_id: str
    model: str
    shrinks: int = 0
    """How often the host had been overloaded when the call got its place."""

    async def __aenter__(self) -> None:
        await self.gate.take(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ModelOverloaded):
            self.gate.overloaded(self, error)
        elif error is None:
            self.gate.answered()
        self.gate.give_back()


class Limiter:
    """Every model host of a process, told apart by its label."""

    def __init__(self) -> None:
        self._gates: dict[str, _Gate] = {}

    def place(self, host: str, *, parallel: int, run_id: str = "", model: str = "") -> Place:
        """One of the `parallel` places at `host`, for a call of `run_id` to `model`."""
        gate = self._gates.get(host)
        if gate is None:
            gate = self._gates[host] = _Gate(parallel)
        elif gate.parallel != parallel:
            gate.resize(parallel)
        return Place(gate, run_id, model)

    def load(self) -> dict[str, JsonObject]:
        """Of every host that was asked something: how many calls it may have (`parallel`), may have now (`allowed`),
        has (`in_flight`); how many `waiting`, of how many runs, and for how long new ones are held back (ms)."""
        return {host: gate.load() for host, gate in self._gates.items()}


@dataclass(slots=True, eq=False)
class _Waiter:
    place: Place
    granted: asyncio.Future[None]


class _Gate:
    """One host."""

    def __init__(self, parallel: int) -> None:
        self.parallel = parallel
        self._allowed = parallel
        self._in_flight = 0
        self._rounds: dict[str, deque[_Waiter]] = {}
        """Those who wait, by run; the run whose turn it is comes first."""
        self._good = 0
        """Good answers since the number of places changed."""
        self._shrinks = 0
        self._overloads = 0
        """How often in a row the host was overloaded."""
        self._held: dict[str, float] = {}
        """Until when (the loop's time) calls to a model are held back; "" stands for every model."""
        self._alarm: asyncio.TimerHandle | None = None

    def resize(self, parallel: int) -> None:
        self._allowed = max(1, min(self._allowed + parallel - self.parallel, parallel))
        self.parallel = parallel
        self._grant()

    async def take(self, place: Place) -> None:
        if self._in_flight < self._allowed and not self._rounds and not self._held:
            self._in_flight += 1
            place.shrinks = self._shrinks
            return
        waiter = _Waiter(place, asyncio.get_running_loop().create_future())
        self._rounds.setdefault(place.run_id, deque()).append(waiter)
        self._grant()
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter.granted.done() and not waiter.granted.cancelled():
                self.give_back()  # it had its place, and will not use it
            else:
                self._leave(waiter)
            raise

    def give_back(self) -> None:
        self._in_flight -= 1
        self._grant()

    def answered(self) -> None:
        """A good answer: after a round of them the host gets one call more."""
        self._overloads = 0
        if self._allowed < self.parallel:
            self._good += 1
            if self._good >= self._allowed:
                self._allowed, self._good = self._allowed + 1, 0

    def overloaded(self, place: Place, error: ModelOverloaded) -> None:
        hold_ms = 0
        if place.shrinks == self._shrinks:  # it was asked after it had last said so
            self._shrinks += 1
            self._allowed, self._good = max(1, self._allowed // 2), 0
            hold_ms = min(FIRST_HOLD_MS << min(self._overloads, 10), LONGEST_HOLD_MS)
            self._overloads += 1
        asked_ms = error.details.get("retry_after_ms")
        if isinstance(asked_ms, int):
            hold_ms = max(hold_ms, min(asked_ms, LONGEST_ASKED_MS))
        if hold_ms:
            model = place.model if error.details.get("status") == RATE else ""
            until = asyncio.get_running_loop().time() + hold_ms / 1000
            self._held[model] = max(self._held.get(model, 0.0), until)

    def load(self) -> JsonObject:
        left = max(self._held.values(), default=0.0) - asyncio.get_running_loop().time() if self._held else 0.0
        return {
            "parallel": self.parallel, "allowed": self._allowed, "in_flight": self._in_flight,
            "waiting": sum(map(len, self._rounds.values())), "runs_waiting": len(self._rounds),
            "held_back_ms": max(0, round(left * 1000)),
        }  # fmt: skip

    # -- whose turn it is ------------------------------------------------------------------------------------------

    def _grant(self) -> None:
        """Hand out the places that are free."""
        self._release()
        while self._in_flight < self._allowed and (waiter := self._next()) is not None:
            self._in_flight += 1
            waiter.place.shrinks = self._shrinks
            waiter.granted.set_result(None)

    def _next(self) -> _Waiter | None:
        """The first call that may go, of the first run that has one; the run then goes to the end of the round."""
        if "" in self._held:
            return None
        for run_id, waiting in self._rounds.items():
            for waiter in waiting:
                if waiter.place.model not in self._held and not waiter.granted.done():  # one that is done is leaving
                    waiting.remove(waiter)
                    del self._rounds[run_id]
                    if waiting:
                        self._rounds[run_id] = waiting
                    return waiter
        return None

    def _leave(self, waiter: _Waiter) -> None:
        waiting = self._rounds[waiter.place.run_id]
        waiting.remove(waiter)
        if not waiting:
            del self._rounds[waiter.place.run_id]

    def _release(self) -> None:
        """Drop what is over of what is held back, and see to it that the rest is looked at when it is over."""
        if not self._held:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._held = {model: until for model, until in self._held.items() if until > now}
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._held and self._rounds:
            self._alarm = loop.call_at(min(self._held.values()), self._grant)
