"""An answer taken from another run: folded like one that was paid for, counted apart, and a recorded choice."""

from __future__ import annotations

from agent_graph.core import checkpoint
from agent_graph.core.effects import CallModel
from agent_graph.core.events import CacheHit, NodeRetried, NodeStarted, RunAccepted, RunStarted, TimerFired
from agent_graph.core.record import canonical_record
from agent_graph.core.run import Usage
from tests.core.played import Played, compiled, folded, llm, play

GRAPH = compiled([llm("b", cache=True), llm("a", cache=True)], "b>a a>END")


def hit(run: Played, firing: str, text: str = "fine") -> Played:
    call = run.calls.pop(firing)
    return run.go(CacheHit(firing, {"text": text, "prompt_tokens": 9}, "sha256:0", "run-0", call.attempt))


def call_of(run: Played, firing: str) -> CallModel:
    effect = run.calls[firing].effect
    assert isinstance(effect, CallModel)
    return effect


def test_a_hit_goes_on_like_an_answer_and_is_no_call() -> None:
    run = hit(hit(play(GRAPH), "b#1"), "a#1", "done")
    assert run.run.status == "completed"
    assert run.run.usage == Usage(nodes=2, cache_hits=2)
    assert canonical_record(GRAPH, run.log)["choices"] == [
        {"type": "cache_hit", "firing": "a#1"}, {"type": "cache_hit", "firing": "b#1"},
    ]  # fmt: skip
    assert folded(GRAPH, run.log).usage == run.run.usage


def test_a_hit_that_comes_late_changes_nothing_but_the_count() -> None:
    run = play(GRAPH)
    run.feed(CacheHit("b#1", {"text": "x"}, "sha256:0", "run-0", attempt=9))
    assert list(run.calls) == ["b#1"]
    assert run.run.usage.cache_hits == 1


def test_an_attempt_after_a_failed_one_and_a_fallback_are_asked_afresh() -> None:
    run = play(GRAPH)
    assert (call_of(run, "b#1").cache, call_of(run, "b#1").fresh) == (True, False)
    error = {"code": "X", "message": "x", "class": "timeout"}
    run.calls.clear()
    run.go(NodeRetried("b#1", error, 5), TimerFired("b#1"))
    assert call_of(run, "b#1").fresh
    run.calls.clear()
    run.go(NodeRetried("b#1", error, 5, attempt=2, model="other"), TimerFired("b#1"))
    assert (call_of(run, "b#1").fresh, call_of(run, "b#1").model) == (True, "other")
    assert len(run.facts(NodeStarted)) == 3


def test_a_call_made_again_after_a_crash_is_not_asked_afresh() -> None:
    run = play(GRAPH).resume()
    assert not call_of(run, "b#1").fresh


def test_who_started_a_run_is_in_its_snapshot() -> None:
    accepted = RunAccepted("run-1", "g", GRAPH.version, "hi", started_by="desk", principal="ann")
    run = Played(GRAPH).feed(accepted).go(RunStarted())
    loaded = checkpoint.load(GRAPH, checkpoint.dump(run.run))
    assert (loaded.started_by, loaded.principal) == ("desk", "ann")
