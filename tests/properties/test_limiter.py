"""Whoever comes, goes or gives up at a model host: never too many at once, in order within a run, in turns between."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.engine.limiter import Limiter
from agent_graph.errors import ModelOverloaded
from tests.sizes import size

RUNS = 4
Op = tuple[str, int]


@dataclass
class Desk:
    """Everybody at one host, moved one step at a time."""

    parallel: int
    limiter: Limiter = field(default_factory=Limiter)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    """(run, number) in the order they came."""
    served: list[tuple[int, int]] = field(default_factory=list)
    inside: dict[tuple[int, int], asyncio.Event] = field(default_factory=dict)
    tasks: dict[tuple[int, int], asyncio.Task[None]] = field(default_factory=dict)
    passed_by: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """For each that waits first in its run: who was served since it was its run's turn to wait."""
    came: int = 0

    async def call(self, who: tuple[int, int]) -> None:
        self.waiting.append(who)
        async with self.limiter.place("host", parallel=self.parallel, run_id=f"run-{who[0]}"):
            self._served(who)
            self.inside[who] = asyncio.Event()
            await self.inside[who].wait()

    def _served(self, who: tuple[int, int]) -> None:
        first_of_run = next(each for each in self.waiting if each[0] == who[0])
        assert first_of_run == who, "first come, first served within a run"
        self.waiting.remove(who)
        self.passed_by.pop(who, None)
        for run in range(RUNS):
            first = next((each for each in self.waiting if each[0] == run), None)
            if first is not None and run != who[0]:
                passed = self.passed_by.setdefault(first, [])
                passed.append(who[0])
                assert passed.count(who[0]) == 1, f"run {who[0]} had two turns while run {run} had none"
        self.served.append(who)
        assert len(self.inside) < self.parallel

    async def step(self, op: Op) -> None:
        kind, number = op
        if kind == "come":
            await self.settle()  # who was given a place has taken it, so that turns are counted from here on
            who = (number % RUNS, self.came)
            self.came += 1
            self.tasks[who] = asyncio.create_task(self.call(who))
        elif kind == "leave" and self.inside:
            who = sorted(self.inside)[number % len(self.inside)]
            self.inside.pop(who).set()
        elif kind == "give up" and self.tasks:
            who = sorted(self.tasks)[number % len(self.tasks)]
            if who in self.waiting:
                self.waiting.remove(who)
            self.inside.pop(who, None)
            self.tasks[who].cancel()
        if number % 3:
            await self.settle()
        self.raise_what_went_wrong()
        self.tasks = {who: task for who, task in self.tasks.items() if not task.done()}

    def raise_what_went_wrong(self) -> None:
        for task in self.tasks.values():
            if task.done() and not task.cancelled():
                task.result()

    async def settle(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def end(self) -> None:
        while self.waiting or self.inside:
            await self.settle()
            for event in self.inside.values():
                event.set()
            self.inside.clear()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        self.raise_what_went_wrong()


OPS = st.lists(
    st.tuples(st.sampled_from(["come", "come", "come", "leave", "leave", "give up"]), st.integers(0, 11)), max_size=60
)


@settings(max_examples=size(80, 3000), deadline=None)
@given(OPS, st.integers(1, 4))
def test_places_are_given_in_turns_and_none_is_lost(ops: list[Op], parallel: int) -> None:
    async def play() -> None:
        desk = Desk(parallel)
        for op in ops:
            await desk.step(op)
        await desk.settle()
        assert len(desk.inside) == min(parallel, len(desk.inside) + len(desk.waiting)), "a free place stays empty"
        await desk.end()
        load = desk.limiter.load().get("host", {"in_flight": 0, "waiting": 0, "runs_waiting": 0})
        assert (load["in_flight"], load["waiting"], load["runs_waiting"]) == (0, 0, 0)

    asyncio.run(play())


@settings(max_examples=size(60, 2000), deadline=None)
@given(st.lists(st.booleans(), max_size=80), st.integers(1, 8))
def test_an_overloaded_host_gets_fewer_calls_and_never_none_or_too_many(goes_well: list[bool], parallel: int) -> None:
    async def play() -> None:
        limiter = Limiter()
        for well in goes_well:
            gate = limiter.place("host", parallel=parallel)
            gate.gate._held.clear()  # as if that time were over
            before = int(str(limiter.load()["host"]["allowed"]))
            try:
                async with gate:
                    if not well:
                        raise ModelOverloaded("too much")
            except ModelOverloaded:
                pass
            allowed = int(str(limiter.load()["host"]["allowed"]))
            assert 1 <= allowed <= parallel
            assert allowed in ((before, before + 1) if well else (max(1, before // 2),))

    asyncio.run(play())
