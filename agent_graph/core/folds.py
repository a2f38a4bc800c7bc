"""One function per fact: what it changes in a run. Facts about what is no longer there change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from agent_graph.core import (
    barriers,
    budget_folds,
    budgets,
    early,
    forks,
    gate_folds,
    lost_branches,
    mutexes,
    tool_facts,
    waits,
)
from agent_graph.core import events as e
from agent_graph.core.effects import MISSING, Done, ModelAnswer, Write, answer_from_json
from agent_graph.core.frame_tree import fail, forget, open_frames, put_up_with, settle, spread, time_over
from agent_graph.core.frames import Frame
from agent_graph.core.graph import END, Graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import of_record
from agent_graph.core.outcome import to_done
from agent_graph.core.places import admit, enter, give, remove
from agent_graph.core.run import Run
from agent_graph.core.weights import most_held

Told: TypeAlias = e.WriteConflict | e.Warned | e.LoopExhausted | e.RouteTaken | e.ItemsClosed | e.JoinClosed


def _accepted(graph: Graph, run: Run, event: e.Event, fact: e.RunAccepted) -> None:
    run.run_id, run.graph_version, run.input = fact.run_id, fact.graph_version, fact.input
    run.thread_id, run.model, run.limits = fact.thread_id, fact.model, of_record(fact.limits)
    run.started_by, run.principal = fact.started_by, fact.principal
    run.started_as = fact.started_as
    run.lifecycle, run.accepted_at_ms = "accepted", event.at_ms
    run.ledger = budgets.ledger(fact.budgets or graph.budgets, policy=fact.policy)
    frame = run.frames[""] = Frame(graph, run_input=fact.input)
    frame.state.base_current = fact.input
    start = spread(graph, fact.input)
    frame.state.base.update(start)
    frame.state.tally.base = most_held(start)


def _started(graph: Graph, run: Run, event: e.Event, fact: e.RunStarted) -> None:
    run.lifecycle, run.started_at_ms = "running", event.at_ms
    budget_folds.started(run, event.at_ms)
    frame = run.frames[""]
    frame.enter()
    admit(run, frame)


def _interrupted(graph: Graph, run: Run, event: e.Event, fact: e.RunInterrupted) -> None:
    run.lifecycle = "interrupted"
    run.error = fact.error or {"code": "INTERRUPTED", "message": fact.reason}
    if fact.error.get("class") == "unreachable":
        _begin_anew(run)


def _begin_anew(run: Run) -> None:
    """The host was away, so what failed says nothing of it: whoever resumes the run gives every call all attempts."""
    for firing in run.running:
        firing.model, firing.tries = "", 0
    run.pausing = dict.fromkeys(run.pausing, 0)


def _resumed(graph: Graph, run: Run, event: e.Event, fact: e.RunResumed) -> None:
    run.lifecycle, run.error = "running", None
    run.open = {**run.out, **run.open}
    run.out = {}
    for firing in run.open.values():
        # A call that is wanted still is made again as a new attempt; one that was answered only needs its step.
        firing.restart = firing.attempt > 0


def _cancel_requested(graph: Graph, run: Run, event: e.Event, fact: e.RunCancelRequested) -> None:
    run.cancel_reason = fact.reason


def _ended(lifecycle: str) -> Callable[..., None]:
    def fold(graph: Graph, run: Run, event: e.Event, fact: Any) -> None:
        run.lifecycle, run.finished_at_ms = lifecycle, event.at_ms
        run.open, run.out = {}, {}
        run.queue.clear()
        run.pausing.clear()
        run.waits.clear()
        run.until.clear()
        run.reminders.clear()
        run.mutexes.clear()
        if isinstance(fact, e.RunFailed):
            run.error = fact.error
        elif isinstance(fact, e.RunCancelled):
            run.error = {"code": "CANCELLED", "message": fact.reason}

    return fold


def _node_started(graph: Graph, run: Run, event: e.Event, fact: e.NodeStarted) -> None:
    firing = run.firing(fact.firing)
    if firing is not None:
        firing.attempt, firing.restart, firing.conflicts = fact.attempt, False, ()
        if run.ledger is not None:
            run.ledger.entered.discard(firing.path)


def _told(graph: Graph, run: Run, event: e.Event, fact: Told) -> None:
    if fact in run.met:
        run.met.remove(fact)
    elif fact.firing == END or run.firing(fact.firing) is not None:
        run.told.setdefault(fact.firing, []).append(fact)


def _model_answered(graph: Graph, run: Run, event: e.Event, fact: e.ModelAnswered) -> None:
    answer = answer_from_json(fact.answer)
    usage = run.usage
    usage.llm_calls += 1
    usage.prompt_tokens += answer.prompt_tokens or 0
    usage.completion_tokens += answer.completion_tokens or 0
    usage.unreported += answer.prompt_tokens is None or answer.completion_tokens is None
    _take_answer(run, fact, answer)


def _cache_hit(graph: Graph, run: Run, event: e.Event, fact: e.CacheHit) -> None:
    run.usage.cache_hits += 1  # and nothing else: it was paid for by another run
    _take_answer(run, fact, answer_from_json(fact.answer))


def _take_answer(run: Run, fact: e.ModelAnswered | e.CacheHit, answer: ModelAnswer) -> None:
    firing = run.firing(fact.firing)
    if firing is not None and firing.attempt == fact.attempt and not (firing.lost or firing.path in run.pausing):
        budget_folds.heard(run, firing, None if isinstance(fact, e.CacheHit) else answer)
        firing.answers.append(answer)
        run.hear(firing)


def _node_finished(graph: Graph, run: Run, event: e.Event, fact: e.NodeFinished) -> None:
    firing = run.firing(fact.firing)
    if firing is not None:
        run.usage.nodes += 1
        if run.partly or firing.owned is not None:
            put_up_with(run, firing)
        remove(run, firing)
        if run.mutexes:
            mutexes.release(run, firing)
        frame, done = firing.frame, to_done(fact)
        if frame.failed(firing.node, firing.past) is not MISSING:  # an earlier round failed, and this one has not
            done = replace(done, writes=(*done.writes, Write("delete", ("errors", firing.declared.id))))
        frame.finish(firing, done)
        if frame.graph.extents:
            lost_branches.begin(run, firing, event.at_ms)
        admit(run, frame)
        if frame.owner is not None or frame.part is not None:
            settle(run, frame)


def _node_failed(graph: Graph, run: Run, event: e.Event, fact: e.NodeFailed) -> None:
    firing = run.firing(fact.firing)
    if firing is None or firing.lost or firing.attempt != fact.attempt:
        return
    budget_folds.failed(run, firing, fact.error)
    remove(run, firing)
    mutexes.release(run, firing)
    node_id = firing.declared.id
    if fact.targets is not None:
        mark = Write("set", ("errors", node_id), {name: fact.error[name] for name in ("code", "message")})
        firing.frame.finish(firing, Done((mark,), targets=fact.targets), failed=True)
        lost_branches.begin(run, firing, event.at_ms)
        admit(run, firing.frame)
        settle(run, firing.frame)
        return
    # Of an owner it is the failure inside, which says itself where it was.
    own: JsonObject = {"node_id": node_id, "node_path": firing.path, "attempts": fact.attempt}
    error: JsonObject = {**fact.error, **({} if "node_path" in fact.error else own)}
    if lost_branches.lose(run, firing, error):
        admit(run, firing.frame)
        return
    firing.frame.drop(firing)
    frame = early.reached(firing)
    admit(run, firing.frame)
    if frame is None:
        settle(run, firing.frame)
        return
    fail(run, frame, error)
    settle(run, firing.frame)


def _node_retried(graph: Graph, run: Run, event: e.Event, fact: e.NodeRetried) -> None:
    """A failed attempt leaves nothing behind but what tools did: no answers, no place. Its firing pauses."""
    firing = run.firing(fact.firing)
    if firing is None or firing.attempt != fact.attempt or firing.path in run.pausing:
        return
    budget_folds.failed(run, firing, fact.error)
    remove(run, firing)
    firing.answers = tool_facts.kept(firing.answers)
    firing.restart, firing.calling, firing.unsure = True, None, False
    firing.tries = firing.tries + 1 if firing.model == fact.model else 0
    firing.model = fact.model
    run.pausing[firing.path] = event.at_ms + fact.delay_ms
    admit(run, firing.frame)


def _timer_fired(graph: Graph, run: Run, event: e.Event, fact: e.TimerFired) -> None:
    if fact.firing in run.until:
        lost_branches.time_over(run, fact.firing)
        return
    firing = run.firing(fact.firing)
    if firing is not None and run.pausing.pop(firing.path, None) is not None:
        run.queue[firing.path] = firing
        run.queue.move_to_end(firing.path, last=False)  # it has waited
        admit(run, firing.frame)
    elif firing is not None and firing.owned is not None:
        if firing.path in run.waits:
            time_over(run, firing, firing.owned)
    elif firing is not None:
        waits.time_over(run, firing)


def _mutex_granted(graph: Graph, run: Run, event: e.Event, fact: e.MutexGranted) -> None:
    firing = run.firing(fact.firing)
    if firing is not None and mutexes.hold(run, fact.name, fact.firing):
        enter(run, firing)
        give(run)


def _frames_opened(graph: Graph, run: Run, event: e.Event, fact: e.FramesOpened) -> None:
    firing = run.firing(fact.firing)
    if firing is not None and firing.owned is None:
        open_frames(run, firing, at_ms=event.at_ms)


def _frame_failed(graph: Graph, run: Run, event: e.Event, fact: e.FrameFailed) -> None:
    frame = run.frames.get(fact.frame)
    if frame is not None:
        fail(run, frame, fact.error)
        frame.failing = True
        settle(run, frame)


def _firing_cancelled(graph: Graph, run: Run, event: e.Event, fact: e.FiringCancelled) -> None:
    budget_folds.told(run, fact)
    firing = run.firing(fact.firing)
    if firing is not None:
        budget_folds.failed(run, firing, {})
        remove(run, firing)
        forget(run, firing)
        mutexes.release(run, firing)
        if not lost_branches.cancelled(run, firing):
            firing.frame.drop(firing)
        admit(run, firing.frame)
        settle(run, firing.frame)


FOLDS: Final[dict[type[e.Fact], Callable[[Graph, Run, e.Event, Any], None]]] = {
    e.RunAccepted: _accepted,
    e.RunStarted: _started,
    e.RunInterrupted: _interrupted,
    e.RunResumed: _resumed,
    e.RunCancelRequested: _cancel_requested,
    e.RunCompleted: _ended("completed"),
    e.RunFailed: _ended("failed"),
    e.RunCancelled: _ended("cancelled"),
    e.NodeStarted: _node_started,
    e.ModelAnswered: _model_answered,
    e.CacheHit: _cache_hit,
    e.AnswerGiven: forks.given,
    e.RunForked: forks.forked,
    e.ToolCalled: tool_facts.fold_called,
    e.ToolAnswered: tool_facts.fold_answered,
    e.EvidenceChecked: tool_facts.fold_checked,
    e.NodeFinished: _node_finished,
    e.NodeFailed: _node_failed,
    e.NodeRetried: _node_retried,
    e.MutexGranted: _mutex_granted,
    e.TimerSet: waits.timer_set,
    e.TimerFired: _timer_fired,
    e.FramesOpened: _frames_opened,
    e.SignalAwaited: waits.signal_awaited,
    e.SignalReceived: waits.signal_received,
    e.BranchFailed: lost_branches.ended,
    e.FrameFailed: _frame_failed,
    e.WriteConflict: _told,
    e.Warned: _told,
    e.LoopExhausted: _told,
    e.RouteTaken: _told,
    e.JoinClosed: _told,
    e.ItemsClosed: _told,
    e.FiringCancelled: _firing_cancelled,
    e.GatePlaced: barriers.placed,
    e.ApprovalOpened: gate_folds.opened,
    e.ApprovalVoted: gate_folds.voted,
    e.ApprovalReminded: gate_folds.reminded,
    e.ApprovalDecided: gate_folds.decided,
    e.ApprovalExpired: gate_folds.expired,
    e.ApprovalWithdrawn: gate_folds.withdrawn,
    e.BudgetGranted: budget_folds.granted,
    e.BudgetSettled: budget_folds.settled,
    e.BudgetRefused: budget_folds.refused,
}
"""What `_told` folds tells people; nothing depends on it."""
