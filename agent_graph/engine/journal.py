"""One run's fold and what of it is not stored yet: records facts, commits them, and knows when it is ahead of the log.

The only place that writes events of a run. A commit that is refused leaves the fold ahead of the log; it is then
`stale`, and nothing may be recorded before `catch_up` has read it anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import Graph
from agent_graph.core.run import Run
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.engine.rows import approval_row, run_row
from agent_graph.engine.shell import Shell
from agent_graph.errors import AgentGraphError
from agent_graph.store.base import Answered, Commit, RunRow, Store

SNAPSHOT_EVENTS: Final = 64
SNAPSHOT_BYTES: Final = 256 * 1024
"""A snapshot is due when so many events, or bytes of them, have been written since the last."""
WORTH: Final = 2
"""Unless that is less than so many times what the last one weighs: so their sizes grow geometrically."""
EVENT_BYTES: Final = 512
"""What an event is taken to weigh that was read and not written."""
PAGE: Final = 1000

_GATE_FACTS = (
    e.ApprovalOpened, e.ApprovalVoted, e.ApprovalReminded, e.ApprovalDecided, e.ApprovalExpired, e.ApprovalWithdrawn,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Folded:
    """A run as its log tells it; `since` events were read after a snapshot of `weight` bytes (0 = none). `row` is what
    was committed of it last, where that is known."""

    run: Run
    since: int
    weight: int
    row: RunRow | None = None


async def fold(store: Store, graph: Graph, run_id: str) -> Folded:
    """Fold the log from the latest snapshot on. Raises `RunNotFound`, `StoreCorrupt`."""
    snapshot, events, _ = await store.runs.load(run_id)
    return await fold_loaded(store, graph, run_id, snapshot, events)


async def fold_loaded(
    store: Store, graph: Graph, run_id: str, snapshot: bytes | None, events: Sequence[e.Event]
) -> Folded:
    """Fold what was loaded of a run."""
    run, weight = new_run(), 0
    if snapshot is not None:
        try:
            run, weight = checkpoint.load(graph, snapshot), len(snapshot)
        except (KeyError, TypeError, ValueError):  # of another program's version: the events are the run
            events = await _all_events(store, run_id)
    for event in events:
        evolve(graph, run, event)
    return Folded(run, len(events), weight)


async def _all_events(store: Store, run_id: str) -> tuple[e.Event, ...]:
    events: list[e.Event] = []
    while True:
        page = await store.runs.events(run_id, first_seq=len(events), limit=PAGE)
        events += [e.Event(stored.seq, stored.at_ms, e.from_json(stored.body)) for stored in page]
        if len(page) < PAGE:
            return tuple(events)


class Journal:
    """The fold of one run, kept level with its log."""

    def __init__(self, shell: Shell, graph: Graph, folded: Folded) -> None:
        self.graph = graph
        self.run = folded.run
        self.stale = False
        """The log did not take what the fold holds: `catch_up` first."""
        self.row: RunRow | None = None
        """The run's row as it was committed last; None where only the store knows it."""
        self.finishes = False
        """What waits for the next commit holds the end of a firing."""
        self._shell = shell
        self._pending: list[e.Event] = []
        self._touched: dict[str, None] = {}
        self._reusable = False
        """What waits for the next commit holds an answer that others may use."""
        self._take_over(folded)

    @property
    def level(self) -> bool:
        """Nothing waits for the next commit."""
        return not self._pending

    def now_ms(self) -> int:
        """The time by the run's own events: it goes on from the latest, whatever was done to the clock meanwhile."""
        return self._shell.clock.now_ms() + self._behind_ms

    def record(self, *facts: e.Fact) -> None:
        """Fold facts in; they are durable after the next `commit`."""
        graph, run, now_ms = self.graph, self.run, self.now_ms()
        for fact in facts:
            event = e.Event(run.seq, now_ms, fact)
            evolve(graph, run, event)
            self._pending.append(event)
            if isinstance(fact, e.NodeStarted):
                continue  # every other one
            if isinstance(fact, e.ENDS):
                self.finishes = True
            elif isinstance(fact, _GATE_FACTS):
                self._touched[fact.approval_id] = None
            elif isinstance(fact, e.ModelAnswered) and fact.cache_key:
                self._reusable = True

    async def commit(self, answered: Answered | None = None) -> None:
        """Store what was recorded, with `answered` in the same transaction. Raises what the store raises, and is
        stale then."""
        if not self._pending and answered is None:
            return
        run, pending = self.run, self._pending
        gates = [approval_row(self.graph, run, run.gates[name]) for name in self._touched]
        told = self._shell.announcer if gates or run.terminal else None
        commit = Commit(
            run=run_row(self.graph, run, created_at_ms=run.accepted_at_ms),
            expected_seq=run.seq - len(pending), events=pending, snapshot=self._snapshot(len(pending)),
            approvals=gates, answered=answered, notices=() if told is None else told.notices(self.graph, run, pending),
            seal=self._shell.seal if run.terminal else None,
        )  # fmt: skip
        reusable = self._reusable
        self._pending, self._touched, self.finishes, self._reusable = [], {}, False, False
        self.stale = True  # until the store has said yes, and when this is cancelled half-way
        self._bytes += await self._shell.store.runs.commit(commit)
        self.stale, self.row = False, commit.run
        self._shell.notify.committed(commit.run, pending)
        if reusable:
            await self._remember(pending)
        if gates or (commit.run.wake_at_ms is not None and commit.run.status == "waiting"):
            self._shell.notify.gates.set()
        if told is not None and commit.notices:
            told.written()

    async def _remember(self, events: Sequence[e.Event]) -> None:
        """Have answers that may be used again found; one that is not is only asked for once more."""
        for event in events:
            if isinstance(event.fact, e.ModelAnswered) and event.fact.cache_key:
                with contextlib.suppress(AgentGraphError):
                    await self._shell.store.answers.remember(event.fact.cache_key, self.run.run_id, event.seq)

    async def catch_up(self, held: Iterable[str] = ()) -> None:
        """Read the run anew; `held` are firings whose call is under way or has been heard of, not to be made again."""
        folded = await fold(self._shell.store, self.graph, self.run.run_id)
        self.run = folded.run
        self._take_over(folded)
        self._pending, self._touched, self.finishes, self._reusable, self.stale = [], {}, False, False, False
        for path in held:
            if path in self.run.open:
                self.run.hand_over(path)

    def _take_over(self, folded: Folded) -> None:
        self._since, self._weight, self.row = folded.since, folded.weight, folded.row
        self._behind_ms = max(0, folded.run.at_ms - self._shell.clock.now_ms())
        self._bytes = (folded.since - 1) * EVENT_BYTES if folded.since else 0  # a run just made has one, and no bytes

    def _snapshot(self, count: int) -> bytes | None:
        """A snapshot now and then: never one that weighs more than what it saves."""
        self._since += count
        due = self._since >= SNAPSHOT_EVENTS or self._bytes >= SNAPSHOT_BYTES
        if not due or self._bytes <= WORTH * self._weight or self.run.terminal:
            return None
        data = checkpoint.dump(self.run)
        self._since, self._bytes, self._weight = 0, 0, len(data)
        return data
