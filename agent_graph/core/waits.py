"""Firings that wait for the clock or for a message: when the next moment is, and what a moment or a message does.

Beside the run's own time these end by the clock: a pause between two attempts (its run keeps its driver), a timer, the
time for a message, and that of what runs inside a node or in its branches; and gates are told of before their end. All
are moments in milliseconds UTC in the fold, so a machine that slept or a program that was away finds them over, late;
and a fact ends each, so none comes twice. The folds here are those of `core.folds`' table.
"""

from __future__ import annotations

from agent_graph.core import events as e
from agent_graph.core import spending
from agent_graph.core.effects import SignalAnswer, TimeAnswer
from agent_graph.core.firing import Firing
from agent_graph.core.graph import Graph
from agent_graph.core.run import Run, Wait


def due(run: Run, now_ms: int) -> tuple[e.Fact, ...]:
    """What the clock has ended by now: the run's own time, else the longest over first; nothing while the run stands
    aside or ends."""
    if refusal := spending.overdue(run, now_ms):
        return refusal
    if run.lifecycle != "running" or run.ending:
        return ()
    moments = [(at_ms, path) for path, at_ms in run.pausing.items()]
    moments += [(wait.due_ms, path) for path, wait in run.waits.items() if wait.due_ms is not None]
    moments += [(at_ms, path) for path, at_ms in run.until.items()]
    facts: list[e.Fact] = [e.TimerFired(path) for at_ms, path in sorted(moments) if at_ms <= now_ms]
    near = [run.gates[name] for name, at_ms in run.reminders.items() if at_ms <= now_ms]
    facts += [
        (e.ApprovalReminded if now_ms < gate.expires_at_ms else e.ApprovalExpired)(gate.firing, gate.approval_id)
        for gate in near
    ]
    return tuple(facts)


def next_due_ms(run: Run) -> int | None:
    """The next moment at which `due` has something, for whoever drives the run."""
    return min((*run.pausing.values(), *_moments(run)), default=None)


def wake_ms(run: Run) -> int | None:
    """When somebody must look at the run although nobody drives it; of gates it is their reminders, their end they
    tell themselves."""
    by_clock = run.waits or run.until or run.reminders or run.ledger is not None
    return min(_moments(run), default=None) if by_clock else None


def _moments(run: Run) -> list[int]:
    waiting = (wait.due_ms for wait in run.waits.values())
    found = (spending.deadline_ms(run), *waiting, *run.until.values(), *run.reminders.values())
    return [at_ms for at_ms in found if at_ms is not None]


# -- folds ---------------------------------------------------------------------------------------------------------


def timer_set(_graph: Graph, run: Run, event: e.Event, fact: e.TimerSet) -> None:
    firing = run.firing(fact.firing)
    if firing is not None:
        run.open.pop(firing.path, None)
        due_ms = event.at_ms + fact.delay_ms if fact.until_ms is None else fact.until_ms
        run.waits[firing.path] = Wait(due_ms)


def signal_awaited(_graph: Graph, run: Run, event: e.Event, fact: e.SignalAwaited) -> None:
    firing = run.firing(fact.firing)
    if firing is None:
        return
    run.open.pop(firing.path, None)
    kept = run.mail.get(fact.name) if fact.buffer else None
    run.waits[firing.path] = Wait(None if fact.expiry_ms is None else event.at_ms + fact.expiry_ms, fact.name)
    if kept:
        _answer(run, firing, SignalAnswer(kept.pop(0)))
        if not kept:
            del run.mail[fact.name]


def signal_received(_graph: Graph, run: Run, _event: e.Event, fact: e.SignalReceived) -> None:
    if not fact.firing:
        run.mail.setdefault(fact.name, []).append(fact.payload)
    elif (firing := run.firing(fact.firing)) is not None and firing.path in run.waits:
        _answer(run, firing, SignalAnswer(fact.payload))


def time_over(run: Run, firing: Firing) -> None:
    """The clock ends what the firing waits for, if it does."""
    if firing.path in run.waits:
        _answer(run, firing, TimeAnswer())


def _answer(run: Run, firing: Firing, answer: SignalAnswer | TimeAnswer) -> None:
    del run.waits[firing.path]
    firing.answers.append(answer)
    run.open[firing.path] = firing
