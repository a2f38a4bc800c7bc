"""`merge` "each": a node fires once for every token, and what a firing is hangs on where its token came from."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.record import canonical_record
from tests.core.played import Played, compiled, does, folded, llm, plain, play, router


def each(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "config": {**node.get("config", {}), "merge": "each"}}


MERGE = compiled(
    [plain("s"), llm("a", "a", output_key="a"), llm("b", "b", output_key="b"), each(llm("x", "{a?}{b?}")), plain("z")],
    "s>a s>b a>x b>x x>END", output_key="input",
)  # fmt: skip


def test_it_does_not_wait_for_the_other_branch() -> None:
    at = play(MERGE, {"input": 1}).answer("b#1", "B")
    assert list(at.calls) == ["a#1", "x#2.1"]
    assert at.prompt("x#2.1") == "B", "what the other branch writes is not in its past"
    at.answer("a#1", "A")
    assert list(at.calls) == ["x#2.1"], "one at a time"
    at.answer("x#2.1")
    assert at.prompt("x#1.1") == "A"
    assert at.answer("x#1.1").run.status == "completed"


def test_a_firing_is_named_by_its_edge_and_the_count_on_it() -> None:
    names = set()
    for order in itertools.permutations(["a#1", "b#1"]):
        at = play(MERGE, {"input": 1})
        for firing in order:
            at.answer(firing)
        at.answer_all()
        record: Any = canonical_record(MERGE, at.log)
        names.add(tuple(sorted(one["path"] for one in record["firings"])))
        assert [one["path"] for one in record["firings"]][-2:] == ["x#1.1", "x#2.1"], "in the order of the edges"
    assert names == {("a#1", "b#1", "s#1", "x#1.1", "x#2.1")}


def test_its_past_holds_the_firing_before_on_the_same_edge_and_no_other() -> None:
    gathered = compiled(
        [plain("s"), llm("a"), llm("b"), each(does("x", {"op": "append", "path": "seen", "value": 1})), plain("z")],
        "s>a s>b a>x b>x x>END", output_key="seen", reducers={"seen": "append"},
    )  # fmt: skip
    at = play(gathered, {"seen": []}).answer("a#1").answer("b#1")
    record: Any = canonical_record(gathered, at.log)
    assert record["final_state"] == [[1, 1]]
    assert at.facts(e.WriteConflict) == []


def test_two_firings_that_write_one_key_side_by_side_are_a_conflict_in_the_order_of_the_edges() -> None:
    graph = compiled(
        [plain("s"), llm("a", output_key="a"), llm("b", output_key="b"), each(llm("x", "{a?}{b?}", output_key="x"))],
        "s>a s>b a>x b>x x>END", output_key="x",
    )  # fmt: skip
    for order in (["a#1", "x#1.1", "b#1", "x#2.1"], ["b#1", "x#2.1", "a#1", "x#1.1"]):
        at = play(graph)
        for firing in order:
            at.answer(firing, firing)
        (met,) = at.facts(e.WriteConflict)
        assert (met.key, met.winner, met.losers) == ("x", "x#2.1", ("x#1.1",))
        assert canonical_record(graph, at.log)["final_state"] == ["x#2.1"]


def test_what_follows_it_fires_as_often_and_the_order_is_a_recorded_choice() -> None:
    graph = compiled(
        [plain("s"), llm("a", output_key="a"), llm("b", output_key="b"), each(plain("x")), llm("y", "{a?}{b?}")],
        "s>a s>b a>x b>x x>y y>END", output_key="a",
    )  # fmt: skip
    found = defaultdict(list)
    for order in itertools.permutations(["a#1", "b#1"]):
        at = play(graph)
        for firing in order:
            at.answer(firing, firing)
        at.answer_all()
        record: Any = canonical_record(graph, at.log)
        assert [one["path"] for one in record["firings"] if one["path"].startswith("y")] == ["y#1", "y#2"]
        found[str(record["choices"])].append(record)
    assert len(found) == 2
    assert all(record == each_[0] for each_ in found.values() for record in each_)


@pytest.mark.parametrize("rounds", [1, 3])
def test_tokens_of_one_edge_are_counted_round_by_round(rounds: int) -> None:
    nodes = [
        {"id": "l", "type": "loop", "config": {"entry": "a", "exit": "END", "max_iterations": rounds}},
        each(llm("a", "{outputs.a?}")),
    ]  # fmt: skip
    at = play(compiled(nodes, "a>l", output_key="x"), {"x": 1})
    said = []
    while at.calls:
        (firing,) = at.calls
        said.append((firing, at.prompt(firing)))
        at.answer(firing, firing)
    assert said == [(f"a#1.{n}", f"a#1.{n - 1}" if n > 1 else "") for n in range(1, rounds + 1)]


def test_tokens_that_wait_are_taken_by_turns() -> None:
    nodes = [plain("s"), *(llm(name) for name in "abc"), each(llm("x"))]
    graph = compiled(nodes, "s>a s>b s>c a>x b>x c>x x>END", output_key="x")
    at = play(graph, {"x": 1})
    for firing in ("c#1", "b#1", "a#1"):
        at.answer(firing)
    order = []
    while at.calls:
        (firing,) = at.calls
        order.append(firing)
        at.answer(firing)
    assert order == ["x#3.1", "x#1.1", "x#2.1"]


def test_a_join_takes_no_each() -> None:
    node = {"id": "j", "type": "join", "config": {"merge": "each"}}
    spec = {"name": "g", "entry": "j", "nodes": [node], "edges": []}
    from agent_graph.core.compile import compile_graph

    assert [(one.code, one.pointer) for one in compile_graph(spec).issues if one.severity == "error"] == [
        ("FIELD_INVALID", "/nodes/0/config/merge")
    ]


def test_it_is_the_same_after_a_replay_and_from_a_snapshot() -> None:
    at = play(MERGE, {"input": 1}).answer("b#1").answer("a#1")
    again, loaded = folded(MERGE, at.log), checkpoint.load(MERGE, checkpoint.dump(at.run))
    assert checkpoint.dump(again) == checkpoint.dump(loaded) == checkpoint.dump(at.run)
    rest = Played(MERGE, loaded, [*at.log]).go().answer_all()
    assert canonical_record(MERGE, rest.log) == canonical_record(MERGE, at.answer_all().log)


def test_a_node_that_is_routed_to_twice_fires_twice() -> None:
    nodes = [plain("s"), router("r", "in", {"go": ["x"]}, default=[]), llm("a"), each(llm("x"))]
    at = play(compiled(nodes, "s>r s>a a>x x>END", output_key="in"), {"in": "go"}).answer("x#2.1").answer("a#1")
    assert list(at.calls) == ["x#1.1"]
