"""A mutex has one holder in the whole run; the order is a fact, and nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.failure import follow_up
from agent_graph.core.record import canonical_record
from tests.core.played import Played, compiled, folded, gate, llm, plain, play, sub

THREE = compiled(
    [plain("s"), *(llm(name, mutex="m", output_key=name) for name in "abc"), llm("free")],
    "s>a s>b s>c s>free", output_key="a",
)  # fmt: skip


def granted(at: Played) -> list[str]:
    return [fact.firing for fact in at.facts(e.MutexGranted)]


def test_one_holds_it_and_the_others_stand_in_line() -> None:
    at = play(THREE)
    assert sorted(at.calls) == ["a#1", "free#1"]
    assert at.answer("a#1").run.mutexes["m"].holders == ["b#1"]
    at.answer("free#1").answer("b#1").answer("c#1")
    assert (at.run.status, granted(at), at.run.mutexes) == ("completed", ["a#1", "b#1", "c#1"], {})


def test_it_is_given_in_the_order_in_which_they_came() -> None:
    graph = compiled(
        [plain("s"), llm("p"), llm("q"), llm("a", mutex="m"), llm("b", mutex="m"), llm("h", mutex="m")],
        "s>p s>q s>h p>a q>b", output_key="x",
    )  # fmt: skip
    at = play(graph, {"x": 1}).answer("q#1").answer("p#1").answer("h#1")
    assert list(at.calls) == ["b#1"]
    assert granted(at) == ["h#1", "b#1"]
    assert at.answer("b#1").answer("a#1").run.status == "completed"


def test_who_stands_in_line_holds_no_place_of_the_run() -> None:
    graph = compiled(
        [plain("s"), llm("a", mutex="m"), llm("b", mutex="m"), llm("c")], "s>a s>b s>c", max_parallelism=2,
        output_key="x",
    )  # fmt: skip
    at = play(graph, {"x": 1})
    assert sorted(at.calls) == ["a#1", "c#1"]


def test_names_do_not_know_each_other() -> None:
    graph = compiled([plain("s"), llm("a", mutex="m"), llm("b", mutex="n")], "s>a s>b", output_key="x")
    assert list(play(graph).calls) == ["a#1", "b#1"]


@pytest.mark.parametrize("targets", [None, "continue"])
def test_who_fails_lets_go(targets: str | None) -> None:
    graph = compiled(
        [plain("s"), llm("a", mutex="m", on_error="continue" if targets else "fail"), llm("b", mutex="m")], "s>a s>b",
        output_key="x",
    )  # fmt: skip
    at = play(graph, {"x": 1})
    failed = e.NodeFailed("a#1", {"code": "MODEL_REFUSED", "message": "no", "class": "refused"})
    at.go(follow_up(at.run, failed))
    assert at.run.status == ("running" if targets else "failed")
    assert list(at.calls) == (["a#1", "b#1"] if targets else ["a#1"])
    assert granted(at) == (["a#1", "b#1"] if targets else ["a#1"])
    assert at.run.mutexes == {} or at.run.mutexes["m"].holders == ["b#1"]


def test_who_pauses_between_two_attempts_keeps_it() -> None:
    at = play(THREE)
    at.go(follow_up(at.run, e.NodeFailed("a#1", {"code": "MODEL_OVERLOADED", "message": "no", "class": "overloaded"})))
    assert at.run.mutexes["m"].holders == ["a#1"]
    at.calls.clear()
    at.go(e.TimerFired("a#1"))
    assert list(at.calls) == ["a#1"]


def test_a_gate_can_hold_it_and_who_waits_for_it_waits() -> None:
    graph = compiled([plain("s"), gate("g", mutex="m"), llm("b", mutex="m")], "s>g s>b", output_key="x")
    at = play(graph, {"x": 1})
    assert (at.run.status, at.calls) == ("waiting", {})
    at.vote("g#1", "approve")
    assert list(at.calls) == ["b#1"]


def test_the_end_of_the_run_leaves_nobody_in_line() -> None:
    at = play(THREE).cancel()
    assert (at.run.status, at.run.mutexes) == ("cancelled", {})
    assert {fact.firing for fact in at.facts(e.FiringCancelled)} == {"a#1", "b#1", "c#1", "free#1"}


def test_a_node_in_a_loop_takes_it_anew_each_time() -> None:
    nodes = [
        {"id": "l", "type": "loop", "config": {"entry": "a", "exit": "END", "max_iterations": 3}}, llm("a", mutex="m"),
    ]  # fmt: skip
    at = play(compiled(nodes, "a>l", output_key="x"), {"x": 1}).answer_all()
    assert (at.run.status, granted(at)) == ("completed", ["a#1", "a#2", "a#3"])


def test_facts_about_who_does_not_stand_in_line_change_nothing() -> None:
    at = play(THREE)
    before = checkpoint.dump(at.run)
    at.feed(e.MutexGranted("a#1", "m"), e.MutexGranted("b#1", "other"), e.MutexGranted("gone#1", "m"))
    at.run.seq -= 3
    assert checkpoint.dump(at.run) == before


INNER = compiled(
    [plain("s"), llm("a", mutex="m", output_key="x"), llm("b", mutex="m")], "s>a s>b", name="inner", output_key="x"
)


def test_one_name_is_one_name_in_all_frames() -> None:
    graph = compiled(
        [plain("s"), sub("f", "inner"), sub("g", "inner"), llm("c", mutex="m")], "s>f s>g s>c", output_key="y",
        inner=[INNER],
    )  # fmt: skip
    at = play(graph, {"y": 1})
    order: list[str] = []
    while at.calls:
        (firing,) = at.calls
        order.append(firing)
        at.answer(firing)
    assert at.run.status == "completed"
    assert sorted(order) == ["c#1", "f#1/a#1", "f#1/b#1", "g#1/a#1", "g#1/b#1"]
    assert granted(at) == order


def test_an_owner_lends_it_to_those_inside_and_to_nobody_else() -> None:
    graph = compiled(
        [plain("s"), sub("f", "inner", mutex="m"), llm("c", mutex="m")], "s>f s>c", output_key="y", inner=[INNER]
    )
    at = play(graph, {"y": 1})
    assert list(at.calls) == ["f#1/a#1"]
    at.answer("f#1/a#1")
    assert list(at.calls) == ["f#1/b#1"]
    at.answer("f#1/b#1")
    assert list(at.calls) == ["c#1"]
    assert granted(at.answer("c#1")) == ["f#1", "f#1/a#1", "f#1/b#1", "c#1"]


def run_in(order: list[str]) -> Played:
    at = play(THREE)
    while at.calls:
        at.answer(next((name for name in order if name in at.calls), next(iter(at.calls))))
    return at


def crossed(**config: Any) -> Played:
    """Two fan-outs side by side: each holds a name inside which the other's is wanted."""
    each = {"for_each": {"path": "xs"}}
    graph = compiled(
        [plain("s"), par("one", "a", "aj", mutex="m", output_key="p", **each),
         llm("a", mutex="n", **config), meet("aj", "a", "item"),
         par("two", "b", "bj", mutex="n", output_key="q", **each), llm("b", mutex="m"), meet("bj", "b")],
        "s>one s>two a>aj b>bj aj>END bj>END", output_key="q",
    )  # fmt: skip
    return play(graph, {"xs": [1, 2]})


def par(name: str, entry: str, join: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "parallel", "config": {"entry": entry, "join": join, **config}}


def meet(name: str, *inputs: str) -> dict[str, Any]:
    return {"id": name, "type": "join", "config": {"inputs": [*inputs]}}


def test_owners_that_wait_for_each_other_are_told_of() -> None:
    at = crossed()
    error = at.run.error or {}
    assert (at.run.status, error["code"], error["node_path"]) == ("failed", "MUTEX_DEADLOCK", "one#1[0]/a#1")
    assert error["details"] == {"mutex": "n", "holder": "two#1"}
    assert at.calls == {}


def test_a_graph_can_go_on_where_owners_waited_for_each_other() -> None:
    at = crossed(on_error="continue")
    assert list(at.calls) == ["two#1[0]/b#1"], "the first owner is through, the second goes on"
    at.answer_all()
    assert (at.run.status, len(at.facts(e.NodeFailed))) == ("completed", 2), "one for each item"


def test_whoever_takes_a_run_up_finds_the_circle_too() -> None:
    log = crossed().log
    cut = next(place for place, event in enumerate(log) if isinstance(event.fact, e.NodeFailed)) - 1
    run = folded(crossed().graph, log[:cut])
    assert (run.deadlocked, run.status) == (True, "running"), "a waiting run would be left alone"


def test_the_order_is_recorded_and_changes_nothing_else() -> None:
    graph = compiled(
        [plain("s"), llm("p"), llm("q"), llm("a", mutex="m", output_key="a"), llm("b", mutex="m", output_key="b")],
        "s>p s>q p>a q>b", output_key="a",
    )  # fmt: skip
    records: list[Any] = []
    for first, second in (("p#1", "q#1"), ("q#1", "p#1")):
        at = play(graph).answer(first).answer(second).answer_all()
        records.append(canonical_record(graph, at.log))
    choices = [record.pop("choices") for record in records]
    assert records[0] == records[1]
    assert [[one["firing"] for one in each] for each in choices] == [["a#1", "b#1"], ["b#1", "a#1"]]


def test_it_is_the_same_after_a_replay_and_from_a_snapshot() -> None:
    at = run_in(["free#1", "a#1"])
    for cut in range(2, len(at.log) + 1):
        again = folded(THREE, at.log[:cut])
        loaded = checkpoint.load(THREE, checkpoint.dump(again))
        assert checkpoint.dump(loaded) == checkpoint.dump(again)
        rest = Played(THREE, loaded, at.log[:cut]).go().answer_all()
        assert canonical_record(THREE, rest.log)["choices"] == canonical_record(THREE, at.log)["choices"]
