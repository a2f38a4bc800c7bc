"""Wakes whoever waits for a run to change, and shows text as it streams; nothing here is stored."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias
from weakref import WeakValueDictionary

from agent_graph.core.classes import dataclass
from agent_graph.core.events import Event
from agent_graph.store.base import RunRow

KEPT = 4096
"""Live items one slow watcher may lag behind before the oldest deltas are dropped."""


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """A piece of a model's answer while it streams: live only, numbered apart, never in the chain."""

    number: int
    firing: str
    kind: str
    """``text`` or ``thinking``."""
    text: str


Live: TypeAlias = Event | ModelDelta


class Watch:
    """One watcher's queue of live items."""

    def __init__(self) -> None:
        self._items: deque[Live] = deque()
        self._wake = asyncio.Event()
        self._closed = False
        self.dropped = 0

    def put(self, item: Live) -> None:
        if isinstance(item, ModelDelta) and len(self._items) >= KEPT:
            self.dropped += 1
            return
        self._items.append(item)
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Live]:
        while True:
            while self._items:
                yield self._items.popleft()
            if self._closed:
                return
            self._wake.clear()
            await self._wake.wait()


class Notify:
    """One hub for all runs of a process."""

    def __init__(self) -> None:
        self.gates = asyncio.Event()
        """Set when some approval was opened or closed, or a run waits that the clock is to wake."""
        self._changed: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        """Held by those who wait, and gone with the last of them."""
        self._expected: dict[str, dict[asyncio.Future[RunRow], Callable[[RunRow], bool]]] = {}
        """Who waits for a row that passes a test: only the commit it waits for wakes it."""
        self.listeners: tuple[Callable[[RunRow, Sequence[Event]], None], ...] = ()
        """Who is told of every commit of every run: nobody, as long as nobody follows anything."""
        self._watches: dict[str, set[Watch]] = defaultdict(set)
        self._deltas: dict[str, int] = {}

    def changed(self, run_id: str) -> asyncio.Event:
        """An event set at the run's next commit; take it before looking at the store, so that none is missed."""
        event = self._changed.get(run_id)
        if event is None:
            event = self._changed[run_id] = asyncio.Event()
        return event

    @contextmanager
    def expect(self, run_id: str, test: Callable[[RunRow], bool]) -> Iterator[asyncio.Future[RunRow]]:
        """The run's first row from here on that passes `test`, which must not raise."""
        row: asyncio.Future[RunRow] = asyncio.get_running_loop().create_future()
        expected = self._expected.setdefault(run_id, {})
        expected[row] = test
        try:
            yield row
        finally:
            del expected[row]
            if not expected:
                self._expected.pop(run_id, None)

    def listen(self, hear: Callable[[RunRow, Sequence[Event]], None]) -> Callable[[], None]:
        """Have `hear`, which must not raise, told of every run's every commit, until what is returned is called."""
        self.listeners = (*self.listeners, hear)

        def stop() -> None:
            self.listeners = tuple(other for other in self.listeners if other is not hear)

        return stop

    def committed(self, row: RunRow, events: Sequence[Event]) -> None:
        """Events of the run are durable and `row` is what they made of it: wake the waiters, show the watchers."""
        run_id = row.run_id
        event = self._changed.pop(run_id, None) if self._changed else None
        if event is not None:
            event.set()
        for waiting, test in self._expected.get(run_id, {}).items():
            if not waiting.done() and test(row):
                waiting.set_result(row)
        for watch in self._watches.get(run_id, ()):
            for item in events:
                watch.put(item)
        for hear in self.listeners:
            hear(row, events)

    def delta(self, run_id: str, firing: str, *, kind: str, text: str) -> None:
        """A piece of an answer came in."""
        watches = self._watches.get(run_id)
        if watches:
            number = self._deltas[run_id] = self._deltas.get(run_id, 0) + 1
            for watch in watches:
                watch.put(ModelDelta(number, firing, kind, text))

    def watch(self, run_id: str) -> Watch:
        """Start watching a run; call `unwatch` when done."""
        watch = Watch()
        self._watches[run_id].add(watch)
        return watch

    def unwatch(self, run_id: str, watch: Watch) -> None:
        watch.close()
        watches = self._watches.get(run_id, set())
        watches.discard(watch)
        if not watches:
            self._watches.pop(run_id, None)
            self._deltas.pop(run_id, None)
