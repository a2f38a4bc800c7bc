"""A gate placed before a node while the run is under way: who is stopped, who goes on, and the same after any cut."""

from __future__ import annotations

import pytest

from agent_graph.core import barriers, checkpoint
from agent_graph.core import events as e
from agent_graph.core.outcome import final_state
from agent_graph.core.record import canonical_record
from agent_graph.core.scheduler import evolve
from agent_graph.errors import InvalidArgument, RunTerminal
from tests.core.played import Played, accepted, compiled, folded, gate, llm, play

GRAPH = compiled([llm("a"), llm("b"), llm("c", on_error="continue")], "a>b b>c c>END")
WIDE = compiled([llm(name) for name in ("s", "x", "y", "z")], "s>x s>y x>z y>z z>END", max_parallelism=1)


def bar(run: Played, node: str, **more: object) -> Played:
    fact = barriers.place(run.graph, run.run, node, prompt="May it?", expiry_ms=5, by="ann", via="cli", **more)  # type: ignore[arg-type]  # as named
    return run.go(fact)


def test_what_has_not_begun_asks_and_begins_when_it_may() -> None:
    run = bar(play(GRAPH), "b").answer("a#1", "first")
    assert (run.run.status, list(run.calls)) == ("waiting", [])
    (asks,) = run.run.open_approvals
    assert (asks.node_id, asks.firing, asks.round, asks.prompt) == ("b", "b#1", 0, "May it?")
    assert asks.subject == {"node_id": "b", "node_type": "llm", "current": "first"}
    run.vote("b#1", "approve").answer("b#1").answer("c#1")
    assert run.run.status == "completed"
    assert [one.firing for one in run.facts(e.NodeStarted)] == ["a#1", "b#1", "c#1"]
    assert canonical_record(GRAPH, run.log)["approvals"] == [
        {"path": "b#1", "round": 0, "status": "approved", "votes": []}
    ]


@pytest.mark.parametrize(("how", "code"), [("reject", "APPROVAL_REJECTED"), ("expire", "APPROVAL_EXPIRED")])
def test_nothing_goes_past_it_but_a_yes_whatever_on_error_says(how: str, code: str) -> None:
    run = bar(play(GRAPH), "c").answer("a#1").answer("b#1")
    run = run.expire("c#1") if how == "expire" else run.vote("c#1", "reject")
    assert run.run.status == "failed"
    assert (run.run.error or {})["code"] == code
    assert not run.calls


def test_what_has_begun_goes_on_and_one_that_is_replaced_asks_as_the_last_one_says() -> None:
    run = bar(bar(bar(play(GRAPH), "a"), "b"), "b", decisions=("approve",), audience=("legal",))
    assert list(run.calls) == ["a#1"]
    run.answer("a#1")
    (asks,) = run.run.open_approvals
    assert (asks.allowed_decisions, asks.audience) == (("approve",), ("legal",))


def test_who_waits_for_a_place_is_stopped_and_lets_the_next_one_have_it() -> None:
    run = play(WIDE).answer("s#1")
    assert list(run.calls) == ["x#1"]
    run.feed(barriers.place(WIDE, run.run, "y", prompt="May it?", expiry_ms=5))
    assert (barriers.barred(run.run, "y"), barriers.barred(run.run, "x")) == (["y#1"], [])
    assert [one.firing for one in run.go().run.open_approvals] == ["y#1"]
    run.vote("y#1", "approve")
    assert list(run.calls) == ["x#1"]  # it is let begin, and has no place yet
    run.answer("x#1").answer("y#1").answer("z#1")
    assert (run.run.status, run.run.places) == ("completed", 0)


def test_a_firing_with_a_place_and_no_first_step_gives_it_back() -> None:
    run = play(WIDE)
    call = run.calls.pop("s#1")
    run.feed(e.ModelAnswered("s#1", {"text": "ok"}, call.attempt), e.NodeFinished("s#1", output=("ok",)))
    assert (list(run.run.open), list(run.run.queue)) == (["x#1"], ["y#1"])
    bar(run, "x")
    assert (list(run.calls), [one.firing for one in run.run.open_approvals]) == (["y#1"], ["x#1"])
    run.vote("x#1", "approve").answer("y#1").answer("x#1").answer("z#1")
    assert (run.run.status, run.run.places) == ("completed", 0)


def test_it_stays_and_a_later_firing_asks_anew() -> None:
    looped = compiled(
        [
            llm("a"),
            {"id": "again", "type": "loop", "config": {"entry": "b", "exit": "END", "max_iterations": 2}},
            llm("b"),
        ],
        "a>again b>again",
    )
    run = bar(play(looped), "b").answer("a#1").vote("b#1", "approve").answer("b#1")
    assert [one.firing for one in run.run.open_approvals] == ["b#2"]


def test_the_gate_before_a_gate_is_no_answer_to_it() -> None:
    graph = compiled([llm("a"), gate("g")], "a>g g>END")
    run = bar(play(graph), "g").answer("a#1").vote("g#1", "approve")
    (asks,) = run.run.open_approvals
    assert (asks.firing, asks.round) == ("g#1", 1)
    run.vote("g#1", "approve")
    assert run.run.status == "completed"


def test_one_placed_before_the_start_holds_the_first_node() -> None:
    run = accepted(GRAPH)
    bar(run, "a").go(e.RunStarted())
    assert [one.firing for one in run.run.open_approvals] == ["a#1"]
    assert run.cancel().run.status == "cancelled"
    assert [one.status for one in run.run.gates.values()] == ["withdrawn"]


def test_a_node_that_is_none_and_a_run_that_has_ended_are_refused() -> None:
    run = play(GRAPH)
    with pytest.raises(InvalidArgument) as unknown:
        barriers.place(GRAPH, run.run, "bb", prompt="x", expiry_ms=1)
    assert unknown.value.details["known"] == ["a", "b", "c"]
    run.feed(e.RunCancelRequested("enough"))
    for state in (run, run.go()):
        with pytest.raises(RunTerminal):
            barriers.place(GRAPH, state.run, "b", prompt="x", expiry_ms=1)


@pytest.mark.parametrize("decision", ["approve", "reject"])
@pytest.mark.parametrize("graph", [GRAPH, WIDE], ids=["chain", "wide"])
def test_it_is_the_same_run_after_any_cut_and_from_any_snapshot(graph: object, decision: str) -> None:
    """Driven on from every prefix of the log, by replay and by snapshot: the same facts come."""
    made = GRAPH if graph is GRAPH else WIDE
    last = made.nodes[-1].id
    whole = bar(play(made), last).answer_all()
    whole.vote(f"{last}#1", decision).answer_all()
    assert whole.run.terminal
    record = canonical_record(made, whole.log)
    for cut in range(1, len(whole.log) + 1):
        again = folded(made, whole.log[:cut])
        loaded = checkpoint.load(made, checkpoint.dump(again))
        assert checkpoint.dump(loaded) == checkpoint.dump(again)
        for event in whole.log[cut:]:
            loaded = evolve(made, loaded, event)
        assert (loaded.lifecycle, loaded.places, loaded.barriers) == (whole.run.lifecycle, 0, whole.run.barriers)
    assert canonical_record(made, whole.log) == record


@pytest.mark.parametrize("node", ["s", "x", "y", "z"])
def test_wherever_it_is_placed_a_yes_leads_to_the_same_result(node: str) -> None:
    plain = play(WIDE).answer_all()
    for cut in range(1, len(plain.log)):
        prefix = plain.log[:cut]
        run = Played(WIDE, folded(WIDE, prefix), [*prefix])
        if run.run.lifecycle == "new" or run.run.terminal:
            continue
        bar(run, node)
        if run.run.lifecycle == "accepted":
            run.go(e.RunStarted())
        run.answer_all()
        began = any(isinstance(event.fact, e.NodeStarted) and event.fact.firing == f"{node}#1" for event in prefix)
        assert bool(run.run.open_approvals) is not began
        if not began:
            run.vote(f"{node}#1", "approve").answer_all()
        assert (run.run.status, run.run.places) == ("completed", 0)
        assert final_state(run.run) == final_state(plain.run)
