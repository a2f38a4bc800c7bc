"""Tool calls in the log: recorded before they are made, never made twice, and unsure after a crash."""

from __future__ import annotations

from random import Random

import pytest

from agent_graph.core import checkpoint
from agent_graph.core.effects import CallModel, CallTool, ToolAnswer
from agent_graph.core.events import (
    Event,
    ModelAnswered,
    NodeFailed,
    NodeRetried,
    NodeStarted,
    RunCancelRequested,
    RunInterrupted,
    RunResumed,
    TimerFired,
    ToolAnswered,
    ToolCalled,
)
from agent_graph.core.record import canonical_record
from agent_graph.core.scheduler import decide
from tests.core.played import Played, compiled, folded, llm, play

OSLO = {"id": "t1", "name": "forecast", "arguments": {"city": "Oslo"}}
GRAPH = compiled([llm("a", tools=["weather/forecast"])], "a>END")


def calling() -> Played:
    """A run whose model wants the weather of Oslo."""
    return play(GRAPH).answer("a#1", "", tool_calls=(OSLO,))


def rain(run: Played, **more: object) -> Played:
    call = run.calls.pop("a#1")
    return run.go(ToolAnswered("a#1", "t1", "rain", attempt=call.attempt, **more))  # type: ignore[arg-type]


def test_a_call_is_recorded_before_it_is_performed() -> None:
    run = calling()
    assert run.told[-2:] == ["model_answered", "tool_called"]
    assert run.facts(ToolCalled) == [
        ToolCalled("a#1", "t1", "forecast", {"city": "Oslo"}, "weather", "forecast")
    ]  # fmt: skip
    effect = run.calls["a#1"].effect
    assert isinstance(effect, CallTool)
    assert not effect.unsure


def test_a_result_is_recorded_and_the_model_asked_again() -> None:
    run = rain(calling())
    assert isinstance(run.calls["a#1"].effect, CallModel)
    run.answer("a#1", "Take an umbrella.")
    assert run.run.status == "completed"
    assert run.run.usage.llm_calls == 2
    assert len(run.facts(NodeStarted)) == 1


def test_after_a_crash_a_call_under_way_is_unsure_and_a_new_attempt() -> None:
    run = calling()
    again = Played(GRAPH, folded(GRAPH, run.log), list(run.log))
    again.go(RunInterrupted("gone"), RunResumed())
    effect = again.calls["a#1"].effect
    assert isinstance(effect, CallTool)
    assert effect.unsure
    assert again.told[-2:] == ["node_started", "tool_called"]
    assert [fact.attempt for fact in again.facts(ToolCalled)] == [1, 2]
    rain(again).answer("a#1", "fine")
    assert again.run.status == "completed"


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_wherever_the_log_ends_after_a_resumption_the_call_stays_unsure(cut: int) -> None:
    run = calling().resume()
    log = run.log[: len(run.log) - cut]  # without the new attempt's start and call, or with
    again = Played(GRAPH, folded(GRAPH, log), list(log)).go(RunInterrupted("gone"), RunResumed())
    effect = again.calls["a#1"].effect
    assert isinstance(effect, CallTool)
    assert effect.unsure


def test_a_call_that_was_answered_is_not_made_again_after_a_crash() -> None:
    run = rain(calling())
    again = Played(GRAPH, folded(GRAPH, run.log), list(run.log)).go(RunInterrupted("gone"), RunResumed())
    assert isinstance(again.calls["a#1"].effect, CallModel)
    assert len(again.facts(ToolCalled)) == 1


def test_asked_after_every_single_fact_a_call_is_recorded_once() -> None:
    run = calling()
    log = run.log[:-1]
    single = Played(GRAPH, folded(GRAPH, log), list(log))
    (recorded, performed) = decide(GRAPH, single.run)
    single.feed(recorded.fact)  # type: ignore[union-attr]  # a Record
    assert decide(GRAPH, single.run) == (performed,)


def test_a_failed_attempt_keeps_what_tools_did_and_asks_the_model_from_there() -> None:
    run = rain(calling())
    run.calls.pop("a#1")
    error = {"code": "MODEL_OVERLOADED", "message": "busy", "class": "overloaded"}
    run.go(NodeRetried("a#1", error, 5), TimerFired("a#1"))
    perform = run.calls["a#1"]
    assert perform.attempt == 2
    assert isinstance(perform.effect, CallModel)
    assert [message["role"] for message in perform.effect.messages] == ["user", "assistant", "tool"]
    run.answer("a#1", "fine")
    assert run.run.status == "completed"
    assert len(run.facts(ToolCalled)) == 1


def test_a_failed_attempt_without_results_starts_from_the_beginning() -> None:
    run = calling()
    run.calls.pop("a#1")
    run.go(NodeRetried("a#1", {"code": "X", "message": "x", "class": "timeout"}, 5), TimerFired("a#1"))
    assert isinstance(run.calls["a#1"].effect, CallModel)
    assert len(run.calls["a#1"].effect.messages) == 1


def test_a_result_that_comes_late_changes_nothing() -> None:
    run = calling()
    before = checkpoint.dump(run.run)
    run.feed(
        ToolAnswered("a#1", "t1", "rain", attempt=9),
        ToolAnswered("gone#1", "t1", "x"),
        ToolCalled("gone#1", "t", "n", {}),
    )
    run.run.seq -= 3
    assert checkpoint.dump(run.run) == before
    run.run.seq += 3
    error = {"code": "X", "message": "x", "class": "timeout"}
    run.feed(NodeRetried("a#1", error, 5), ToolAnswered("a#1", "t1", "rain"))
    assert run.run.pausing


def test_a_snapshot_holds_calls_and_results() -> None:
    run = rain(calling()).answer("a#1", "", tool_calls=({**OSLO, "id": "t2"},))
    again = checkpoint.load(GRAPH, checkpoint.dump(run.run))
    (firing,) = again.running
    assert firing.calling == ("t2", 1)
    assert firing.answers[1] == ToolAnswer("t1", "rain")
    assert checkpoint.dump(again) == checkpoint.dump(run.run)


def test_cancelling_ends_a_call_and_failing_it_fails_the_node() -> None:
    run = calling().go(RunCancelRequested("enough"))
    assert run.run.status == "cancelled"
    failed = calling()
    failed.go(NodeFailed("a#1", {"code": "TOOL_OUTCOME_UNKNOWN", "message": "m", "class": "refused"}))
    assert failed.run.status == "failed"
    assert failed.run.error is not None
    assert failed.run.error["code"] == "TOOL_OUTCOME_UNKNOWN"


def test_the_record_of_a_run_does_not_tell_how_often_its_tools_were_tried() -> None:
    whole = rain(calling()).answer("a#1", "fine")
    crashed = rain(calling().resume()).answer("a#1", "fine")
    assert canonical_record(GRAPH, whole.log) == canonical_record(GRAPH, crashed.log)
    assert [event.fact for event in whole.log if isinstance(event, Event) and isinstance(event.fact, ModelAnswered)]


TWO = compiled(
    [llm("a", tools=["weather/forecast"]), llm("b", tools=["weather/forecast"]), llm("c", tools=["weather/forecast"])],
    "a>b a>c b>END c>END", reducers={"x": "append"}, output_key="outputs.b",
)  # fmt: skip


def driven(run: Played, made: list[tuple[str, str]], *, seed: int) -> Played:
    """To its end: every model wants two rounds of two calls; `made` gets the calls that were made."""
    rng = Random(seed)
    while run.calls:
        firing = rng.choice(sorted(run.calls))
        perform = run.calls[firing]
        if isinstance(perform.effect, CallTool):
            del run.calls[firing]
            if perform.effect.unsure:
                error = {"code": "TOOL_OUTCOME_UNKNOWN", "message": "?", "class": "refused"}
                run.go(NodeFailed(firing, error, perform.attempt))
                continue
            made.append((firing, perform.effect.call_id))
            said = f"said of {perform.effect.call_id}"
            run.go(ToolAnswered(firing, perform.effect.call_id, said, attempt=perform.attempt))
            continue
        rounds = sum("tool_calls" in message for message in perform.effect.messages)
        wanted = tuple({"id": f"r{rounds}{n}", "name": "forecast", "arguments": {}} for n in range(2))
        run.answer(firing, "" if rounds < 2 else f"done {firing}", tool_calls=wanted if rounds < 2 else ())
    return run


@pytest.mark.parametrize("seed", range(3))
def test_wherever_a_run_is_cut_no_call_is_made_twice(seed: int) -> None:
    made: list[tuple[str, str]] = []
    whole = driven(play(TWO), made, seed=seed)
    assert whole.run.status == "completed"
    assert len(made) == len(set(made)) == 12
    ends = set()
    for cut in range(2, len(whole.log)):
        log = whole.log[:cut]
        begun = {(e.fact.firing, e.fact.call_id) for e in log if isinstance(e.fact, ToolCalled)}
        again: list[tuple[str, str]] = []
        run = Played(TWO, folded(TWO, log), list(log)).go(RunInterrupted("cut"), RunResumed())
        driven(run, again, seed=seed + cut)
        assert not begun & set(again), cut
        ends.add(run.run.status)
        if run.run.status == "completed":
            assert canonical_record(TWO, run.log) == canonical_record(TWO, whole.log)
        else:
            assert run.run.error is not None
            assert run.run.error["code"] == "TOOL_OUTCOME_UNKNOWN"
    assert ends == {"completed", "failed"}
