"""What a failed attempt leads to: another attempt, another model, `on_error`, or the end of the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.failure import LONGEST_ASKED_MS, delay_ms, follow_up
from agent_graph.core.nodes.base import Retry
from agent_graph.core.outcome import errors, final_state, state
from agent_graph.core.record import canonical_record
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Perform, decide
from agent_graph.core.waits import due, next_due_ms
from tests.core.played import Played, compiled, folded, gate, llm, plain, play, router, writes

ONE = [llm("a", output_key="x")]


def attempt_fails(at: Played, firing: str, kind: str = "overloaded", **details: Any) -> Played:
    """The call comes back with an error of class `kind`."""
    call = at.calls.pop(firing)
    error = {"code": f"MODEL_{kind.upper()}", "message": "no", "class": kind}
    if details:
        error["details"] = details
    return at.go(follow_up(at.run, e.NodeFailed(firing, error, call.attempt)))


def pause_over(at: Played, firing: str) -> Played:
    return at.go(e.TimerFired(firing))


# -- attempts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["timeout", "unreachable", "overloaded", "server_error", "bad_reply"])
def test_a_failure_that_can_pass_is_tried_three_times(kind: str) -> None:
    at = play(compiled(ONE))
    for attempt in (1, 2):
        attempt_fails(at, "a#1", kind)
        assert (at.run.status, list(at.run.pausing), at.calls) == ("running", ["a#1"], {})
        pause_over(at, "a#1")
        assert at.calls["a#1"].attempt == attempt + 1
    attempt_fails(at, "a#1", kind)
    assert at.run.status == "failed"
    assert at.run.error is not None
    assert (at.run.error["node_id"], at.run.error["attempts"], at.run.error["class"]) == ("a", 3, kind)
    assert [fact.attempt for fact in at.facts(e.NodeRetried)] == [1, 2]
    assert [fact.attempt for fact in at.facts(e.NodeStarted)] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["not_found", "refused", "invalid", "cancelled", "bug"])
def test_a_failure_that_stays_is_tried_once(kind: str) -> None:
    at = attempt_fails(play(compiled(ONE)), "a#1", kind)
    assert (at.run.status, at.facts(e.NodeRetried)) == ("failed", [])


def test_retry_on_narrows_the_classes_and_one_attempt_is_no_retry() -> None:
    at = play(compiled([llm("a", retry={"on": ["timeout"]})]))
    assert attempt_fails(at, "a#1", "overloaded").run.status == "failed"
    at = attempt_fails(play(compiled([llm("a", retry={"on": ["timeout"]})])), "a#1", "timeout")
    assert list(at.run.pausing) == ["a#1"]
    at = attempt_fails(play(compiled([llm("a", retry={"max_attempts": 1})])), "a#1", "timeout")
    assert at.run.status == "failed"


def test_an_answer_nobody_can_use_is_a_failed_attempt_and_leaves_nothing() -> None:
    at = play(compiled([llm("a", json_mode=True, repair=1, output_key="x")]))
    at.answer("a#1", "prose").answer("a#1", "prose again")
    assert list(at.run.pausing) == ["a#1"]
    (retried,) = at.facts(e.NodeRetried)
    assert (retried.error["class"], retried.error["details"]["reason"]) == ("bad_reply", "json")
    assert state(at.run) == {}
    pause_over(at, "a#1")
    assert len(at.calls["a#1"].effect.messages) == 1, "what the failed attempt answered is no part of the next one"
    at.answer("a#1", '{"n": 1}')
    assert (at.run.status, state(at.run)) == ("completed", {"x": {"n": 1}})
    assert at.run.usage.llm_calls == 3, "what was paid for is counted"


def test_an_answer_of_the_failed_attempt_that_comes_late_changes_nothing() -> None:
    at = play(compiled(ONE))
    attempt = at.calls["a#1"].attempt
    attempt_fails(at, "a#1").go(e.ModelAnswered("a#1", {"text": "late"}, attempt))
    assert (list(at.run.pausing), decide(at.graph, at.run)) == (["a#1"], ())


def test_what_is_heard_of_a_firing_that_is_over_is_left_as_it_is() -> None:
    at = play(compiled(ONE))
    stale = e.NodeFailed("a#1", {"code": "X", "message": "", "class": "timeout"}, 7)
    assert follow_up(at.run, stale) is stale
    gone = e.NodeFailed("b#1", {"code": "X", "message": "", "class": "timeout"})
    assert follow_up(at.run, gone) is gone
    at.feed(e.NodeRetried("a#1", {}, 5, attempt=7), e.NodeRetried("b#1", {}, 5), e.TimerFired("a#1"))
    assert not at.run.pausing


def test_a_pause_holds_no_place_and_what_has_waited_goes_first() -> None:
    at = play(compiled([plain("s"), llm("a"), llm("b"), llm("c")], "s>a s>b s>c", max_parallelism=1, output_key="x"))
    assert list(at.calls) == ["a#1"]
    attempt_fails(at, "a#1")
    assert list(at.calls) == ["b#1"], "its place went to the next one"
    pause_over(at, "a#1")
    assert (list(at.calls), list(at.run.queue)) == (["b#1"], ["a#1", "c#1"])
    at.answer("b#1")
    assert list(at.calls) == ["a#1"]
    at.answer("a#1").answer("c#1")
    assert at.run.places == 0


# -- delays --------------------------------------------------------------------------------------------------------


def delays(retry: Retry, **error: Any) -> list[int]:
    return [delay_ms(retry, tries=n, drawn_from=("run", "a#1", n), error=error) for n in range(1, 8)]


def test_delays_grow_to_a_bound() -> None:
    assert delays(Retry(jitter=False)) == [250, 500, 1000, 2000, 4000, 5000, 5000]
    assert delays(Retry(jitter=False, initial_delay_ms=0)) == [0] * 7
    assert delay_ms(Retry(backoff_factor=100, max_attempts=100), tries=100, drawn_from=("r",), error={}) <= 5000


def test_jitter_is_drawn_from_run_node_and_attempt_and_is_the_same_again() -> None:
    most = delays(Retry(jitter=False))
    drawn = delays(Retry())
    assert drawn == delays(Retry())
    assert all(0 <= one <= bound for one, bound in zip(drawn, most, strict=True))
    many = [delay_ms(Retry(), tries=6, drawn_from=(f"run-{n}", "a#1", 6), error={}) for n in range(400)]
    assert min(many) < 250
    assert max(many) > 4750
    assert 2200 < sum(many) / len(many) < 2800


def test_the_host_may_ask_for_more_time_but_not_for_ever() -> None:
    assert delays(Retry(), details={"retry_after_ms": 7_000}) == [7_000] * 7
    assert delays(Retry(), details={"retry_after_ms": 10**9}) == [LONGEST_ASKED_MS] * 7
    assert delays(Retry(jitter=False), details={"retry_after_ms": 600})[:3] == [600, 600, 1000]
    assert delays(Retry(jitter=False), details={"status": 503}) == delays(Retry(jitter=False))


def test_a_pause_is_over_by_the_clock_and_by_nothing_else() -> None:
    at = play(compiled([llm("a", retry={"jitter": False})]))
    attempt_fails(at, "a#1")
    assert next_due_ms(at.run) == at.at_ms + 250
    assert due(at.run, at.at_ms + 249) == ()
    assert due(at.run, at.at_ms + 250) == (e.TimerFired("a#1"),)
    stopped = folded(at.graph, at.log)
    assert next_due_ms(stopped) == at.at_ms + 250, "the wait goes on from the event"
    assert next_due_ms(checkpoint.load(at.graph, checkpoint.dump(at.run))) == at.at_ms + 250
    at.feed(e.RunInterrupted("stopped"))
    assert due(at.run, at.at_ms + 999) == ()
    at.feed(e.RunResumed())
    assert due(at.run, at.at_ms + 999) == (e.TimerFired("a#1"),)
    at.feed(e.RunCancelRequested("enough"))
    assert due(at.run, at.at_ms + 999) == ()


def test_a_cancel_ends_a_pause() -> None:
    at = attempt_fails(play(compiled(ONE)), "a#1").cancel()
    assert (at.run.status, at.run.pausing) == ("cancelled", {})
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["a#1"]
    pause_over(at, "a#1")
    assert (at.run.status, at.calls) == ("cancelled", {})


def test_a_run_that_pauses_between_attempts_does_not_wait_for_people() -> None:
    at = play(compiled([plain("s"), gate("g"), llm("a")], "s>g s>a", output_key="g"))
    attempt_fails(at, "a#1")
    assert (at.run.status, decide(at.graph, at.run)) == ("running", ())


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_wherever_the_log_ends_the_next_attempt_is_made_once(cut: int) -> None:
    at = play(compiled(ONE))
    pause_over(attempt_fails(at, "a#1"), "a#1")
    end = next(i for i, event in enumerate(at.log) if isinstance(event.fact, e.NodeRetried))
    again = Played(at.graph, folded(at.graph, at.log[: end + cut]), at.log[: end + cut]).go()
    if cut == 1:
        pause_over(again, "a#1")
    assert again.calls["a#1"].attempt == 2
    assert again.answer("a#1").run.status == "completed"


def test_after_the_host_was_away_every_call_has_all_its_attempts_again() -> None:
    at = play(compiled([plain("s"), llm("a", retry={"max_attempts": 2}), llm("b")], "s>a s>b", output_key="x"))
    pause_over(attempt_fails(at, "a#1", "unreachable"), "a#1")
    attempt_fails(at, "b#1", "unreachable")
    at.go(e.RunInterrupted("nobody answers", {"code": "MODEL_UNREACHABLE", "message": "", "class": "unreachable"}))
    at.calls.clear()
    at.go(e.RunResumed())
    assert due(at.run, 0) == (e.TimerFired("b#1"),), "and nothing is waited for"
    assert at.calls["a#1"].attempt == 3
    attempt_fails(at, "a#1", "unreachable")
    assert "a#1" in at.run.pausing


# -- other models --------------------------------------------------------------------------------------------------


def test_fallback_models_are_asked_in_order_each_with_its_own_attempts() -> None:
    at = play(compiled([llm("a", model="big", fallback_models=["mid", "small"], retry={"max_attempts": 2})]))
    asked = []
    while at.run.status == "running":
        asked.append(at.calls["a#1"].effect.model)
        attempt_fails(at, "a#1", "server_error")
        if at.run.pausing:
            pause_over(at, "a#1")
    assert asked == ["big", "big", "mid", "mid", "small", "small"]
    assert at.run.error is not None
    assert at.run.error["attempts"] == 6
    assert [fact.model for fact in at.facts(e.NodeRetried)] == ["", "mid", "mid", "small", "small"]
    assert [fact.model for fact in at.facts(e.NodeStarted)] == ["", "", "mid", "mid", "small", "small"]


def test_a_model_that_is_not_there_is_not_asked_again_but_the_next_one_is() -> None:
    at = play(compiled([llm("a", fallback_models=["small"])]))
    attempt_fails(at, "a#1", "not_found")
    pause_over(at, "a#1")
    assert at.calls["a#1"].effect.model == "small"
    assert attempt_fails(at, "a#1", "not_found").run.status == "failed"


@pytest.mark.parametrize("kind", ["refused", "invalid", "cancelled", "bug"])
def test_another_model_is_not_asked_what_was_refused(kind: str) -> None:
    at = attempt_fails(play(compiled([llm("a", fallback_models=["small"])])), "a#1", kind)
    assert at.run.status == "failed"


def test_a_fallback_is_still_asked_after_a_restart() -> None:
    at = play(compiled([llm("a", fallback_models=["small"], retry={"max_attempts": 1})]))
    pause_over(attempt_fails(at, "a#1"), "a#1")
    at.resume()
    assert (at.calls["a#1"].effect.model, at.calls["a#1"].attempt) == ("small", 3)
    (call,) = decide(at.graph, checkpoint.load(at.graph, checkpoint.dump(at.run)))
    assert isinstance(call, Perform)
    assert call.effect.model == "small"


# -- on_error ------------------------------------------------------------------------------------------------------


def council(mode: str = "collect_array", **config: Any) -> Played:
    nodes = [
        plain("s"), llm("a", output_key="ra", **config), llm("b", output_key="rb"),
        {"id": "j", "type": "join", "config": {"inputs": ["ra", "b"], "output": "o", "mode": mode}},
    ]  # fmt: skip
    return play(compiled(nodes, "s>a s>b a>j b>j"))


def test_without_on_error_a_failure_fails_the_run_and_what_was_done_stays() -> None:
    at = council().answer("b#1", "B")
    attempt_fails(at, "a#1", "refused")
    assert (at.run.status, state(at.run), errors(at.run)) == ("failed", {"rb": "B"}, {})
    assert at.facts(e.NodeFailed)[0].targets is None


def test_continue_goes_on_along_the_edges_and_leaves_the_input_of_a_join_missing() -> None:
    at = council(on_error="continue").answer("b#1", "B")
    attempt_fails(at, "a#1", "refused")
    assert (at.run.status, state(at.run)) == ("completed", {"rb": "B", "o": [None, "B"]})
    assert errors(at.run) == {"a": {"code": "MODEL_REFUSED", "message": "no"}}
    assert at.facts(e.NodeFailed)[0].targets == ("j",)


@pytest.mark.parametrize(
    ("mode", "value"),
    [
        ("all_success", {"all_success": False, "values": [None, "B"]}),
        ("quorum", {"met": True, "approvals": 1, "required": 1}),
    ],
)
def test_joins_see_who_failed(mode: str, value: Any) -> None:
    at = council(mode, on_error="continue").answer("b#1", "B")
    attempt_fails(at, "a#1", "refused")
    assert state(at.run)["o"] == value


def test_the_error_is_readable_where_the_token_goes_until_the_node_succeeds() -> None:
    ask = "{input} {errors.a.code?} {outputs.a?}"
    nodes = [llm("a", on_error="continue"), router("r", "errors.a.code", {"MODEL": ["a"]}, ["b"]), llm("b", ask)]
    at = play(compiled(nodes, "a>r b>END"), "go")
    attempt_fails(at, "a#1", "refused")
    assert list(at.calls) == ["a#2"], "the router saw the error"
    at.answer("a#2", "fine")
    assert at.prompt("b#1") == "fine  fine"
    assert errors(at.answer("b#1").run) == {}


def test_an_errors_text_is_nobodys_output_and_the_output_of_an_earlier_round_stays() -> None:
    nodes = [llm("a", on_error="continue"), llm("b", "{input} {outputs.a?}"), router("r", "", {"more": ["a"]}, ["END"])]
    at = play(compiled(nodes, "a>b b>r"), "go").answer("a#1", "first").answer("b#1", "more")
    attempt_fails(at, "a#2", "refused")
    assert at.prompt("b#2") == "more first"
    assert final_state(at.answer("b#2", "end").run) == ("end",)


def test_a_join_does_not_take_the_earlier_answer_of_a_node_that_has_failed_since() -> None:
    def run(**config: Any) -> Any:
        nodes = [
            llm("a", output_key="ra", on_error="continue"), router("r", "ra", {"again": ["w"]}, ["j"]),
            writes("w", ra="once"),
            {"id": "j", "type": "join", "config": {"inputs": ["a", "n"], "output": "o", **config}},
        ]  # fmt: skip
        at = play(compiled(nodes, "a>r w>a j>END", output_key="o"), {"n": 1}).answer("a#1", "again")
        attempt_fails(at, "a#2", "refused")
        return state(at.run)["o"]

    assert run() == [None, 1]
    assert run(allow_stale=True) == ["again", 1]


def test_goto_sends_the_token_to_a_handler_instead() -> None:
    nodes = [llm("a", output_key="x", on_error={"goto": ["h"]}), llm("b", output_key="x"), writes("h", x="handled")]
    made = compiled(nodes, "a>b b>END h>END", output_key="x")
    at = attempt_fails(play(made), "a#1", "refused")
    assert (at.run.status, state(at.run)) == ("completed", {"x": "handled"})
    assert at.facts(e.NodeFailed)[0].targets == ("h",)
    assert play(made).answer("a#1", "fine").answer("b#1", "done").run.status == "completed"


def test_a_handler_is_waited_for_like_any_way_a_token_can_come() -> None:
    nodes = [plain("s"), llm("a", on_error={"goto": ["h"]}), llm("b"), llm("h", "late")]
    at = play(compiled(nodes, "s>a s>b b>h h>END", output_key="x")).answer("b#1")
    assert list(at.calls) == ["a#1"], "a may still send a token to h"
    assert list(attempt_fails(at, "a#1", "refused").calls) == ["h#1"]
    assert at.run.firing("h#1") is not None


def test_goto_nowhere_ends_the_branch() -> None:
    for targets in ([], ["END"]):
        made = compiled([llm("a", on_error={"goto": targets}), llm("b")], "a>b b>END", output_key="k")
        at = attempt_fails(play(made, {"k": 1}), "a#1", "refused")
        assert (at.run.status, at.facts(e.NodeFailed)[0].targets) == ("completed", ("END",))


def test_on_error_applies_after_all_attempts_and_models() -> None:
    at = council(on_error="continue", fallback_models=["small"], retry={"max_attempts": 1}).answer("b#1", "B")
    pause_over(attempt_fails(at, "a#1"), "a#1")
    assert attempt_fails(at, "a#1").run.status == "completed"
    assert at.facts(e.NodeFailed)[0].attempt == 2


def test_on_error_applies_to_what_a_pure_step_raises() -> None:
    chooser = router("r", "k", {"yes": ["b"]})
    chooser["config"]["on_error"] = {"goto": ["b"]}
    at = play(compiled([chooser, plain("b")], "b>END"))
    assert at.run.status == "completed"
    assert errors(at.run)["r"]["code"] == "NO_DEFAULT_ROUTE"


def test_a_chain_that_is_too_long_ends_whatever_on_error_says() -> None:
    nodes = [{**plain("a"), "config": {"on_error": "continue"}}, router("r", "k", {"out": ["END"]}, ["a"])]
    at = play(compiled(nodes, "a>r", max_iterations=5))
    assert at.run.status == "failed"
    assert at.run.error is not None
    assert at.run.error["code"] == "MAX_ITERATIONS_EXCEEDED"


def test_attempts_are_no_part_of_the_record_and_handled_failures_are() -> None:
    def record(fails: int, kind: str = "overloaded") -> Any:
        at = council(on_error="continue").answer("b#1", "B")
        for _ in range(fails):
            attempt_fails(at, "a#1", kind)
            if at.run.pausing:
                pause_over(at, "a#1")
        if at.calls:
            at.answer("a#1", "A")
        return json.dumps(canonical_record(at.graph, at.log), sort_keys=True)

    assert record(0) == record(1) == record(2)
    assert record(3) != record(0)
    assert record(1, "refused") != record(3)
    assert '"a#1"' in record(3)


def test_a_run_that_was_never_accepted_has_no_errors() -> None:
    assert errors(Run()) == {}
