"""What may be asked of a run from outside: each command becomes facts, or is refused and changes nothing.

A command is handled by the run's runner between two commits, so that nothing races with it. What `answer`
makes is stored in the same transaction as the facts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from agent_graph.core import approval, barriers, signals, waits
from agent_graph.core import events as e
from agent_graph.core.frozen import dataclass
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.run import Run
from agent_graph.errors import RunTerminal
from agent_graph.store.base import Answered

Answer: TypeAlias = Callable[[Run], Answered | None]
"""Sees the fold right after the command's facts, and makes the idempotency record if there is to be one."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the run; a run that has ended is left as it is."""

    reason: str
    answer: Answer | None = None

    def facts(self, run: Run, now_ms: int) -> tuple[e.Fact, ...]:  # noqa: ARG002  (a cancel takes no time)
        if run.terminal or run.cancel_reason is not None:
            return ()
        return (e.RunCancelRequested(self.reason),)


@dataclass(frozen=True, slots=True)
class Decide:
    """Vote on a gate."""

    approval_id: str
    ballot: approval.Ballot
    answer: Answer | None = None

    def facts(self, run: Run, now_ms: int) -> tuple[e.Fact, ...]:
        return approval.vote(run, self.approval_id, self.ballot, now_ms=now_ms)


@dataclass(frozen=True, slots=True)
class Signal:
    """Bring a message to whoever waits for it; `graph` is the run's."""

    graph: Graph
    name: str
    payload: JsonValue
    by: str
    via: str
    told: Callable[[str], None]
    """Hears which firing had waited for it, "" when it is kept."""
    answer: Answer | None = None

    def facts(self, run: Run, now_ms: int) -> tuple[e.Fact, ...]:  # noqa: ARG002  (a message takes no time)
        fact = signals.deliver(self.graph, run, self.name, self.payload, by=self.by, via=self.via)
        self.told(fact.firing)
        return (fact,)


@dataclass(frozen=True, slots=True)
class PlaceGate:
    """Have firings of a node that have not begun ask a person first; `graph` is the run's."""

    graph: Graph
    node: str
    prompt: str
    expiry_ms: int
    audience: tuple[str, ...]
    decisions: tuple[str, ...]
    by: str
    via: str
    answer: Answer | None = None

    def facts(self, run: Run, now_ms: int) -> tuple[e.Fact, ...]:  # noqa: ARG002  (a gate takes no time)
        return (
            barriers.place(
                self.graph, run, self.node, prompt=self.prompt, expiry_ms=self.expiry_ms, audience=self.audience,
                decisions=self.decisions, by=self.by, via=self.via,
            ),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expire:
    """Record what the clock has ended: gates, timers and waits for a message."""

    answer: Answer | None = None

    def facts(self, run: Run, now_ms: int) -> tuple[e.Fact, ...]:
        over = approval.expired(run, now_ms)
        return (*over, *(fact for fact in waits.due(run, now_ms) if fact not in over))


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with an interrupted run; on a live one this changes nothing."""

    answer: Answer | None = None

    def facts(self, run: Run, now_ms: int) -> tuple[e.Fact, ...]:  # noqa: ARG002  (resuming takes no time)
        if run.terminal:
            raise RunTerminal(f"the run has {run.lifecycle}; what is consumed is consumed", status=run.lifecycle)
        return (e.RunResumed(),) if run.lifecycle == "interrupted" else ()


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop driving; the run goes on when it is resumed."""

    reason: str
    answer: Answer | None = None

    def facts(self, run: Run, now_ms: int) -> tuple[e.Fact, ...]:  # noqa: ARG002  (stopping takes no time)
        if run.lifecycle != "running" or run.status == "waiting":
            return ()  # one that was only accepted has nothing to interrupt, one that waits has nothing in flight
        if run.ending:
            return ()  # about to end, and nothing of that takes time
        return (e.RunInterrupted(self.reason),)


Command: TypeAlias = Cancel | Decide | Signal | PlaceGate | Expire | Resume | Interrupt
