"""Graphs that told readings of the rules apart, each in many worlds and every completion order."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.events import LoopExhausted, WriteConflict
from agent_graph.core.outcome import state
from tests.properties import graphs, laws
from tests.properties.graphs import Case
from tests.properties.second_reading import Reading
from tests.properties.world import World
from tests.sizes import size


def talker(name: str) -> dict[str, Any]:
    return {"id": name, "type": "llm", "config": {"prompt": name + " {input|json}", "output_key": "k_" + name}}


def router(name: str, ways: dict[str, list[str]], *, asks: str, default: list[str]) -> dict[str, Any]:
    rules = [{"path": f"outputs.{asks}", "op": "contains", "value": word, "targets": to} for word, to in ways.items()]
    return {"id": name, "type": "router", "config": {"rules": rules, "default": default}}


def small(nodes: list[dict[str, Any]], edges: str, **more: Any) -> Case:
    """A graph whose edges are written as in ``a>b b>c``; it starts at the first node of `nodes` unless told."""
    wires = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    spec = {
        "spec_version": "2", "name": "known", "entry": nodes[0]["id"], "nodes": nodes, "edges": wires,
        "output_key": "topic", "max_iterations": 40, **more,
    }  # fmt: skip
    graph, codes = graphs.accepted(spec)
    assert graph is not None, codes
    return Case(0, spec, graph, {"topic": "tides"})


def counterexample() -> Case:
    """2>3 0>1 3>1 1>2 1>0 1>3, routers 1 and 3: shorter readings of the rule of circles are not determinate here."""
    first = router("n1", {"yes": ["n2", "n0"], "no": ["n3", "n2"], "deep": ["n0", "n3"]}, asks="n0", default=["n2"])
    second = router("n3", {"yes": ["n1"], "no": ["n1"], "deep": ["n1"]}, asks="n2", default=["END"])
    return small([talker("n0"), first, talker("n2"), second], "n2>n3 n0>n1")


@pytest.mark.timeout(size(60, 1800))
def test_the_known_counterexample_to_shorter_readings_of_the_circles_is_determinate() -> None:
    case, circles = counterexample(), 0
    for seed in range(size(30, 5000)):
        laws.check(case, seed=seed)
        circles += laws.read(case, World(seed), seed).circles
    assert circles >= 15, "no circle had to be broken, so nothing was shown"


def test_a_node_with_two_parents_runs_once_a_round_after_both() -> None:
    again = router("again", {"yes": ["fork"], "no": ["fork"]}, asks="meet", default=["END"])
    nodes = [{"id": "fork", "type": "passthrough"}, talker("a"), talker("b"), talker("meet"), again]
    case = small(nodes, "fork>a fork>b a>meet b>meet meet>again", max_iterations=60)
    for seed in range(10):
        laws.check(case, seed=seed * 10)
        fired = [firing.node for firing in laws.read(case, World(seed * 10), seed).firings.values()]
        assert fired.count("a") == fired.count("b") == fired.count("meet") == fired.count("again")


def test_reducers_fold_contributions_and_count_nothing_twice() -> None:
    nodes = [{"id": "base", "type": "state_transform", "config": {"operations": [push("x")]}}]
    nodes += [{"id": name, "type": "state_transform", "config": {"operations": [push(name)]}} for name in ("a", "b")]
    nodes += [{"id": "meet", "type": "passthrough"}]
    case = small(nodes, "base>a base>b a>meet b>meet", reducers={"log": "append"}, output_key="log")
    drive = laws.check(case, seed=0, every_cut=True)
    assert state(drive.run)["log"] == ["x", "a", "b"]


def push(value: str) -> dict[str, Any]:
    return {"op": "append", "path": "log", "value": value}


def test_a_slow_sibling_holds_up_no_branch_of_its_own() -> None:
    nodes = [{"id": "fork", "type": "passthrough"}, talker("slow"), talker("quick"), talker("next")]
    case = small(nodes, "fork>slow fork>quick quick>next")

    def never_slow(going: Any) -> Any:
        return next((firing for firing in going if firing.node != "slow"), going[0])

    reading = Reading(case.graph, case.run_input, World(), never_slow).run()
    done = [firing.node for firing in reading.finished]
    assert done.index("next") < done.index("slow")
    laws.check(case, seed=0, every_cut=True)


def test_what_one_branch_starts_with_is_not_seen_by_the_other_ones_next_round() -> None:
    branches = [{"id": "first", "entry": "a", "input": "topic"}, {"id": "second", "entry": "b"}]
    nodes: list[dict[str, Any]] = [
        {"id": "fork", "type": "parallel", "config": {"branches": branches, "join": "meet"}},
        {"id": "a", "type": "passthrough"},
        {"id": "b", "type": "llm", "config": {"prompt": "b {input}"}},
        router("again", {"yes": ["fork"], "no": ["fork"], "deep": ["fork"]}, asks="b", default=["meet"]),
        {"id": "meet", "type": "passthrough"},
    ]
    case = small(nodes, "a>END b>again")
    rounds = 0
    for seed in range(0, 200, 10):
        drive = laws.check(case, seed=seed)
        asked = {action.firing: action.effect.messages[0]["content"] for action in drive.performed}
        answers = {path: fact.output[0] for path, fact in drive.finished().items() if path.startswith("b#")}
        for nth in range(2, len(answers) + 1):
            assert asked[f"b#{nth}"] == f"b {answers[f'b#{nth - 1}']}"
            rounds += 1
    assert rounds >= 10


def test_of_nodes_that_wait_for_one_another_those_go_first_that_wait_for_nothing_else() -> None:
    """`late` comes before `u` and `w` in forward order and waits for them; they wait for each other alone."""
    nodes: list[dict[str, Any]] = [
        {"id": "fork", "type": "passthrough"},
        choice("a", {"path": "seen", "op": "not_exists"}, ["u", "w"], ["late"]),
        choice("u", {"path": "never", "op": "exists"}, ["w"], ["mark"]),
        choice("w", {"path": "never", "op": "exists"}, ["u"], ["END"]),
        {
            "id": "mark",
            "type": "state_transform",
            "config": {"operations": [{"op": "set", "path": "seen", "value": 1}]},
        },
        talker("late"),
    ]
    case = small(nodes, "fork>a fork>late mark>a")
    reading = laws.read(case, World(), 0)
    assert [name for name in reading.forward if name in ("late", "u", "w")] == ["late", "u", "w"]
    assert reading.circles == 1
    assert list(laws.check(case, seed=0, every_cut=True).finished()) == [
        "fork#1", "a#1", "u#1", "mark#1", "a#2", "w#1", "late#1",
    ]  # fmt: skip


def choice(name: str, predicate: dict[str, Any], targets: list[str], default: list[str]) -> dict[str, Any]:
    return {"id": name, "type": "router", "config": {"rules": [{**predicate, "targets": targets}], "default": default}}


def test_a_token_from_the_body_counts_as_a_round_when_one_from_outside_is_taken_with_it() -> None:
    counts = [{"op": "increment", "path": "count"}]
    nodes: list[dict[str, Any]] = [
        {"id": "twice", "type": "state_transform", "config": {"operations": counts}},
        talker("pause"),
        choice("again", {"path": "count", "op": "lt", "value": 2}, ["twice"], ["END"]),
        {"id": "loop", "type": "loop", "config": {"entry": "body", "exit": "END", "max_iterations": 2}},
        talker("body"),
    ]
    for ways_in in ("twice>loop body>loop", "body>loop twice>loop"):
        case = small(nodes, f"{ways_in} twice>pause pause>again")
        drive = laws.check(case, seed=0, every_cut=True)
        told = [event.fact for event in drive.log if isinstance(event.fact, LoopExhausted)]
        assert told == [LoopExhausted("loop#3", 2)]


def test_a_write_conflict_is_told_once_where_the_writes_first_meet() -> None:
    rules = [{"path": "topic", "op": "exists", "targets": [name]} for name in ("a", "b", "c")]
    write = [{"op": "set", "path": "p", "value": 1}]
    nodes: list[dict[str, Any]] = [
        {"id": "all", "type": "router", "config": {"rules": rules, "default": ["END"], "mode": "all"}},
        {"id": "a", "type": "state_transform", "config": {"operations": write}},
        {"id": "b", "type": "state_transform", "config": {"operations": write}},
        talker("c"),
        {"id": "first", "type": "passthrough"},
        {"id": "second", "type": "passthrough"},
    ]
    case = small(nodes, "a>first b>first first>second c>second")
    drive = laws.check(case, seed=0, every_cut=True)
    told = [event.fact for event in drive.log if isinstance(event.fact, WriteConflict)]
    assert told == [WriteConflict("first#1", "p", "b#1", ("a#1",))]


def test_a_gate_in_a_static_branch_leads_to_the_join_whatever_else_it_can_choose() -> None:
    branches = [{"id": "first", "entry": "draft"}, {"id": "second", "entry": "b"}]
    nodes: list[dict[str, Any]] = [
        {"id": "fork", "type": "parallel", "config": {"branches": branches, "join": "meet"}},
        talker("draft"),
        {"id": "gate", "type": "human_approval", "config": {"prompt": "good?", "on_request_changes": ["draft"]}},
        talker("b"),
        talker("meet"),
    ]
    case = small(nodes, "draft>gate")
    for seed in range(0, 100, 10):
        drive = laws.check(case, seed=seed)
        if drive.run.status == "completed":
            assert [path for path in drive.finished() if path.startswith("meet#")] == ["meet#1"]
            assert drive.finished()["meet#1"].firing == list(drive.finished())[-1]
