"""Drives a graph with the answers another run recorded: no model is called, nobody is asked, nothing is guessed.

As far as the graph goes the recorded way, the record is followed fact by fact. Where it leaves that way it is driven
on: a firing that asks the very question a recorded answer was given to takes that answer, a gate that asks about the
same subject the same decision, a message or a moment comes as it came. What has no recorded answer stays open, and is
reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias

from agent_graph.core import events as e
from agent_graph.core import signals
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel, CallTool, CheckEvidence
from agent_graph.core.failure import follow_up
from agent_graph.core.following import Divergence, Followed, asked_otherwise, follow
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import digest
from agent_graph.core.run import Gate, Run
from agent_graph.core.scheduler import Perform, Record, decide, evolve
from agent_graph.errors import AgentGraphError

Heard: TypeAlias = e.ModelAnswered | e.CacheHit | e.ToolAnswered | e.EvidenceChecked
ANSWERED_BY: Final[dict[type[e.Fact], type]] = {
    e.ModelAnswered: CallModel, e.CacheHit: CallModel, e.ToolAnswered: CallTool, e.EvidenceChecked: CheckEvidence,
}  # fmt: skip
"""What each answer is the answer to."""
MOST_EVENTS: Final = 200_000
"""Beyond so many events a replay stops: its graph goes round a circle that the recorded answers keep open."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A firing that wants what the record does not hold. `why` is a sentence."""

    firing: str
    why: str


@dataclass(slots=True)
class Replayed:
    """What a replay came to. Without `divergence` the graph goes the recorded way to the recorded end."""

    graph: Graph
    run: Run
    log: list[e.Event] = field(default_factory=list)
    divergence: Divergence | None = None
    unanswered: tuple[Unanswered, ...] = ()
    asked_otherwise: tuple[str, ...] = ()
    """Firings on the recorded way whose answers were given to other questions than this graph asks."""

    @property
    def same(self) -> bool:
        return self.divergence is None


def replay(graph: Graph, log: Sequence[e.Event], *, recorded: Graph) -> Replayed:
    """Drive `graph` with the answers in `log`, which is of a run of `recorded`.

    Raises ValueError when the log does not follow from its own answers: then there is nothing to go by.
    """
    own = follow(recorded, log)
    if own.divergence is not None:
        raise ValueError(f"event {own.divergence.seq} does not follow from the ones before it")
    done = follow(graph, log, like=own)
    broke = done.divergence
    at = len(log) if broke is None else next((i for i, one in enumerate(log) if one.seq == broke.seq), len(log))
    replayed = Replayed(graph, done.follower.run, list(log[:at]), broke, (), tuple(asked_otherwise(own, done)))
    if broke is not None:
        driver = _Driver(replayed, own, log, at)
        replayed.unanswered = tuple(driver.go())
    return replayed


@dataclass(frozen=True, slots=True)
class _Kept:
    """What came from outside in the record, and what it was the answer to, where that was a model's or a comparison."""

    event: e.Event
    call: CallModel | CheckEvidence | None


class _Driver:
    """Goes on behind the first divergence: of what came from outside, the first that is wanted now comes next."""

    def __init__(self, replayed: Replayed, own: Followed, log: Sequence[e.Event], at: int) -> None:
        self.replayed = replayed
        self.run = replayed.run
        self.at_ms = self.run.at_ms
        self.run.open = {**self.run.out, **self.run.open}  # what was under way there is this driver's to answer
        self.run.out = {}
        self.left = [
            _Kept(log[place], own.calls[place][1] if place in own.calls else None)
            for place in own.outside
            if place >= at
        ]
        self.asked = {one.fact.approval_id: one.fact for one in log if isinstance(one.fact, e.ApprovalOpened)}

    def go(self) -> list[Unanswered]:
        performs = self._decide()
        while not self.run.terminal and len(self.replayed.log) < MOST_EVENTS:
            if not (self._next(performs) or self._by_the_clock()):
                break
            performs = self._decide()
        return [] if self.run.terminal else list(self._unanswered(performs))

    def record(self, fact: e.Fact, *, at_ms: int = 0) -> None:
        self.at_ms = at_ms or self.at_ms
        event = e.Event(self.run.seq, self.at_ms, fact)
        self.replayed.log.append(event)
        evolve(self.replayed.graph, self.run, event)

    def _decide(self) -> dict[str, Perform]:
        """Record all the run makes of itself; the effects it wants then, by firing."""
        while True:
            actions = decide(self.replayed.graph, self.run)
            facts = [one.fact for one in actions if isinstance(one, Record)]
            if not facts:
                return {one.firing: one for one in actions if isinstance(one, Perform)}
            for fact in facts:
                self.record(fact)

    def _next(self, performs: dict[str, Perform]) -> bool:
        passed: set[str] = set()
        for place, kept in enumerate(self.left):
            path = getattr(kept.event.fact, "firing", "")
            fact = None if path and path in passed else self._now(kept, performs)
            if fact is not None:
                del self.left[place]
                self.record(fact, at_ms=kept.event.at_ms)
                return True
            passed.add(path)  # what came later to that firing does not come before this
        return False

    def _now(self, kept: _Kept, performs: dict[str, Perform]) -> e.Fact | None:
        """The fact to record, if the run wants this now."""
        match fact := kept.event.fact:
            case (
                e.ModelAnswered() | e.CacheHit() | e.ToolAnswered() | e.EvidenceChecked() | e.NodeRetried()
                | e.NodeFailed()
            ):  # fmt: skip
                return self._answer(fact, kept.call, performs.get(fact.firing))
            case e.ApprovalVoted() | e.ApprovalDecided() | e.ApprovalExpired():
                gate = self.run.gates.get(fact.approval_id)
                wanted = gate is not None and gate.status == "pending" and self._asks_the_same(gate)
                return fact if wanted else None
            case e.TimerFired():
                return fact if fact.firing in {**self.run.pausing, **self.run.waits, **self.run.until} else None
            case e.SignalReceived():
                return self._message(fact)
            case e.GatePlaced():
                return fact
            case _:
                return None

    def _answer(
        self, fact: Heard | e.NodeRetried | e.NodeFailed, call: CallModel | CheckEvidence | None, wants: Perform | None
    ) -> e.Fact | None:
        failed = isinstance(fact, e.NodeRetried | e.NodeFailed)
        if wants is None or not (failed or isinstance(wants.effect, ANSWERED_BY[type(fact)])):
            return None
        effect = wants.effect
        asked = replace(effect, fresh=False) if isinstance(effect, CallModel) else effect
        of_it = isinstance(effect, CallModel) or (isinstance(effect, CheckEvidence) and not failed)
        if of_it and call not in (None, asked):
            return None
        if isinstance(fact, e.NodeRetried | e.NodeFailed):
            return follow_up(self.run, e.NodeFailed(fact.firing, fact.error, wants.attempt))
        return e.from_json({**e.to_json(fact), "attempt": wants.attempt})

    def _asks_the_same(self, gate: Gate) -> bool:
        """A decision belongs to its subject, and to the terms it was asked for on."""
        asked = self.asked[gate.approval_id]
        terms = (asked.allowed_decisions, asked.quorum, asked.channels, asked.self_approval)
        mine = (gate.allowed_decisions, gate.quorum, gate.channels, gate.self_approval)
        return terms == mine and asked.subject_digest == digest(gate.original if gate.edited else gate.subject)

    def _message(self, fact: e.SignalReceived) -> e.Fact | None:
        if fact.firing and fact.firing not in self.run.waits:
            return None
        try:
            return signals.deliver(
                self.replayed.graph, self.run, fact.name, fact.payload, by=fact.by, via=fact.via
            )  # fmt: skip
        except AgentGraphError:
            return None  # nobody waits for it in this graph

    def _by_the_clock(self) -> bool:
        """A pause or a timer of which the record knows nothing ends by itself: the clock needs nobody."""
        timers = [path for path, wait in self.run.waits.items() if not wait.name and not self._owns(path)]
        if ends := [*self.run.pausing, *timers]:
            self.record(e.TimerFired(ends[0]))
            return True
        for place, kept in enumerate(self.left):
            if isinstance(kept.event.fact, e.RunCancelRequested):
                self.record(self.left.pop(place).event.fact)
                return True
        return False

    def _owns(self, path: str) -> bool:
        """What it waits for is the end of the time of what runs inside it."""
        firing = self.run.firing(path)
        return firing is not None and firing.owned is not None

    def _unanswered(self, performs: dict[str, Perform]) -> Iterator[Unanswered]:
        """Who wants what the record does not hold, in order."""
        known = {getattr(kept.event.fact, "firing", "") for kept in self.left}
        for path in performs:
            said = "was given to another question" if path in known else "is not there"
            yield Unanswered(path, f"the recorded answer {said}")
        decided = {getattr(kept.event.fact, "approval_id", "") for kept in self.left}
        for gate in self.run.open_approvals:
            said = "was about another subject, or asked for on other terms"
            yield Unanswered(
                gate.firing, f"the recorded decision {said if gate.approval_id in decided else 'is not there'}"
            )
        for path, wait in self.run.waits.items():
            if wait.name:
                yield Unanswered(path, f"the message {wait.name!r} did not come in the record")
