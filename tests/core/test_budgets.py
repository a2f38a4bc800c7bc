"""Budgets as the core keeps them: granted before, settled after, refused, raised by a person, or left for elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import approval, budgets, checkpoint, spending
from agent_graph.core import events as e
from agent_graph.core.budgets import tightened
from agent_graph.core.effects import CallModel
from agent_graph.core.outcome import final_state, state
from agent_graph.core.record import canonical_record
from agent_graph.core.render import mermaid
from agent_graph.core.scheduler import calls_unheard_of, decide
from agent_graph.core.ways import taken, ways
from agent_graph.errors import InvalidBudgets
from tests.core.played import Played, accepted, compiled, folded, gate, llm, plain, play, router, writes

TWO = [llm("a"), llm("b")]
IN_A_ROW = "a>b b>END"
NO_CONNECT = {"code": "MODEL_UNREACHABLE", "message": "no", "class": "unreachable", "details": {"reason": "connect"}}
BUSY = {"code": "MODEL_OVERLOADED", "message": "no", "class": "overloaded"}


def chain(**bounds: Any) -> Played:
    return play(compiled(TWO, IN_A_ROW), budgets=bounds)


def kinds(played: Played, *names: str) -> list[Any]:
    return [event.fact for event in played.log if event.fact.type in names]


def budget_facts(played: Played) -> list[str]:
    return [name for name in played.told if name.startswith("budget_")]


def same_after_every_cut(played: Played) -> None:
    """A snapshot taken after any event is the fold of the log up to there, and offers the same."""
    for cut in range(1, len(played.log) + 1):
        run = folded(played.graph, played.log[:cut])
        loaded = checkpoint.load(played.graph, checkpoint.dump(run))
        assert loaded.ledger == run.ledger
        assert decide(played.graph, loaded) == decide(played.graph, run)
        assert loaded.status == run.status


# -- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "an object with some of"),
        ([], "an object with some of"),
        ({"max_token": 1}, 'did you mean "max_tokens"'),
        ({"max_tokens": 0}, "from 1 to"),
        ({"max_tokens": True}, "from 1 to"),
        ({"max_tokens": 1.0}, "from 1 to"),
        ({"max_tokens": 10**15 + 1}, "from 1 to"),
        ({"on_budget": {"goto": ["a"]}}, "fail or pause"),
    ],
)
def test_bounds_that_are_none_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidBudgets, match=said):
        budgets.check(given)


def test_bounds_are_taken_as_they_are_given() -> None:
    given = {"max_tokens": 10**15, "max_nodes": 1, "on_budget": "pause", "max_wall_clock_ms": 5}
    assert budgets.check(given) == given


def test_of_two_bounds_the_lower_one_holds() -> None:
    own = {"max_nodes": 5, "max_tokens": 100, "on_budget": "pause"}
    assert tightened(own, {"max_nodes": 9, "max_tokens": 50, "max_llm_calls": 2}) == {
        "max_nodes": 5, "max_tokens": 50, "max_llm_calls": 2, "on_budget": "pause",
    }  # fmt: skip
    assert tightened(own, {"on_budget": "fail"})["on_budget"] == "fail"
    assert tightened(own, {"on_budget": "pause"})["on_budget"] == "pause"
    assert tightened({"on_budget": {"goto": ["a"]}}, {"max_nodes": 2, "on_budget": "pause"})["on_budget"] == "pause"


def test_nobody_is_asked_to_raise_what_the_graph_itself_ends() -> None:
    with pytest.raises(InvalidBudgets, match="let somebody raise"):
        tightened({"max_nodes": 5}, {"on_budget": "pause"})


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, (5, 4 + 1024)), ({"num_predict": 7}, (11, 11)), ({"num_predict": -1}, (5, 4 + 1024))],
)
def test_a_call_wants_its_prompt_and_what_it_may_answer(options: Any, wanted: tuple[int, int]) -> None:
    call = CallModel(({"role": "user", "content": "123456ü"}, {"role": "user"}), options=options)
    assert budgets.wanted_tokens(call) == wanted


# -- counting --------------------------------------------------------------------------------------------------------


def test_a_run_without_budgets_tells_nothing_of_them() -> None:
    played = play(compiled(TWO, IN_A_ROW)).answer_all()
    assert not budget_facts(played)
    assert played.run.ledger is None


def test_a_call_is_granted_before_it_is_made_and_settled_with_what_was_counted() -> None:
    played = chain(max_llm_calls=2, max_tokens=5000)
    assert played.told[-2:] == ["node_started", "budget_granted"]
    assert played.run.ledger is not None
    assert played.run.ledger.view()["max_tokens"] == {
        "max": 5000, "used": 0, "recorded": 0, "reserved": 3 + 1024, "unreported_calls": 0,
    }  # fmt: skip
    played.answer("a#1", prompt_tokens=30, completion_tokens=12)
    assert kinds(played, "budget_settled") == [e.BudgetSettled("a#1", 1, 42)]
    played.answer("b#1", prompt_tokens=1)
    assert played.run.status == "completed"
    assert kinds(played, "budget_settled")[-1] == e.BudgetSettled("b#1", held=2 + 1024)
    assert played.run.ledger.view() == {
        "max_llm_calls": {"max": 2, "used": 2},
        "max_tokens": {"max": 5000, "used": "unknown", "recorded": 42, "reserved": 1026, "unreported_calls": 1},
        "on_budget": "fail",
    }
    same_after_every_cut(played)


def test_a_second_call_that_is_over_the_budget_is_never_made() -> None:
    played = play(compiled([llm("a", output_key="first"), llm("b")], IN_A_ROW), budgets={"max_llm_calls": 1})
    played.answer("a#1", "kept")
    assert played.run.status == "failed"
    assert played.run.error == {
        "code": "BUDGET_EXHAUSTED", "message": "the run's max_llm_calls of 1 is used up", "class": "refused",
        "details": {"budget": "max_llm_calls", "max": 1}, "node_id": "b", "node_path": "b#1",
    }  # fmt: skip
    assert kinds(played, "budget_refused") == [e.BudgetRefused("max_llm_calls", 1, 1, 1, firing="b#1")]
    assert not played.calls
    assert state(played.run) == {"first": "kept"}
    same_after_every_cut(played)


def test_no_node_catches_that_the_budget_is_used_up() -> None:
    played = play(compiled([llm("a"), llm("b", on_error="continue")], IN_A_ROW), budgets={"max_llm_calls": 1})
    assert played.answer("a#1").run.status == "failed"


def test_nodes_are_counted_before_they_begin() -> None:
    nodes = [plain("a"), writes("b", x=1), writes("c", y=1)]
    played = play(compiled(nodes, "a>b b>c c>END", output_key="x"), budgets={"max_nodes": 2})
    assert played.run.error is not None
    assert played.run.error["details"] == {"budget": "max_nodes", "max": 2}
    assert state(played.run) == {"x": 1}
    assert played.run.usage.nodes == 2
    assert kinds(played, "budget_granted") == [e.BudgetGranted("a#1", nodes=1), e.BudgetGranted("b#1", nodes=1)]
    same_after_every_cut(played)


def test_what_just_fits_is_enough() -> None:
    assert chain(max_nodes=2, max_llm_calls=2).answer_all().run.status == "completed"


def test_the_graphs_own_budgets_hold_when_nobody_gave_others() -> None:
    graph = compiled(TWO, IN_A_ROW, budgets={"max_llm_calls": 2})
    played = play(graph)
    assert played.run.ledger is not None
    assert played.run.ledger.most == {"max_llm_calls": 2}


def test_a_call_that_is_made_again_is_another_call() -> None:
    played = chain(max_llm_calls=3)
    for attempt in (1, 2):
        played.calls.clear()
        played.go(e.NodeRetried("a#1", BUSY, 0, attempt), e.TimerFired("a#1"))
    assert [fact.attempt for fact in kinds(played, "budget_granted")] == [1, 2, 3]
    assert [fact.tokens for fact in kinds(played, "budget_settled")] == ["unknown", "unknown"]
    played.answer("a#1")
    assert played.run.status == "failed"
    same_after_every_cut(played)


def test_an_answer_that_cannot_be_used_was_paid_for() -> None:
    played = chain(max_llm_calls=3, max_tokens=5000).answer("a#1", " ", prompt_tokens=5, completion_tokens=2)
    assert kinds(played, "budget_settled") == [e.BudgetSettled("a#1", 1, 7)]
    played.go(e.TimerFired("a#1"))
    assert [fact.attempt for fact in kinds(played, "budget_granted")] == [1, 2]
    same_after_every_cut(played)


def test_a_call_that_reached_nobody_is_given_back() -> None:
    played = chain(max_llm_calls=2, max_tokens=5000)
    played.calls.clear()
    played.go(e.NodeRetried("a#1", NO_CONNECT, 0), e.TimerFired("a#1"))
    assert kinds(played, "budget_settled") == [e.BudgetSettled("a#1", 1, 0, llm_calls=0)]
    played.answer("a#1", prompt_tokens=1, completion_tokens=1).answer("b#1", prompt_tokens=1, completion_tokens=1)
    assert played.run.status == "completed"
    assert played.run.ledger is not None
    assert (played.run.ledger.calls, played.run.ledger.spent) == (2, 4)


def test_a_call_that_another_run_has_paid_for_is_given_back() -> None:
    played = chain(max_llm_calls=1, max_tokens=5000)
    played.calls.clear()
    played.go(e.CacheHit("a#1", {"text": "known"}, "key", "run-0"))
    assert kinds(played, "budget_settled") == [e.BudgetSettled("a#1", 1, 0, llm_calls=0)]
    assert played.answer("b#1").run.status == "completed"
    same_after_every_cut(played)


def test_a_call_that_no_budget_counts_is_not_settled() -> None:
    played = chain(max_nodes=9)
    played.calls.clear()
    played.go(e.NodeRetried("a#1", NO_CONNECT, 0), e.TimerFired("a#1")).answer("a#1").answer("b#1")
    assert budget_facts(played) == ["budget_granted", "budget_granted"]


def test_a_call_in_flight_that_is_made_again_after_a_crash_is_the_one_that_was_granted() -> None:
    played = chain(max_llm_calls=2).resume()
    assert played.calls["a#1"].attempt == 2
    assert len(kinds(played, "budget_granted")) == 1
    assert played.answer_all().run.status == "completed"


def test_what_is_left_over_when_the_run_ends_is_settled() -> None:
    played = play(compiled([plain("p"), *TWO], "p>a p>b a>END b>END", output_key="x"), budgets={"max_tokens": 9000})
    played.cancel()
    assert played.told[-5:] == [
        "firing_cancelled", "budget_settled", "firing_cancelled", "budget_settled", "run_cancelled",
    ]  # fmt: skip
    assert played.run.ledger is not None
    assert not played.run.ledger.held
    same_after_every_cut(played)


def test_facts_about_a_run_without_books_change_nothing() -> None:
    played = play(compiled(TWO, IN_A_ROW))
    refused = e.BudgetRefused("max_nodes", 1, 1, firing="a#1")
    gate_ = e.ApprovalOpened("on_budget", "apr-x", 1, "more?", None, "sha256:0", (), ("approve",), 5)
    played.feed(e.BudgetGranted("a#1", llm_calls=1), e.BudgetSettled("a#1"), refused, gate_)
    played.feed(e.ApprovalDecided("on_budget", "apr-x", "approve", "", "ann", "cli"))
    assert played.answer_all().run.status == "completed"


def test_a_settlement_of_what_is_not_held_changes_nothing() -> None:
    played = chain(max_tokens=5000)
    assert played.run.ledger is not None
    before = played.run.ledger.to_json()
    played.feed(e.BudgetSettled("b#1", 1, 7))
    assert played.run.ledger.to_json() == before


# -- tokens ----------------------------------------------------------------------------------------------------------


def beside(*, most: int, **config: Any) -> Played:
    nodes = [plain("p"), llm("a", output_key="a", **config), llm("b", output_key="b", **config)]
    graph = compiled(nodes, "p>a p>b a>END b>END", output_key="a")
    return play(graph, budgets={"max_tokens": most})


def test_a_call_that_does_not_fit_waits_for_what_calls_in_flight_leave() -> None:
    played = beside(most=1500, max_tokens=1000)
    assert list(played.calls) == ["a#1"]
    assert played.run.status == "running"
    played.answer("a#1", prompt_tokens=10, completion_tokens=20)
    assert list(played.calls) == ["b#1"]
    assert played.answer("b#1").run.status == "completed"
    same_after_every_cut(played)


def test_it_is_refused_when_they_leave_too_little() -> None:
    played = beside(most=1500, max_tokens=1000)
    played.answer("a#1", prompt_tokens=10, completion_tokens=900)
    assert played.run.error is not None
    assert played.run.error["details"] == {"budget": "max_tokens", "max": 1500, "wanted": 1003}
    assert "a call that may take 1003 tokens would go over" in str(played.run.error["message"])


def test_it_is_refused_when_nothing_is_known_of_what_they_took() -> None:
    assert beside(most=1500, max_tokens=1000).answer("a#1").run.status == "failed"


def test_a_call_that_can_never_fit_does_not_wait() -> None:
    assert beside(most=1000, max_tokens=1000).run.status == "failed"


def test_an_answer_nobody_bounds_takes_what_is_left() -> None:
    played = beside(most=1500)
    assert [fact.tokens for fact in kinds(played, "budget_granted")] == [1027, 473]
    played.answer("a#1", prompt_tokens=900, completion_tokens=900)
    assert played.answer("b#1").run.status == "completed", "calls in flight may go over, and no others are made"


# -- on_budget: pause ------------------------------------------------------------------------------------------------


def paused() -> Played:
    return chain(max_llm_calls=1, on_budget="pause").answer("a#1", "first")


def test_a_run_that_pauses_asks_for_as_much_again() -> None:
    played = paused()
    assert played.run.status == "waiting"
    (gate_,) = played.run.open_approvals
    assert (gate_.firing, gate_.node_id, gate_.round, gate_.allowed_decisions) == (
        "on_budget", "on_budget", 1, ("approve", "reject"),
    )  # fmt: skip
    assert gate_.prompt == "The run has used up its max_llm_calls of 1. Approve 1 more, or reject and it fails."
    subject: Any = gate_.subject
    assert subject == {"budget": "max_llm_calls", "max": 1, "further": 1, "used": {"max_llm_calls": 1}}
    assert [fact.then for fact in kinds(played, "budget_refused")] == ["pause"]
    played.vote("on_budget", "approve")
    assert list(played.calls) == ["b#1"]
    assert played.run.ledger is not None
    assert played.run.ledger.most == {"max_llm_calls": 2}
    assert played.answer("b#1", "second").run.status == "completed"
    assert final_state(played.run) == ("second",)
    same_after_every_cut(played)


def test_a_call_that_was_refused_was_not_made_and_one_in_flight_beside_it_was() -> None:
    nodes = [plain("p"), llm("a", output_key="a"), llm("b", output_key="b")]
    graph = compiled(nodes, "p>a p>b a>END b>END", output_key="a")
    played = play(graph, budgets={"max_llm_calls": 1, "on_budget": "pause"})
    assert calls_unheard_of(folded(graph, played.log))
    played.answer("a#1").feed(
        e.ApprovalDecided("on_budget", played.run.open_approvals[0].approval_id, "approve", "", "a", "cli")
    )
    assert not calls_unheard_of(folded(graph, played.log))
    assert calls_unheard_of(folded(graph, played.go().log))


def test_nothing_was_made_of_a_run_that_stands_still_or_aside() -> None:
    played = timed(on_budget="pause")
    assert calls_unheard_of(folded(played.graph, played.log))
    played.go(*spending.overdue(played.run, 1_600))
    assert not calls_unheard_of(folded(played.graph, played.log))
    assert not calls_unheard_of(timed().feed(e.RunInterrupted("why")).run)


def test_a_run_whose_question_is_rejected_fails() -> None:
    played = paused().vote("on_budget", "reject")
    assert played.run.status == "failed"
    assert played.run.error == {
        "code": "BUDGET_EXHAUSTED", "class": "refused", "details": {"budget": "max_llm_calls", "max": 1},
        "message": "the run has used up its max_llm_calls of 1, and that more be granted was rejected by ann",
        "node_id": "b", "node_path": "b#1",
    }  # fmt: skip
    same_after_every_cut(played)


def test_a_question_nobody_answers_expires_and_the_run_fails() -> None:
    played = paused()
    (gate_,) = played.run.open_approvals
    assert approval.expired(played.run, gate_.expires_at_ms - 1) == ()
    facts = approval.expired(played.run, gate_.expires_at_ms)
    assert facts == (e.ApprovalExpired("on_budget", gate_.approval_id),)
    played.go(*facts)
    assert played.run.error is not None
    assert "was not decided in time" in str(played.run.error["message"])


def test_a_cancelled_run_withdraws_its_question() -> None:
    played = paused().cancel()
    assert played.run.status == "cancelled"
    assert [gate_.status for gate_ in played.run.gates.values()] == ["withdrawn"]
    before = played.run.status
    (gate_,) = played.run.gates.values()
    played.feed(e.ApprovalDecided("on_budget", gate_.approval_id, "approve", "", "ann", "cli"))
    assert played.run.status == before


def test_what_is_refused_beside_it_waits_for_the_same_answer_and_holds_no_place() -> None:
    nodes = [plain("p"), llm("a", output_key="a"), llm("b", output_key="b"), llm("c", output_key="c")]
    graph = compiled(nodes, "p>a p>b p>c a>END b>END c>END", output_key="a", max_parallelism=1)
    played = play(graph, budgets={"max_llm_calls": 1, "on_budget": "pause"}).answer("a#1")
    assert played.run.status == "waiting"
    assert len(played.run.gates) == 1
    assert [fact.firing for fact in kinds(played, "budget_refused")] == ["b#1", "c#1"]
    played.vote("on_budget", "approve")
    assert list(played.calls) == ["b#1"]
    played.answer("b#1")
    assert [gate_.round for gate_ in played.run.gates.values()] == [1, 2]
    played.vote("on_budget", "approve").answer("c#1")
    assert played.run.status == "completed"
    same_after_every_cut(played)


def test_a_node_that_may_not_begin_waits_too() -> None:
    graph = compiled([writes("a", x=1), llm("b"), writes("c", y=1)], "a>b b>c c>END", output_key="x")
    played = play(graph, budgets={"max_nodes": 1, "on_budget": "pause"})
    assert played.run.status == "waiting"
    assert played.vote("on_budget", "approve").calls
    played.answer("b#1").vote("on_budget", "approve")
    assert played.run.status == "completed"
    same_after_every_cut(played)


def test_a_refused_firing_that_is_cancelled_does_not_come_back() -> None:
    played = paused()
    played.feed(e.FiringCancelled("b#1", "why"))
    assert played.run.ledger is not None
    assert not played.run.ledger.parked
    assert played.run.places == 0


# -- on_budget: goto -------------------------------------------------------------------------------------------------


def leading(*targets: str, **bounds: Any) -> dict[str, Any]:
    return {**bounds, "on_budget": {"goto": [*targets]}}


WORK = [
    plain("p"), llm("a", output_key="a"), llm("b", output_key="b"), gate("h"), plain("m"),
    llm("c", output_key="c"), writes("short", done="short"), writes("full", done="full"), plain("late"),
]  # fmt: skip
WIRES = "p>a p>b p>h a>c c>m b>m h>m m>full full>END short>END late>END"


def worked(*targets: str, calls: int = 2) -> Played:
    return play(compiled(WORK, WIRES, output_key="done", budgets=leading(*targets, max_llm_calls=calls)))


def test_the_run_goes_on_elsewhere_with_all_it_knew_and_nothing_else_goes_on() -> None:
    played = worked("short").answer("a#1", "one")
    assert kinds(played, "budget_refused") == [
        e.BudgetRefused("max_llm_calls", 2, 2, 1, "goto", ("short",), "c#1"),
    ]
    gone = played.told[played.told.index("budget_refused") + 1 :]
    assert gone[:5] == [
        "budget_settled", "firing_cancelled", "approval_withdrawn", "firing_cancelled", "firing_cancelled",
    ]  # fmt: skip
    assert [fact.firing for fact in kinds(played, "firing_cancelled")] == ["b#1", "h#1", "c#1"]
    assert played.run.status == "completed"
    assert final_state(played.run) == ("short",)
    assert state(played.run) == {"a": "one", "done": "short"}
    assert played.run.frame is not None
    assert "full" not in {played.graph.nodes[node].id for node in played.run.frame.nth}
    same_after_every_cut(played)
    late = e.ModelAnswered("b#1", {"text": "late"})
    assert played.feed(late).run.frame is not None


def test_where_on_budget_leads_is_drawn_and_counted() -> None:
    played = worked("short").answer("a#1", "one")
    drawn = [way for way in ways(played.graph) if way.transitions == ("on_budget",)]
    assert [(way.source, way.target, way.label) for way in drawn] == [("START", "short", "on budget")]
    counts = taken(played.graph, [event.fact for event in played.log])
    assert counts["START", "on_budget", "short"] == counts["START", "", "p"] == 1
    assert "on budget" in mermaid(played.graph).text
    nowhere = compiled([llm("a"), llm("b")], IN_A_ROW, budgets=leading(max_llm_calls=1))
    assert [way.target for way in ways(nowhere) if way.label == "on budget"] == ["END"]
    failed = chain(max_llm_calls=1).answer("a#1")
    assert "on_budget" not in {way for _, way, _ in taken(failed.graph, [event.fact for event in failed.log])}


def test_a_node_that_fires_for_every_token_fires_for_that_one_too() -> None:
    nodes = [llm("a"), llm("b"), writes("x", x=1), {**writes("m", m=1)}]
    nodes[3]["config"]["merge"] = "each"
    graph = compiled(nodes, "a>b b>END x>m m>END", output_key="m", budgets=leading("m", "x", max_llm_calls=1))
    played = play(graph).answer("a#1", "one")
    assert played.run.status == "completed"
    assert [fact.firing for fact in played.facts_of("m")] == ["m#0.1", "m#1.1"]
    same_after_every_cut(played)


def test_it_can_be_the_end_that_the_run_goes_to() -> None:
    graph = compiled([llm("a", output_key="x"), llm("b", output_key="y")], IN_A_ROW, output_key="x",
                     budgets=leading("END", max_llm_calls=1))  # fmt: skip
    played = play(graph).answer("a#1", "half")
    assert (played.run.status, final_state(played.run)) == ("completed", ("half",))
    same_after_every_cut(played)


def test_no_target_is_the_end() -> None:
    graph = compiled([llm("a"), llm("b")], IN_A_ROW, budgets=leading(max_llm_calls=1))
    assert play(graph).answer("a#1", "half").run.status == "completed"


def test_several_targets_each_get_the_token_and_wait_for_one_another_as_ever() -> None:
    nodes = [llm("a", output_key="a"), llm("b"), writes("x", x=1), writes("y", y=1), writes("z", z=1)]
    graph = compiled(nodes, "a>b b>END x>z y>z z>END", output_key="z", budgets=leading("z", "x", "y", max_llm_calls=1))
    played = play(graph).answer("a#1", "one")
    assert played.run.status == "completed"
    assert [fact.firing for fact in played.facts_of("z")] == ["z#1"], "it waits for what can still reach it"
    assert state(played.run) == {"a": "one", "x": 1, "y": 1, "z": 1}
    same_after_every_cut(played)


def test_what_is_refused_after_it_fails_the_run() -> None:
    graph = compiled([llm("a"), llm("b"), llm("c")], "a>b b>END c>END", budgets=leading("c", max_llm_calls=1))
    played = play(graph).answer("a#1")
    assert [fact.then for fact in kinds(played, "budget_refused")] == ["goto", "fail"]
    assert played.run.status == "failed"
    assert played.run.error is not None
    assert played.run.error["code"] == "BUDGET_EXHAUSTED"
    same_after_every_cut(played)


def test_what_ran_side_by_side_and_meets_there_is_told() -> None:
    ways = [router(f"to_{name}", "go", {"yes": [name]}, default=["END"]) for name in "ab"]
    nodes = [plain("p"), *ways, writes("a", k="of a"), writes("b", k="of b"), llm("c"), llm("d"),
             llm("f"), writes("e", done=1)]  # fmt: skip
    graph = compiled(nodes, "p>to_a p>to_b a>c b>d c>f f>END d>END e>END", output_key="done", max_parallelism=1,
                     budgets=leading("e", max_llm_calls=1))  # fmt: skip
    played = play(graph, {"go": "yes"}).answer("c#1")
    (met,) = kinds(played, "write_conflict")
    assert (met.firing, met.key, met.winner, met.losers) == ("on_budget", "k", "b#1", ("a#1",))
    assert state(played.run)["k"] == "of b"
    same_after_every_cut(played)


def test_a_call_between_two_attempts_is_left_behind() -> None:
    nodes = [plain("p"), *WORK[1:3], WORK[6]]
    graph = compiled(nodes, "p>a p>b a>END b>END short>END", output_key="done",
                     budgets=leading("short", max_llm_calls=2))  # fmt: skip
    played = play(graph)
    played.calls.pop("a#1")
    played.go(e.NodeRetried("a#1", BUSY, 5, 1)).calls.pop("b#1")
    played.go(e.NodeRetried("b#1", BUSY, 5, 1), e.TimerFired("a#1"))
    assert (played.run.status, final_state(played.run)) == ("completed", ("short",))
    assert not played.run.pausing


# -- the run's time --------------------------------------------------------------------------------------------------


def timed(**bounds: Any) -> Played:
    return chain(max_wall_clock_ms=500, **bounds)


def test_a_run_has_its_time_from_its_start_on() -> None:
    played = accepted(compiled(TWO, IN_A_ROW), budgets={"max_wall_clock_ms": 500})
    assert spending.deadline_ms(played.run) is None
    assert spending.overdue(played.run, 10**15) == ()
    played.at_ms = 4_000
    played.go(e.RunStarted())
    assert spending.deadline_ms(played.run) == 4_500
    assert spending.overdue(played.run, 4_499) == ()
    assert played.run.ledger is not None
    assert played.run.ledger.view() == {
        "max_wall_clock_ms": {"max": 500, "deadline_at_ms": 4_500}, "on_budget": "fail",
    }  # fmt: skip
    assert spending.overdue(played.run, 4_600) == (e.BudgetRefused("max_wall_clock_ms", 500, 600),)


def test_a_run_whose_time_is_over_fails_and_what_is_in_flight_ends() -> None:
    played = timed()
    played.go(*spending.overdue(played.run, 1_500))
    assert played.run.error == {
        "code": "BUDGET_EXHAUSTED", "class": "refused", "details": {"budget": "max_wall_clock_ms", "max": 500},
        "message": "the run took longer than its max_wall_clock_ms of 500",
    }  # fmt: skip
    assert not played.run.out
    assert spending.deadline_ms(played.run) is None
    same_after_every_cut(played)


def test_a_run_that_ends_or_stands_aside_has_no_deadline() -> None:
    assert spending.deadline_ms(timed().feed(e.RunCancelRequested("why")).run) is None
    assert spending.deadline_ms(timed().feed(e.RunInterrupted("why")).run) is None
    assert spending.deadline_ms(chain(max_nodes=5).run) is None
    assert spending.overdue(play(compiled(TWO, IN_A_ROW)).run, 10**15) == ()


def test_a_run_whose_time_is_over_stands_still_while_it_asks_for_more() -> None:
    nodes = [plain("p"), llm("a", output_key="a"), llm("b", output_key="b"), llm("c", output_key="c")]
    graph = compiled(nodes, "p>a p>b p>c a>END b>END c>END", output_key="a", max_parallelism=2)
    played = play(graph, budgets={"max_wall_clock_ms": 500, "on_budget": "pause"})
    assert list(played.calls) == ["a#1", "b#1"]
    played.go(*spending.overdue(played.run, 1_600))
    assert played.run.status == "waiting"
    assert not played.run.out, "the calls in flight are closed"
    same_after_every_cut(played)
    played.answer("a#1", "it came all the same")
    assert played.run.status == "waiting"
    played.at_ms = 9_000
    played.calls.clear()
    played.vote("on_budget", "approve")
    assert spending.deadline_ms(played.run) == 9_500, "counted from the decision on"
    assert {path: call.attempt for path, call in played.calls.items()} == {"b#1": 2, "c#1": 1}
    assert played.answer_all().run.status == "completed"
    same_after_every_cut(played)


def test_time_spent_waiting_for_more_of_something_else_does_not_count() -> None:
    played = timed(max_llm_calls=1, on_budget="pause").answer("a#1")
    assert spending.deadline_ms(played.run) is None
    played.at_ms = 1_000_000
    played.vote("on_budget", "approve")
    assert spending.deadline_ms(played.run) == 1_000_499 + 1
    assert played.answer_all().run.status == "completed"


def test_a_refusal_after_a_failure_changes_no_error() -> None:
    played = timed(on_budget="pause")
    played.go(*spending.overdue(played.run, 1_600))
    (gate_,) = played.run.open_approvals
    played.feed(e.FrameFailed({"code": "FIRST", "message": "first"}))
    played.feed(e.ApprovalDecided("on_budget", gate_.approval_id, "reject", "", "ann", "cli"))
    played.feed(e.BudgetRefused("max_wall_clock_ms", 500, 600))
    assert played.run.failure is not None
    assert played.run.failure["code"] == "FIRST"


# -- the canonical record --------------------------------------------------------------------------------------------


def test_grants_and_refusals_are_choices_of_the_record_without_what_is_of_their_moment() -> None:
    played = chain(max_llm_calls=1).answer("a#1")
    choices: Any = canonical_record(played.graph, played.log)["choices"]
    assert choices[0] == {"type": "budget_refused", "budget": "max_llm_calls", "most": 1, "wanted": 1, "firing": "b#1"}
    assert choices[-1] == {"type": "budget_granted", "firing": "a#1"}


def test_the_record_does_not_tell_how_often_a_granted_call_was_made() -> None:
    once = chain(max_llm_calls=9).answer("a#1", "x").answer("b#1", "y")
    twice = chain(max_llm_calls=9).resume().answer("a#1", "x")
    twice.calls.clear()
    twice.go(e.NodeRetried("b#1", BUSY, 0), e.TimerFired("b#1")).answer("b#1", "y")
    assert canonical_record(once.graph, once.log) == canonical_record(twice.graph, twice.log)
