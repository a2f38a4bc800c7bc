"""Where the result of a run is: declared, inferred, or OUTPUT_AMBIGUOUS."""

from __future__ import annotations

from typing import Any

from agent_graph.core.graph import Output
from tests.core.specs import compiled, gate, issues, join, llm, loop, pass_, put, router, spec

CODE = "OUTPUT_AMBIGUOUS"


def output(raw: Any) -> Output:
    graph = compiled(raw).graph
    assert graph is not None
    return graph.output


def test_a_declared_path_is_the_result() -> None:
    assert output(spec([llm("a", "x")], "a>END", output_key="y.z")) == Output("y.z", declared=True)


def test_the_older_name_of_the_current_value_can_be_declared() -> None:
    assert output(spec([llm("a", "x")], "a>END", output_key="__input__")) == Output("", declared=True)


def test_the_one_ending_node_says_where_its_result_is() -> None:
    assert output(spec([llm("a", "x"), llm("b", "y")], "a>b>END")) == Output("y")
    assert output(spec([llm("a", "x"), join("j", "all")], "a>j>END")) == Output("all")
    assert output(spec([llm("a", "x"), llm("b")], "a>b>END")) == Output("")
    assert output(spec([llm("a", "x"), put("t", "y")], "a>t>END")) == Output("")
    assert output(spec([gate("g")], "g>END")) == Output("g")
    assert output(spec([gate("g", output_key="yes")], "g>END")) == Output("yes")


def test_without_any_edge_to_end_the_last_nodes_count() -> None:
    assert output(spec([llm("a", "x"), llm("b", "y")], "a>b")) == Output("y")


def test_a_branch_that_just_stops_beside_one_that_names_end_has_no_say() -> None:
    assert output(spec([pass_("f"), put("log"), llm("b", "y")], "f>log", "f>b>END")) == Output("y")


def test_ends_behind_one_router_may_leave_their_results_in_different_places() -> None:
    nodes = [router("r", ["a"], default=["b"]), llm("a", "x"), llm("b", "y")]
    assert output(spec(nodes, "a>END", "b>END")) == Output(by_end={"a": "x", "b": "y"})
    same = [router("r", ["a"], default=["b"]), llm("a"), llm("b")]
    assert output(spec(same, "a>END", "b>END")) == Output("")


def test_a_fork_whose_branches_meet_before_the_router_is_fine() -> None:
    nodes = [pass_("f"), llm("a", "p"), llm("b", "q"), join("j", "all"), router("r", ["x"], default=["y"]),
             llm("x", "x"), llm("y", "y")]  # fmt: skip
    assert output(spec(nodes, "f>a>j", "f>b>j", "j>r", "x>END", "y>END")) == Output(by_end={"x": "x", "y": "y"})


def test_a_loop_or_a_gate_can_end_a_run_too() -> None:
    assert output(spec([loop("l", "a", "END"), llm("a", "x")], "a>l")) == Output("")
    nodes = [gate("g", on_reject=["END"]), llm("a", "x")]
    assert output(spec(nodes, "g>a>END")) == Output(by_end={"g": "g", "a": "x"})


def test_two_branches_that_both_end_are_ambiguous_and_the_fix_fixes_it() -> None:
    raw = spec([pass_("f"), llm("a", "x"), llm("b", "y")], "f>a>END", "f>b>END")
    (issue,) = issues(raw, CODE)
    assert (issue.severity, issue.pointer, issue.related) == ("error", "/output_key", ("/nodes/1", "/nodes/2"))
    assert issue.message == (
        'a run can end at "a", "b", and nothing says whose result counts: name its path as `output_key`'
    )
    assert issue.fix == ({"op": "add", "path": "/output_key", "value": "y"},)
    assert output({**raw, "output_key": "y"}) == Output("y", declared=True)


def test_ends_that_write_no_key_have_no_fix_because_the_current_value_is_what_none_of_them_said() -> None:
    raw = spec([pass_("f"), *(llm(f"a{i}") for i in range(9))], *(f"f>a{i}>END" for i in range(9)))
    (issue,) = issues(raw, CODE)
    assert issue.fix == ()
    assert '"a7" ...' in issue.message
    assert issue.message.endswith(
        "give the node that says it an `output_key`, and name the same at the top of the graph"
    )


def test_ends_behind_two_routers_of_a_fork_are_ambiguous() -> None:
    nodes = [
        pass_("f"),
        router("r", ["x"], default=["y"]),
        router("s", ["x"], default=["y"]),
        llm("x", "x"),
        llm("y", "y"),
    ]
    assert len(issues(spec(nodes, "f>r", "f>s", "x>END", "y>END"), CODE)) == 1


def test_an_end_beside_a_way_on_is_ambiguous() -> None:
    assert len(issues(spec([llm("a", "x"), llm("b", "y")], "a>b>END", "a>END"), CODE)) == 1


def test_what_leads_to_no_end_of_its_own_does_not_count() -> None:
    nodes = [
        pass_("s"),
        pass_("f"),
        router("r", ["x"], default=["y"]),
        put("log"),
        llm("x", "x"),
        llm("y", "y"),
        llm("z"),
    ]
    assert output(spec(nodes, "s>f", "f>log", "f>r", "x>END", "y>END", "z>END")).by_end == {"x": "x", "y": "y"}
