"""Follows a recorded run through a graph, fact by fact, and says where the graph would have gone another way.

A log holds two kinds of facts: what came from outside (an answer, a decision, a moment) and what `decide` made of it.
The first are taken as they are, if the run wants them; the second must be what `decide` offers. So order, timing and
every recorded choice are obeyed, and nothing is guessed. Performs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Final

from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel, CheckEvidence
from agent_graph.core.failure import follow_up
from agent_graph.core.graph import Graph
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Perform, Record, decide, evolve, new_run
from agent_graph.core.step import call_of, check_of

ANSWERS: Final = (e.ModelAnswered, e.CacheHit, e.ToolAnswered, e.EvidenceChecked)
"""What comes of an effect that was performed."""
ABOUT_GATES: Final = (e.ApprovalVoted, e.ApprovalDecided, e.ApprovalReminded, e.ApprovalExpired)
ABOUT_RUNS: Final = (
    e.RunAccepted, e.RunForked, e.RunStarted, e.RunInterrupted, e.RunResumed, e.RunCancelRequested, e.GatePlaced,
)  # fmt: skip


@dataclass(slots=True)
class Follower:
    """A run of `graph` that is led along a log, an event at a time."""

    graph: Graph
    run: Run = field(default_factory=new_run)
    offered: list[e.Fact] = field(default_factory=list)
    """What `decide` wanted recorded when it was asked last, and the log has not told yet."""
    _performs: list[Perform] = field(default_factory=list)

    def take(self, event: e.Event) -> str:
        """Fold the event: "own" when the run makes that fact itself, "outside" when it takes it, "" when it does
        neither; then nothing was folded."""
        fact = event.fact
        kind = "outside" if isinstance(fact, (*ANSWERS, *ABOUT_GATES, *ABOUT_RUNS)) else "own"
        if kind == "own" and not self._offers(fact):
            kind = "outside"
        if kind == "own":
            self.offered.remove(fact)
        elif not self.takes(fact):
            return ""
        else:
            self._let_go()
            self.offered.clear()
        evolve(self.graph, self.run, event)
        if not self.offered:
            self._let_go()
        return kind

    def leftover(self) -> list[e.Fact]:
        """What the run would record now that the log has not."""
        if not self.offered:
            self._ask()
        return list(self.offered)

    def _offers(self, fact: e.Fact) -> bool:
        if fact not in self.offered:
            self._ask()
        return fact in self.offered

    def _ask(self) -> None:
        self._let_go()
        actions = decide(self.graph, self.run)
        self.offered = [action.fact for action in actions if isinstance(action, Record)]
        self._performs = [action for action in actions if isinstance(action, Perform)]
        if not self.offered:
            self._let_go()

    def _let_go(self) -> None:
        """The effects are performed as soon as the facts beside them are recorded: by whoever drove the run."""
        for path in [perform.firing for perform in self._performs if perform.firing in self.run.open]:
            self.run.hand_over(path)
        self._performs.clear()

    def takes(self, fact: e.Fact) -> bool:
        """Whether the run, as it stands, can hear this from outside."""
        run = self.run
        match fact:
            case e.ModelAnswered() | e.CacheHit() | e.ToolAnswered() | e.EvidenceChecked():
                firing = run.firing(fact.firing)
                if firing is None or firing.attempt != fact.attempt:
                    return False
                if isinstance(fact, e.ToolAnswered) or firing.calling is not None:
                    return isinstance(fact, e.ToolAnswered) and firing.calling is not None
                asks = check_of if isinstance(fact, e.EvidenceChecked) else call_of
                return asks(run, firing) is not None
            case e.NodeRetried() | e.NodeFailed():
                firing = run.firing(fact.firing)
                if firing is None or firing.attempt != fact.attempt:
                    return False
                return _timeless(follow_up(run, e.NodeFailed(fact.firing, fact.error, fact.attempt))) == _timeless(fact)
            case e.ApprovalVoted() | e.ApprovalDecided() | e.ApprovalReminded() | e.ApprovalExpired():
                gate = run.gates.get(fact.approval_id)
                return gate is not None and gate.status == "pending"
            case e.TimerFired():
                return fact.firing in {**run.pausing, **run.waits, **run.until}
            case e.SignalReceived():
                return not fact.firing or fact.firing in run.waits
            case e.BudgetRefused():
                return not fact.firing  # the clock has ended the run's time
            case _:
                return isinstance(fact, ABOUT_RUNS)


def _timeless(fact: e.Fact) -> e.Fact:
    """How long a pause is, is drawn from the id of the run; the events of a fork were its origin's."""
    return replace(fact, delay_ms=0) if isinstance(fact, e.NodeRetried) else fact


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a graph goes another way than the log: `recorded` is what the log has there, `instead` what the run would
    record, None for nothing. `seq` is the log's."""

    seq: int
    recorded: e.Fact | None
    instead: e.Fact | None

    @property
    def firing(self) -> str:
        """The firing it is about, "" where it is the run."""
        facts = (self.instead, self.recorded)
        return next((path for path in (getattr(fact, "firing", "") for fact in facts) if path), "")


@dataclass(slots=True)
class Followed:
    """How far a log could be followed."""

    follower: Follower
    outside: list[int] = field(default_factory=list)
    """The places in the log of what came from outside."""
    late: dict[int, list[e.Fact]] = field(default_factory=dict)
    """By such a place: what the run would have recorded before, and recorded later or never."""
    calls: dict[int, tuple[str, CallModel | CheckEvidence]] = field(default_factory=dict)
    """By the place of a model's answer, or of what it cites compared with the sources: which firing asked, and what."""
    divergence: Divergence | None = None


def follow(graph: Graph, log: Sequence[e.Event], *, like: Followed | None = None) -> Followed:
    """Lead a run of `graph` along `log`, to its end or to where it goes another way.

    With `like`, how the log was followed through its own graph, the run also diverges where it would record what that
    did not.
    """
    done = Followed(Follower(graph))
    follower = done.follower
    for place, event in enumerate(log):
        fact = event.fact
        if isinstance(fact, (*ANSWERS, *ABOUT_GATES)):
            late = follower.leftover()
            if like is not None and late != like.late.get(place, []):
                more = [one for one in late if one not in like.late.get(place, [])]
                done.divergence = Divergence(event.seq, fact, more[0] if more else None)
                return done
            if late:
                done.late[place] = late
            if isinstance(fact, e.ModelAnswered | e.CacheHit | e.EvidenceChecked):
                _note_call(done, place, fact)
        kind = follower.take(event)
        if not kind:
            done.divergence = Divergence(event.seq, fact, _instead(follower, fact))
            return done
        if kind == "outside":
            done.outside.append(place)
    if follower.run.terminal:
        return done
    more = [] if like is None else [one for one in follower.leftover() if one not in like.follower.leftover()]
    if more:
        done.divergence = Divergence(len(log), None, more[0])
    return done


def _note_call(done: Followed, place: int, fact: e.ModelAnswered | e.CacheHit | e.EvidenceChecked) -> None:
    run = done.follower.run
    firing = run.firing(fact.firing)
    find = check_of if isinstance(fact, e.EvidenceChecked) else call_of
    asked = None if firing is None else find(run, firing)
    if firing is not None and asked is not None:
        named = replace(asked, model=firing.model or asked.model) if isinstance(asked, CallModel) else asked
        done.calls[place] = fact.firing, named


def _instead(follower: Follower, fact: e.Fact) -> e.Fact | None:
    """What the run would record in place of `fact`: about the same firing, if anything, and of the same kind."""
    offered = follower.leftover()
    path: Any = getattr(fact, "firing", None)
    same = [one for one in offered if getattr(one, "firing", None) == path]
    alike = [one for one in same if one.type == fact.type]
    return next(iter((*alike, *same, *offered)), None)


def asked_otherwise(recorded: Followed, replayed: Followed) -> list[str]:
    """The firings whose recorded answers were given to other questions than this graph asks; paths, in order."""
    told = (path for place, (path, call) in replayed.calls.items() if recorded.calls.get(place) != (path, call))
    return list(dict.fromkeys(told))
