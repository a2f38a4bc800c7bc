"""Drives the real core from facts and answers alone; who answers next is a choice handed in, never time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any, TypeAlias

from agent_graph.core import events
from agent_graph.core.effects import CallModel, ModelAnswer, answer_to_json
from agent_graph.core.events import Event, Fact
from agent_graph.core.failure import follow_up
from agent_graph.core.graph import Graph
from agent_graph.core.record import canonical_record
from agent_graph.core.run import Run
from agent_graph.core.scheduler import decide, evolve, new_run
from agent_graph.core.step import Perform, Record
from tests.properties.world import World

Order: TypeAlias = Callable[[Sequence[str]], int]
"""Which of the open questions, oldest first, is answered next; they are named by firing."""
TERMINAL = frozenset({"completed", "failed", "cancelled"})
MOST_EVENTS = 20_000


def orders(seed: int) -> dict[str, Order]:
    """Six completion orders; make them anew for every run, the random ones remember."""

    def slow_names(open_: Sequence[str]) -> int:
        ranks = [sha256(f"{seed}{firing.partition('#')[0]}".encode()).digest() for firing in open_]
        return ranks.index(min(ranks))

    def at_random(shift: int) -> Order:
        rng = Random(seed * 4 + shift)
        return lambda open_: rng.randrange(len(open_))

    return {
        "fifo": lambda open_: 0, "lifo": lambda open_: len(open_) - 1, "some nodes always slow": slow_names,
        "random 1": at_random(1), "random 2": at_random(2), "random 3": at_random(3),
    }  # fmt: skip


@dataclass(slots=True)
class Drive:
    """One run being driven, with the log of what happened and what is asked and not answered yet."""

    graph: Graph
    world: World
    order: Order
    run: Run = field(default_factory=new_run)
    log: list[Event] = field(default_factory=list)
    sealed: list[str] = field(default_factory=list)
    """Each event as it was when it was written."""
    calls: dict[str, Perform] = field(default_factory=dict)
    gates: dict[str, events.ApprovalOpened] = field(default_factory=dict)
    performed: list[Perform] = field(default_factory=list)
    """Every effect that was asked for, in order."""
    _record: tuple[int, Any] | None = None
    one_by_one: bool = False
    """Ask `decide` again after every single action instead of taking all it offers."""

    def record(self, fact: Fact, *, at_ms: int = 7) -> None:
        event = Event(self.run.seq, at_ms, fact)
        assert event.seq == len(self.log), f"run.seq is {event.seq} after {len(self.log)} events"
        assert len(self.log) < MOST_EVENTS, "it does not end"
        self.log.append(event)
        self.sealed.append(seal(event))
        self.run = evolve(self.graph, self.run, event)
        self.remember(fact)

    def remember(self, fact: Fact) -> None:
        """Keep the list of open questions."""
        match fact:
            case events.ApprovalOpened():
                self.gates[fact.firing] = fact
            case events.ApprovalDecided() | events.ApprovalExpired() | events.ApprovalWithdrawn():
                self.gates.pop(fact.firing)
            case events.ModelAnswered() | events.NodeFailed() | events.NodeRetried() | events.FiringCancelled():
                self.calls.pop(fact.firing, None)

    def go(self) -> Drive:
        """Until nothing or only questions that nobody answers are left."""
        while True:
            self.do_all()
            open_ = list(self.questions())
            if not open_:
                return self
            self.answer(open_[self.order(open_)])

    def do_all(self) -> None:
        while actions := decide(self.graph, self.run):
            assert actions == decide(self.graph, self.run), "decide is not pure"
            for action in actions[:1] if self.one_by_one else actions:
                match action:
                    case Record():
                        self.record(action.fact)
                    case Perform():
                        assert isinstance(action.effect, CallModel)
                        assert action.firing not in self.calls, f"{action.firing} is offered twice"
                        self.calls[action.firing] = action
                        self.performed.append(action)
                        self.run.hand_over(action.firing)
        self.narrow()

    def narrow(self) -> None:
        """No static branches have more calls in flight than they may."""
        taken = Counter[tuple[str, int]]()
        for firing in self.calls:
            frame, _, name = firing.rpartition("/")
            node = self.graph.index.get(name.rpartition("#")[0], -1)
            taken.update((frame, fork) for fork in self.graph.narrow.get(node, ()))
        for (_, fork), count in taken.items():
            assert count <= self.graph.nodes[fork].config.max_parallelism, f"{count} calls at a time"

    def questions(self) -> Iterator[str]:
        yield from self.calls
        yield from self.run.pausing
        yield from self.run.waits
        yield from (path for path in self.run.until if self.world.is_slow(path))
        for firing, gate in self.gates.items():
            if self.world.person(firing, gate.round, tuple(gate.allowed_decisions)) is not None:
                yield firing

    def answer(self, firing: str) -> None:
        if firing in self.calls:
            perform = self.calls[firing]
            assert isinstance(perform.effect, CallModel)
            passing = self.world.stumble(firing, perform.attempt)
            answer = self.world.model(firing, perform.effect) if passing is None else passing
            if isinstance(answer, ModelAnswer):
                self.record(events.ModelAnswered(firing, answer_to_json(answer), perform.attempt))
            else:
                failed = events.NodeFailed(firing, dict(answer), perform.attempt)
                self.record(follow_up(self.run, failed))
            return
        if firing in {**self.run.pausing, **self.run.until} or (
            firing in self.run.waits and not self.run.waits[firing].name
        ):
            self.record(events.TimerFired(firing))
            return
        if firing in self.run.waits:
            self.record(events.SignalReceived(self.run.waits[firing].name, f"to {firing}", firing))
            return
        gate = self.gates[firing]
        decision = self.world.person(firing, gate.round, tuple(gate.allowed_decisions))
        assert decision is not None
        fact: Fact = events.ApprovalDecided(
            firing, gate.approval_id, decision.decision, decision.note, decision.by, decision.via
        )
        if decision.decision == "expired":
            fact = events.ApprovalExpired(firing, gate.approval_id)
        self.record(fact, at_ms=decision.at_ms)

    def canonical(self) -> dict[str, Any]:
        """The canonical record of what happened so far."""
        if self._record is None or self._record[0] != len(self.log):
            self._record = len(self.log), canonical_record(self.graph, self.log)
        return self._record[1]

    def finished(self) -> dict[str, events.NodeFinished | events.NodeFailed]:
        """How firings ended after which the run went on."""
        ends: dict[str, events.NodeFinished | events.NodeFailed] = {}
        for event in self.log:
            fact = event.fact
            if isinstance(fact, events.NodeFinished) or (isinstance(fact, events.NodeFailed) and fact.targets):
                ends[fact.firing] = fact
        return ends

    def routes(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        facts = [event.fact for event in self.log]
        return {f.firing: (f.transition, tuple(f.targets)) for f in facts if isinstance(f, events.RouteTaken)}


def seal(event: Event) -> str:
    return json.dumps([event.seq, event.at_ms, events.to_json(event.fact)], sort_keys=True)


def start(
    graph: Graph, run_input: Any, world: World, order: Order, *, one_by_one: bool = False,
    budgets: dict[str, Any] | None = None,
) -> Drive:  # fmt: skip
    """A new run, accepted and started."""
    drive = Drive(graph, world, order, one_by_one=one_by_one)
    drive.record(events.RunAccepted("r", graph.name, graph.version, run_input, budgets=budgets or {}))
    drive.record(events.RunStarted())
    return drive


def refold(graph: Graph, log: Sequence[Event], world: World, order: Order, *, stored: bool = True) -> Drive:
    """The run as a new process finds it: folded from `log`, which went through its stored form on the way."""
    drive = Drive(graph, world, order)
    for event in log:
        fact = events.from_json(json.loads(json.dumps(events.to_json(event.fact)))) if stored else event.fact
        again = Event(event.seq, event.at_ms, fact)
        drive.log.append(again)
        drive.sealed.append(seal(again))
        drive.run = evolve(graph, drive.run, again)
        drive.remember(fact)
    if len(log) == 1:
        drive.record(events.RunStarted())
    return drive
