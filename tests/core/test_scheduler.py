"""decide and evolve: how a run goes on, fails, is cancelled and is taken up again."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import ModelAnswer, answer_to_json
from agent_graph.core.graph import Graph
from agent_graph.core.outcome import final_state, state
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Perform, Record, decide, evolve, new_run
from tests.core.played import (
    Played,
    accepted,
    compiled,
    does,
    folded,
    gate,
    llm,
    plain,
    play,
    router,
    writes,
)  # fmt: skip

PAIR = compiled([plain("s"), llm("a"), llm("b"), plain("end")], "s>a s>b a>end b>end")
ERROR = {"code": "X", "message": "y", "class": "bug"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_nothing_may_happen_before_a_run_was_accepted_and_started() -> None:
    assert decide(PAIR, new_run()) == ()
    assert decide(PAIR, accepted(PAIR).run) == ()


def test_a_node_is_started_and_asked_until_it_is_done() -> None:
    at = play(compiled([llm("a")]))
    assert at.told == ["run_accepted", "run_started", "node_started"]
    at.answer("a#1", "hi")
    assert at.told[3:] == ["model_answered", "node_finished", "run_completed"]


def test_decide_changes_nothing() -> None:
    at = accepted(PAIR).feed(e.RunStarted())
    assert decide(PAIR, at.run) == decide(PAIR, at.run)


def test_the_first_failure_in_event_order_is_the_runs_and_siblings_are_cancelled() -> None:
    at = play(PAIR)
    calls = dict(at.calls)
    at.feed(e.NodeFailed("b#1", {**ERROR, "code": "FIRST"}), e.NodeFailed("a#1", {**ERROR, "code": "SECOND"})).go()
    assert at.run.error is not None
    assert (at.run.status, at.run.error["code"], at.run.error["node_id"]) == ("failed", "FIRST", "b")
    assert at.told[-2:] == ["frame_failed", "run_failed"]
    one = play(PAIR).fail("b#1")
    assert one.told[-3:] == ["frame_failed", "firing_cancelled", "run_failed"]
    assert one.facts(e.FiringCancelled)[0].firing == "a#1"
    assert sorted(calls) == ["a#1", "b#1"]


def test_nothing_else_is_started_once_a_step_has_failed() -> None:
    bad = does("bad", {"op": "increment", "path": "text"})
    at = play(compiled([plain("s"), llm("z"), bad], "s>z s>bad", output_key="text"), {"text": "no number"})
    assert at.run.status == "failed"
    assert [fact.firing for fact in at.facts(e.NodeStarted)] == ["s#1", "bad#1"]
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["z#1"]


def test_a_failure_withdraws_open_approvals() -> None:
    at = play(compiled([plain("s"), gate("g"), llm("a")], "s>g s>a", output_key="g")).fail("a#1")
    assert at.told[-4:] == ["frame_failed", "approval_withdrawn", "firing_cancelled", "run_failed"]
    assert [one.status for one in at.run.gates.values()] == ["withdrawn"]


def test_facts_about_what_is_gone_change_nothing() -> None:
    at = play(PAIR).answer("a#1", "first")
    usage = at.run.usage.nodes
    at.go(
        e.NodeStarted("a#1", 9), e.NodeFinished("a#1"), e.NodeFailed("a#1", ERROR), e.FiringCancelled("a#1", "late"),
        e.ModelAnswered("a#1", {"text": "late"}), e.ApprovalDecided("a#1", "apr-none", "approve", "", "x", "cli"),
        e.ApprovalExpired("a#1", "apr-none"), e.ApprovalVoted("a#1", "apr-none", {}),
        e.ApprovalWithdrawn("a#1", "apr-none", "late"), e.RouteTaken("a#1", "late", ()),
        e.ApprovalOpened("a#1", "apr-late", 1, "?", None, "", (), ("approve",), 5),
    )  # fmt: skip
    assert "a#1" not in at.run.told
    assert (at.run.status, at.run.gates, at.run.usage.nodes) == ("running", {}, usage)
    at.answer("b#1")
    assert at.run.status == "completed"


def test_what_comes_of_an_attempt_that_was_given_up_changes_nothing() -> None:
    at = play(PAIR).resume()
    assert at.calls["a#1"].attempt == 2
    at.feed(e.ModelAnswered("a#1", {"text": "late"}, 1), e.NodeFailed("b#1", ERROR, 1))
    assert (at.run.failure, sorted(at.run.out)) == (None, ["a#1", "b#1"])
    at.answer("a#1").answer("b#1")
    assert at.run.status == "completed"


def test_a_chain_longer_than_max_iterations_fails() -> None:
    loop = router("r", "k", {"never": ["END"]}, default=["a"])
    at = play(compiled([plain("a"), loop], "a>r", max_iterations=4), {"k": ""})
    assert at.run.error is not None
    assert (at.run.error["code"], at.run.error["details"]) == ("MAX_ITERATIONS_EXCEEDED", {"limit": 4})
    assert at.run.usage.nodes == 4


def test_a_result_that_was_never_written_fails_the_run_and_keeps_its_state() -> None:
    choice = router("r", "which", {"x": ["x"]}, default=["y"])
    at = play(compiled([choice, writes("x", answer=1), writes("y", other=2)], output_key="answer"), {"which": "y"})
    assert at.run.error == {
        "code": "OUTPUT_KEY_NOT_WRITTEN", "path": "answer",
        "message": "the run ended and nothing was written at its output_key 'answer'",
    }  # fmt: skip
    assert state(at.run) == {"which": "y", "other": 2}
    assert final_state(at.run) == ()


# -- cancelling ----------------------------------------------------------------------------------------------------


def test_an_accepted_run_is_cancelled_at_once() -> None:
    at = accepted(PAIR).cancel()
    assert at.told == ["run_accepted", "run_cancel_requested", "run_cancelled"]
    assert at.run.error == {"code": "CANCELLED", "message": "enough"}


def test_a_running_run_is_cancelled_with_everything_active_in_order() -> None:
    at = play(PAIR).cancel()
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["a#1", "b#1"]
    assert (at.run.status, dict(at.run.open), dict(at.run.out)) == ("cancelled", {}, {})


def test_a_waiting_run_is_cancelled_and_its_approval_withdrawn() -> None:
    at = play(compiled([gate("g")])).cancel()
    assert at.told[-3:] == ["approval_withdrawn", "firing_cancelled", "run_cancelled"]
    assert at.run.open_approvals == []


def test_an_interrupted_run_is_cancelled() -> None:
    at = play(PAIR).go(e.RunInterrupted("stopped"))
    assert (at.run.status, at.run.error) == ("interrupted", {"code": "INTERRUPTED", "message": "stopped"})
    assert at.cancel().run.status == "cancelled"


def test_queued_firings_are_cancelled_too() -> None:
    names = [f"n{i}" for i in range(300)]
    edges = " ".join(f"s>{name} {name}>end" for name in names)
    at = play(compiled([plain("s"), *map(llm, names), plain("end")], edges, max_parallelism=2)).cancel()
    assert len(at.facts(e.FiringCancelled)) == 300
    assert (len(at.run.queue), len(at.facts(e.NodeStarted))) == (0, 3)


def test_nothing_more_happens_in_a_run_that_has_ended() -> None:
    at = play(PAIR).cancel()
    assert decide(PAIR, at.run) == ()


# -- going on ------------------------------------------------------------------------------------------------------


def test_an_interruption_keeps_its_error_until_the_run_goes_on() -> None:
    at = play(PAIR).go(e.RunInterrupted("host", dict(ERROR)))
    assert (at.run.error, decide(PAIR, at.run)) == (ERROR, ())
    at.go(e.RunResumed())
    assert (at.run.status, at.run.error) == ("running", None)


def test_a_call_in_flight_is_made_again_as_a_new_attempt() -> None:
    at = play(PAIR).answer("a#1").resume()
    assert [(call.firing, call.attempt) for call in at.calls.values()] == [("b#1", 2)]
    assert at.resume().calls["b#1"].attempt == 3
    at.fail("b#1")
    assert at.run.error is not None
    assert at.run.error["attempts"] == 3


def test_an_answer_that_was_received_is_not_paid_for_twice() -> None:
    at = play(PAIR)
    at.feed(e.RunInterrupted("stopped"), e.ModelAnswered("a#1", answer_to_json(ModelAnswer("kept"))))
    at.calls.clear()
    at.go(e.RunResumed())
    assert list(at.calls) == ["b#1"]
    assert [fact.attempt for fact in at.facts(e.NodeStarted) if fact.firing == "a#1"] == [1]


def test_a_repair_call_in_flight_is_made_again_as_a_new_attempt_and_the_answer_before_it_is_kept() -> None:
    at = play(compiled([llm("a", output_schema=SCHEMA)])).answer("a#1", "{}")
    assert (at.calls["a#1"].attempt, len(at.calls["a#1"].effect.messages)) == (1, 3)
    assert at.resume().calls["a#1"].attempt == 2
    assert len(at.calls["a#1"].effect.messages) == 3, "it asks for the repair, not for everything anew"
    at.answer("a#1", '{"n":1}')
    assert at.run.status == "completed"
    assert [fact.attempt for fact in at.facts(e.NodeFinished)] == [2]
    assert at.run.usage.llm_calls == 2


def test_a_decided_gate_is_no_new_attempt() -> None:
    at = play(compiled([gate("g"), plain("z")], "g>z"))
    gates = at.run.open_approvals
    at.feed(e.ApprovalDecided("g#1", gates[0].approval_id, "approve", "", "ann", "cli"))
    at.go(e.RunInterrupted("stopped"), e.RunResumed())
    assert [fact.attempt for fact in at.facts(e.NodeStarted)] == [1, 1]
    assert at.run.status == "completed"


# -- places --------------------------------------------------------------------------------------------------------


def three(**config: Any) -> Played:
    names = ["a", "b", "c"]
    edges = "s>a s>b s>c a>end b>end c>end"
    nodes = [plain("s"), *(llm(name, **config) for name in names), plain("end")]
    return play(compiled(nodes, edges, max_parallelism=2))


def test_no_more_calls_are_in_flight_than_there_are_places() -> None:
    at = three()
    assert len(at.calls) == 2
    first, _ = at.calls
    at.answer(first)
    assert len(at.calls) == 2
    assert at.answer_all().run.status == "completed"
    assert at.run.places == 0


def test_a_place_is_held_across_a_repair_round_and_a_resumption() -> None:
    at = three(output_schema=SCHEMA)
    first, second = at.calls
    at.answer(first, "{}")
    assert sorted(at.calls) == sorted([first, second])
    assert sorted(at.resume().calls) == sorted([first, second])
    assert at.run.places == 2
    at.answer(first, '{"n":1}')
    assert len(at.calls) == 2


def test_a_pending_approval_holds_no_place() -> None:
    nodes = [plain("s"), gate("g"), llm("a"), llm("b"), plain("end")]
    at = play(compiled(nodes, "s>g s>a s>b g>end a>end b>end", max_parallelism=1))
    assert len(at.calls) == 1
    assert len(at.run.open_approvals) == 1


# -- the same from the log -----------------------------------------------------------------------------------------


def effects(graph: Graph, run: Run) -> list[Any]:
    return [action for action in decide(graph, run) if isinstance(action, Perform)]


def test_what_may_happen_next_is_the_same_for_a_run_read_back_from_its_log() -> None:
    make = does(
        "make", {"op": "set", "path": "doc", "value": {"z": 1e16, "a": [3.0, -0.0, 10**30], "é": None}},
        {"op": "increment", "path": "n", "value": 0.5},
    )  # fmt: skip
    nodes = [
        make,
        llm("a", "{doc} {n} {input}", output_schema=SCHEMA),
        gate("g", prompt="{doc}"),
        llm("b", "{g.by} {outputs.a}"),
    ]
    graph = compiled(nodes, "make>a a>g g>b", reducers={"n": "add"})
    at = play(graph, {"n": 0.5, "b": {"y": 2, "x": 1.0}})
    at.answer("a#1", '{"zz": 1.0}').answer("a#1", '{"zz": 2.0, "n": 1}').vote("g#1", "approve").answer("b#1")
    assert at.run.status == "completed"
    for cut in range(1, len(at.log) + 1):
        live = new_run()
        for event in at.log[:cut]:
            live = evolve(graph, live, event)
        again = folded(graph, at.log[:cut])
        assert decide(graph, live) == decide(graph, again)
        assert repr(effects(graph, live)) == repr(effects(graph, again)), "order of keys and form of numbers too"


@pytest.mark.parametrize("kind", [e.RouteTaken, e.Warned, e.LoopExhausted, e.WriteConflict])
def test_what_only_tells_people_moves_nothing(kind: type[e.Fact]) -> None:
    told = {
        e.RouteTaken: e.RouteTaken("a#1", "x", ()), e.Warned: e.Warned("a#1", "X", "y"),
        e.LoopExhausted: e.LoopExhausted("a#1", 1), e.WriteConflict: e.WriteConflict("END", "k", "a#1", ()),
    }[kind]  # fmt: skip
    at = play(PAIR)
    before = list(at.run.out)
    assert list(at.feed(told).run.out) == before
    assert decide(PAIR, at.run) == ()


def test_a_cut_between_the_facts_of_an_end_tells_none_of_them_twice() -> None:
    nodes = [plain("s"), router("r1", "k", {"1": ["a"]}, default=[]), router("r2", "k", {"2": ["b"]}, default=[])]
    graph = compiled([*nodes, writes("a", x=1), writes("b", x=2)], "s>r1 s>r2", output_key="x")
    at = play(graph, {"k": "12"})
    (conflict,) = at.facts(e.WriteConflict)
    assert (conflict.firing, conflict.key, conflict.winner, conflict.losers) == ("END", "x", "b#1", ("a#1",))
    again = folded(graph, at.log[: at.told.index("write_conflict") + 1])
    assert decide(graph, again) == (Record(e.RunCompleted()),)


def test_an_action_is_a_fact_to_record_or_an_effect_to_perform() -> None:
    at = accepted(compiled([llm("a")])).feed(e.RunStarted())
    first, second = decide(at.graph, at.run)
    assert first == Record(e.NodeStarted("a#1"))
    assert isinstance(second, Perform)
    assert (second.firing, second.attempt) == ("a#1", 1)
