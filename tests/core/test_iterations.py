"""How long a run may become: the default of `max_iterations` and ITERATIONS_BELOW_LOOPS."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from tests.core.specs import compiled, issues, llm, loop, pass_, put, router, spec

CODE = "ITERATIONS_BELOW_LOOPS"


def bound(raw: Any) -> int:
    graph = compiled(raw).graph
    assert graph is not None
    return graph.max_iterations


def nested(**top: Any) -> dict[str, Any]:
    nodes = [loop("outer", "inner", "END", 10), loop("inner", "work", "outer", 20), put("work")]
    return spec(nodes, "work>inner", **top)


def test_the_default_is_at_least_64_and_twice_the_nodes() -> None:
    assert bound(spec([pass_("a")], "a>END")) == 64
    names = [f"n{i}" for i in range(50)]
    assert bound(spec([pass_(n) for n in names], ">".join(names))) == 100


def test_the_default_has_room_for_all_rounds_of_nested_loops() -> None:
    assert bound(nested()) == 2 * (11 + 11 * 21 + 11 * 21)


def test_a_loop_that_runs_to_its_documented_maximum_fits() -> None:
    assert bound(spec([loop("l", "a", "END", 32), put("a")], "a>l")) == 2 * 33 * 2


def test_a_declared_value_is_taken_as_it_is() -> None:
    assert bound(spec([pass_("a")], "a>END", max_iterations=1)) == 1


def test_a_declared_value_that_no_run_could_finish_with_is_an_error() -> None:
    raw = spec([loop("l", "a", "END", 32), put("a")], "a>l", max_iterations=64)
    (issue,) = issues(raw, CODE)
    assert (issue.severity, issue.pointer, issue.node_id) == ("error", "/max_iterations", "l")
    assert issue.related == ("/nodes/0/config/max_iterations",)
    assert "needs 65 firings in a row" in issue.message
    assert issue.fix == ({"op": "remove", "path": "/max_iterations"},)
    assert bound({**raw, "max_iterations": 65}) == 65


def test_a_loop_that_may_end_sooner_is_a_warning() -> None:
    until = {"path": "ok", "op": "eq", "value": True}
    raw = spec([loop("l", "a", "END", 32, until=until), put("a")], "a>l", max_iterations=64)
    assert [issue.severity for issue in issues(raw, CODE)] == ["warning"]
    assert compile_graph(raw).graph is not None


def test_inner_loops_count_with_all_their_rounds() -> None:
    inner = 1 + 20 * 2
    assert issues(nested(max_iterations=1 + 10 * (1 + inner)), CODE) == []
    assert [issue.node_id for issue in issues(nested(max_iterations=10 * (1 + inner)), CODE)] == ["outer"]


def test_the_shortest_way_through_the_body_counts() -> None:
    nodes = [loop("l", "r", "END", 10), router("r", ["a"], default=["c"]), put("a"), put("b"), put("c"), put("d")]
    raw = spec(nodes, "a>b>c>l", "d>END", max_iterations=31)
    assert issues(raw, CODE) == []
    assert len(issues({**raw, "max_iterations": 30}, CODE)) == 1


def test_ways_of_one_length_are_counted_once() -> None:
    nodes = [loop("l", "r", "END", 10), router("r", ["a"], default=["b"]), *(put(n) for n in "abcd")]
    raw = spec(nodes, "a>c", "b>c>d>l", max_iterations=51)
    assert issues(raw, CODE) == []
    assert len(issues({**raw, "max_iterations": 50}, CODE)) == 1


def test_a_body_that_never_comes_back_needs_nothing() -> None:
    assert issues(spec([loop("l", "a", "END", 32), put("a")], "a>END", max_iterations=2), CODE) == []


def test_a_body_that_comes_back_only_through_a_loop_that_never_ends_is_left_alone() -> None:
    nodes = [loop("l", "m", "END", 9), loop("m", "a", "b", 9), put("a"), llm("b")]
    assert issues(spec(nodes, "a>m", "a>l", "b>END", max_iterations=5, output_key="x"), CODE) != []


@pytest.mark.parametrize("name", ["max_iterations", "recursion_limit"])
def test_the_pointer_names_the_field_that_was_sent(name: str) -> None:
    (issue,) = issues({**spec([loop("l", "a", "END"), put("a")], "a>l"), name: 2}, CODE)
    assert issue.pointer == "/" + name
    assert issue.fix == ({"op": "remove", "path": "/" + name},)
