"""core.facts: what a graph is, and the bounds of what a run of it costs."""

from __future__ import annotations

from typing import Any

from agent_graph.core.checks.counting import calls_a_firing
from agent_graph.core.facts import facts
from agent_graph.core.graph import Graph
from tests.core.specs import compiled, gate, join, llm, loop, parallel, pass_, put, router, spec


def graph(raw: Any) -> Graph:
    found = compiled(raw).graph
    assert found is not None
    return found


def told(raw: Any) -> Any:
    return facts(graph(raw))


def test_who_reads_and_writes_what_and_what_must_run_before() -> None:
    found = told(spec([llm("a", "x"), {**llm("b", "y"), "prompt": "{x} {x} {z?}"}, put("c")], "a>b>c>END"))
    assert found["nodes"]["b"] == {
        "reads": ["x", "z"], "maybe_unwritten": [], "writes": ["y"], "writes_current": False, "dominator": "a",
    }  # fmt: skip
    assert found["nodes"]["a"]["dominator"] is None
    assert (found["longest_path"], found["node_count"], found["unreachable"]) == (3, 3, [])


def test_cycles_are_told_with_their_exits_and_bounds() -> None:
    raw = spec([loop("l", "b", "z", 4), put("b"), put("z"), router("r", ["l"], default=["END"]), pass_("alone")],
               "b>l", "z>r")  # fmt: skip
    found = told(raw)
    (cycle,) = found["cycles"]
    assert cycle == {
        "nodes": ["l", "b", "z", "r"], "exits": [{"from": "r", "to": "END"}],
        "loops": [{"node": "l", "max_iterations": 4}], "bound": found["max_iterations"],
    }  # fmt: skip
    assert (found["in_cycles"], found["unreachable"]) == (["l", "b", "z", "r"], ["alone"])
    ring = told(spec([put("a"), router("r", ["a"], ["x"], default=["END"]), put("x")], "a>r"))
    assert ring["cycles"][0]["exits"] == [{"from": "r", "to": "x"}, {"from": "r", "to": "END"}]


def test_branches_that_exclude_each_other_are_told_by_the_node_that_chooses() -> None:
    inner = router("q", ["c"], default=["d"])
    nodes = [router("r", ["a"], ["b"], default=["END"]), put("a"), inner, *map(put, "cdbz")]
    found = told(spec(nodes, "a>q", "b>z>END", "c>z", "d>z"))
    assert found["exclusive"] == [
        {"node": "r", "branches": [["a", "q", "c", "d"], ["b"]]}, {"node": "q", "branches": [["c"], ["d"]]},
    ]  # fmt: skip
    ring = [put("s"), router("r", ["a"], default=["b"]), put("a"), put("b"), router("t", ["s"], default=["END"])]
    again = told(spec(ring, "s>r", "a>t", "b>t"))
    assert again["exclusive"] == [], "in the next round the other one is taken"
    every = told(spec([router("r", ["a"], default=["b"], mode="all"), put("a"), put("b")]))
    assert every["exclusive"] == []
    assert told(spec([put("a")], "a>END"))["exclusive"] == []


def test_the_number_of_calls_of_a_chain_and_of_a_choice() -> None:
    chain = told(spec([llm("a"), llm("b", retry={"max_attempts": 1})], "a>b>END"))
    assert chain["model_calls"] == {"worst": 4, "likely": 2, "least": 2}
    nodes = [router("r", ["a"], default=["b"]), llm("a"), llm("c"), llm("b")]
    choice = told(spec(nodes, "a>c>END", "b>END"))
    assert choice["model_calls"] == {"worst": 6, "likely": 2, "least": 1}
    both = told(spec([router("r", ["a"], default=["b"], mode="all"), llm("a"), llm("b")], "a>END", "b>END"))
    assert both["model_calls"] == {"worst": 6, "likely": 2, "least": 1}


def test_what_one_firing_asks_at_most() -> None:
    config = graph(spec([llm("a", output_schema={"type": "number"}, fallback_models=["m"])], "a>END")).nodes[0].config
    assert calls_a_firing(config) == 3 * 2 * 2


def test_loops_multiply_and_other_cycles_go_to_the_bound() -> None:
    once = {"max_attempts": 1}
    nested = [loop("o", "i", "END", 3), loop("i", "b", "c", 2), llm("b", retry=once), llm("c", retry=once)]
    assert told(spec(nested, "b>i", "c>o"))["model_calls"] == {"worst": 3 * 2 + 3, "likely": 2, "least": 0}
    ring = [llm("a", retry=once), router("r", ["a"], default=["END"])]
    found = told(spec(ring, "a>r", max_iterations=50))
    assert found["model_calls"] == {"worst": 50, "likely": 1, "least": 1}
    tight = told(spec([*nested], "b>i", "c>o", max_iterations=1_000))
    assert tight["model_calls"]["worst"] == 9
    fed = [put("a"), router("r", ["a"], default=["END"]), llm("log", retry=once)]
    assert told(spec(fed, "a>r", "a>log>END", max_iterations=40, output_key="of_a"))["model_calls"]["worst"] == 40


def test_how_many_calls_can_be_under_way_at_once() -> None:
    council = spec([pass_("f"), llm("a"), pass_("p"), llm("b"), llm("c"), join("j"), llm("z")],
                   "f>a>j", "f>p>b>j", "f>c>j", "j>z>END")  # fmt: skip
    assert told(council)["widest_parallelism"] == 3
    choice = spec([router("r", ["a"], default=["b", "c"]), llm("a"), llm("b"), llm("c")], output_key="x")
    assert told(choice)["widest_parallelism"] == 2
    every = spec([router("r", ["a"], default=["b"], mode="all"), llm("a"), llm("b")], output_key="x")
    assert told(every)["widest_parallelism"] == 2
    split = spec([parallel("p", "j", "a", "b"), llm("a"), llm("b"), join("j")])
    assert (told(split)["widest_parallelism"], told(spec([put("a")]))["widest_parallelism"]) == (2, 0)


def test_a_gate_on_the_way_is_no_call() -> None:
    assert told(spec([gate("g"), llm("a")], "g>a>END"))["model_calls"]["likely"] == 1


def test_what_runs_for_each_item_has_no_bound() -> None:
    each = {"id": "p", "type": "parallel", "config": {"for_each": {"path": "list"}, "entry": "a", "join": "j"}}
    found = told(spec([put("s", "list"), each, llm("a"), join("j", "", "a")], "s>p", "j>END"))
    assert found["model_calls"]["worst"] is None


def test_a_graph_inside_is_counted_with_its_own_numbers() -> None:
    inner = graph({**spec([llm("a", retry={"max_attempts": 2}), llm("b")], "a>b>END"), "name": "inner"})
    outer = spec([{"id": "s", "type": "subgraph", "config": {"graph_name": "inner"}}, llm("z")], "s>z>END")
    from agent_graph.core.compile import compile_graph

    made = compile_graph(outer, stored={("inner", ""): inner}).graph
    assert made is not None
    assert facts(made)["model_calls"] == {"worst": 8, "likely": 3, "least": 3}
    own = {"id": "s", "type": "subgraph", "config": {"graph_name": "g", "allow_recursion": True}}
    again = told(spec([router("r", ["s"], default=["END"]), own], "s>END"))
    assert again["model_calls"]["worst"] is None


def test_a_large_graph_is_not_listed_pair_by_pair() -> None:
    nodes = [router("r", ["n0"], default=["x"]), put("x"), *(pass_(f"n{i}") for i in range(2_000))]
    chain = ">".join(f"n{i}" for i in range(2_000))
    assert told(spec(nodes, f"{chain}>END"))["exclusive"] == []
