"""The scheduler: two pure functions over a run; no I/O, clock, entropy, log or async in either.

::

                        ┌────────────── decide(graph, run) ──────────────┐
      fold of the log   │  what may happen now that the log has not yet  │   Record: the driver commits the fact
    ────────────────────┤  started: facts to record, effects to perform  ├──────────────────────────────────────▶
                        └────────────────────────────────────────────────┘   Perform: the driver calls a model
      evolve(graph, run, event): fold one fact, enable what it enables

    enabled ─node_started─▶ stepping ─(effect)─▶ out ─model_answered─▶ stepping ─node_finished─▶ tokens on edges
                               │  ├─approval_opened─▶ pending ─approval_decided─▶ stepping
                               │  └─node_retried─▶ pausing ─timer_fired─▶ stepping, as the next attempt
                               └──node_failed─▶ tokens where on_error leads; else frame_failed, firing_cancelled…,
                                                run_failed

Engine.md 1 and 5. `decide` never raises: what a step raises is a fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_graph.core import early, forks, lost_branches, mutexes, spending
from agent_graph.core import events as e
from agent_graph.core.firing import Firing
from agent_graph.core.folds import FOLDS
from agent_graph.core.frame_tree import is_doomed, why_it_ends
from agent_graph.core.frames import Frame
from agent_graph.core.graph import END, END_RUN, Graph
from agent_graph.core.outcome import came_to
from agent_graph.core.run import OF_THE_RUN, Run
from agent_graph.core.step import Action, Perform, Record, step, untold

COUNTED: Final = (e.BudgetGranted, e.BudgetRefused)

__all__ = ["Action", "Perform", "Record", "calls_unheard_of", "decide", "evolve", "new_run"]


def new_run() -> Run:
    """A run nothing has happened to."""
    return Run()


# -- decide --------------------------------------------------------------------------------------------------------


def decide(graph: Graph, run: Run) -> tuple[Action, ...]:
    """What may happen now and the log has not started yet; empty when only answers are waited for, or all is over."""
    frame = run.frame
    if frame is None or run.terminal:
        return ()
    ledger = run.ledger
    if ledger is not None and (facts := spending.outstanding(ledger)):
        return tuple(map(Record, facts))
    if run.cancel_reason is not None:
        return tuple(_stop(run, "cancelled", e.RunCancelled(run.cancel_reason)))
    if run.lifecycle != "running":
        return ()
    if frame.failure is not None:
        failed = () if frame.failing else (Record(e.FrameFailed(frame.failure)),)
        return (*failed, *_stop(run, "failed", e.RunFailed(frame.failure)))
    if frame.terminating:
        return (*map(Record, run.met), *_cancel(run.running, run, "the run was ended"), *_end(run, frame))
    if run.fork is not None and run.fork.asks:
        return tuple(map(Record, forks.asking(run, run.fork)))
    if run.parts and (lost := _lost(run)):
        return lost
    if (run.met or run.closing or run.losing) and (first := (*map(Record, run.met), *_closing(run), *_losing(run))):
        return first
    if ledger is not None:
        question = spending.asking(run, ledger)
        if question is not None or ledger.stands_still:
            return () if question is None else (Record(question),)
    return tuple(_steps(run) or (_standing_still(run) if frame.busy else _end(run, frame)))


def _standing_still(run: Run) -> Iterator[Record]:
    """No firing wants anything: answers, people or the clock are waited for, or else they wait for each other."""
    yield from map(Record, mutexes.broken(run) if run.deadlocked else ())


def _steps(run: Run) -> list[Action]:
    """What the open firings want. What one is granted or refused counts for the next: that one is asked later."""
    actions: list[Action] = [*map(Record, mutexes.grants(run))] if run.mutexes else []
    for firing in run.open.values():
        mine = step(run, firing)
        actions += mine
        if run.ledger is not None and any(isinstance(one, Record) and isinstance(one.fact, COUNTED) for one in mine):
            break
        if actions and isinstance(actions[-1], Record) and _ends_frame(firing, actions[-1].fact):
            break  # start nothing else
    return actions


def _ends_frame(firing: Firing, last: e.Fact) -> bool:
    """Whether a frame is about to fail, or a token to end the run."""
    if not isinstance(last, e.ENDS):
        return False
    if firing.frame.part is not None:
        return True  # it may have closed a region
    if last.targets is not None:
        return END_RUN in last.targets
    return isinstance(last, e.NodeFailed) or firing.frame.graph.topology.ends_run_behind(firing.node)


def _lost(run: Run) -> tuple[Record, ...]:
    """End what runs in regions whose join has fired without it."""
    found: dict[str, Firing] = {}
    for frame in run.parts.values():
        if early.ended(frame):
            found |= {firing.path: firing for firing in run.running if early.is_lost(firing, frame)}
    return tuple(_cancel(found.values(), run, "the others were enough"))


def _stop(run: Run, why: str, last: e.Fact) -> Iterator[Record]:
    """End everything that is active, then the run."""
    reason = f"the run was {why}" if why == "cancelled" else "the run failed"
    yield from _cancel(run.running, run, reason)
    asked = (gate for gate in run.open_approvals if gate.firing in OF_THE_RUN)
    yield from (Record(e.ApprovalWithdrawn(gate.firing, gate.approval_id, reason)) for gate in asked)
    yield from map(Record, untold(run, END, forks.unused(run)))
    yield Record(last)


def _closing(run: Run) -> Iterator[Record]:
    """End the frames that fail or that nobody waits for, with all that is in them."""
    for path in run.closing:
        frame = run.frames[path]
        if is_doomed(run, frame):
            continue  # a frame around it ends as well
        if frame.failure is not None and not frame.failing:
            yield Record(e.FrameFailed(frame.failure, path))
        inner = (firing for firing in run.running if firing.frame.path.startswith(path))
        yield from _cancel(inner, run, why_it_ends(frame))


def _losing(run: Run) -> Iterator[Record]:
    """End the static branches whose failure is put up with, with all that is in them."""
    for path in run.losing:
        frame = run.frames[path]
        if path in run.closing or is_doomed(run, frame):
            continue  # more than the branch ends
        for running, fact in lost_branches.to_end(frame):
            below = tuple(f"{one.path}{sign}" for one in running if one.owned is not None for sign in "/[")
            inner = [firing for firing in run.running if below and firing.path.startswith(below)]
            yield from _cancel((*running, *inner), run, "the branch failed")
            yield Record(fact)


def _cancel(firings: Iterable[Firing], run: Run, reason: str) -> Iterator[Record]:
    """End firings, those of inner frames before their owners."""
    for firing in sorted(firings, key=lambda f: (-f.path.count("/"), f.frame.path, f.depth, f.node, f.nth)):
        if firing.approval_id and run.gates[firing.approval_id].status == "pending":
            yield Record(e.ApprovalWithdrawn(firing.path, firing.approval_id, reason))
        yield Record(e.FiringCancelled(firing.path, reason))
        yield from map(Record, spending.cut_off(run.ledger, firing))


def _end(run: Run, frame: Frame) -> Iterator[Record]:
    """Nothing is active: the run is completed if its result was written."""
    conflicts = [e.WriteConflict(END, c.key, c.winner, c.losers) for c in frame.end_conflicts()]
    yield from (Record(fact) for fact in untold(run, END, [*conflicts, *forks.unused(run)]))
    came = came_to(frame, limits=run.limits)
    yield Record(e.RunFailed(came) if isinstance(came, dict) else e.RunCompleted())


def calls_unheard_of(run: Run) -> bool:
    """Whether a call is wanted that the log says was made: whoever made it has not told of an answer."""
    if run.lifecycle != "running" or run.ending or run.stands_still:
        return False
    return any(_was_made(firing, step(run, firing)) for firing in run.open.values())


def _was_made(firing: Firing, actions: Sequence[Action]) -> bool:
    """A call that is granted only now was not made before."""
    if any(isinstance(one, Record) and isinstance(one.fact, COUNTED) for one in actions):
        return False
    return any(isinstance(one, Perform) and one.attempt == firing.attempt for one in actions)


# -- evolve --------------------------------------------------------------------------------------------------------


def evolve(graph: Graph, run: Run, event: e.Event) -> Run:
    """Fold one fact into `run` (in place) and return it; facts about what is no longer there change nothing."""
    FOLDS[type(event.fact)](graph, run, event, event.fact)
    run.seq = event.seq + 1
    run.at_ms = max(run.at_ms, event.at_ms)
    return run
