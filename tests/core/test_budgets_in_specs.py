"""What the checker says of a spec's budgets and of where on_budget leads."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.checks.cheapest import least
from agent_graph.core.choices import EXIT
from agent_graph.core.compile import compile_graph
from tests.core.specs import edges, gate, join, llm, loop, parallel, pass_, put, router


def found(nodes: list[Any], *ways: str, **top: Any) -> list[tuple[str, str, str]]:
    spec = {"name": "g", "entry": nodes[0]["id"], "nodes": nodes, "edges": edges(*ways), **top}
    return [(issue.code, issue.severity, issue.pointer) for issue in compile_graph(spec).issues]


ROW = [llm("a"), llm("b"), llm("c")]
BELOW = "BUDGET_BELOW_SHORTEST_PATH"


@pytest.mark.parametrize(
    ("bounds", "issues"),
    [
        ({"max_nodes": 3, "max_llm_calls": 3}, []),
        ({"max_nodes": 2}, [(BELOW, "error", "/budgets/max_nodes")]),
        ({"max_llm_calls": 2, "on_budget": "pause"}, [(BELOW, "warning", "/budgets/max_llm_calls")]),
        ({"max_llm_calls": 2, "on_budget": {"goto": ["c"]}}, [(BELOW, "warning", "/budgets/max_llm_calls")]),
        ({"max_tokens": 1, "max_wall_clock_ms": 1}, []),
    ],
)
def test_a_budget_that_no_run_can_keep_is_named(bounds: Any, issues: Any) -> None:
    assert found(ROW, "a>b>c>END", budgets=bounds) == issues


def test_a_call_that_the_cache_may_answer_is_none_that_is_needed() -> None:
    nodes = [llm("a", cache=True), llm("b")]
    assert not found(nodes, "a>b>END", budgets={"max_llm_calls": 1})


def test_what_only_on_budget_leads_to_may_read_whatever_was_written() -> None:
    nodes = [llm("a", "draft"), llm("b", "final"), {"id": "s", "type": "llm", "prompt": "{draft} {final?}"}]
    leading = {"budgets": {"on_budget": {"goto": ["s"]}}}
    assert not found(nodes, "a>b>END", "s>END", output_key="draft", **leading)


def test_the_repair_is_what_the_shortest_way_takes() -> None:
    spec = {"name": "g", "entry": "a", "nodes": ROW, "edges": edges("a>b>c>END"), "budgets": {"max_nodes": 1}}
    (issue,) = compile_graph(spec).issues
    assert issue.fix == ({"op": "replace", "path": "/budgets/max_nodes", "value": 3},)
    assert issue.message == "`max_nodes` is 1, and the shortest way through the graph takes 3"
    assert not compile_graph({**spec, "budgets": {"max_nodes": 3}}).issues


@pytest.mark.parametrize(
    ("nodes", "ways", "most"),
    [
        ([router("r", ["a"], default=["END"]), llm("a")], ["a>END"], 1),
        ([pass_("p"), llm("a"), llm("b"), join("j")], ["p>a>j", "p>b>j", "j>END"], 3),
        ([parallel("p", "j", "a", "b"), llm("a"), llm("b"), join("j")], ["j>END"], 3),
        ([loop("l", "a", "END"), llm("a")], ["a>l"], 1),
        ([llm("a", cache=True), llm("b")], ["a>b>END"], 2),
        ([gate("h", on_reject=["a"]), llm("a"), llm("b")], ["h>b>a>END"], 2),
    ],
)
def test_the_shortest_way_is_a_lower_bound_and_no_guess(nodes: Any, ways: Any, most: int) -> None:
    assert BELOW not in {code for code, _, _ in found(nodes, *ways, output_key="k", budgets={"max_nodes": most})}
    if most > 1:
        assert BELOW in {code for code, _, _ in found(nodes, *ways, output_key="k", budgets={"max_nodes": most - 1})}


def test_what_leads_to_no_end_costs_nothing_that_could_be_said() -> None:
    assert least([((1,),), ((0,),), ((EXIT,), (0,))], [1, 1, 1]) == [None, None, 1]
    assert least([((1, 2),), ((2,),), ((EXIT,),)], [1, 5, 1]) == [7, 6, 1]


def test_nodes_that_only_on_budget_leads_to_are_reachable() -> None:
    nodes = [llm("a"), put("s"), router("t", ["s"], default=["END"]), put("u")]
    leading = {"budgets": {"on_budget": {"goto": ["s"]}}}
    issues = found(nodes, "a>END", "s>t", "u>END", output_key="k", **leading)
    assert [issue for issue in issues if issue[0] == "NODE_UNREACHABLE"] == [
        ("NODE_UNREACHABLE", "warning", "/nodes/3"),
    ]  # fmt: skip


def test_on_budget_leads_to_no_node_that_runs_for_each_item() -> None:
    config = {"for_each": {"path": "rows"}, "entry": "a", "join": "j", "output_key": "all"}
    nodes = [{"id": "f", "type": "parallel", "config": config}, llm("a"), join("j"), pass_("after")]
    ways = ("a>j>after>END",)
    beside = found(nodes, *ways, output_key="all", budgets={"on_budget": {"goto": ["after"]}})
    assert "REGION_NOT_CLOSED" not in {code for code, _, _ in beside}
    inside = found(nodes, *ways, output_key="all", budgets={"on_budget": {"goto": ["a"]}})
    assert ("REGION_NOT_CLOSED", "error", "/nodes/0/config/join") in inside


def test_a_cycle_without_a_way_out_is_found_there_too() -> None:
    nodes = [llm("a"), put("s"), put("t")]
    leading = {"budgets": {"on_budget": {"goto": ["s"]}}}
    assert ("LOOP_WITHOUT_EXIT", "error", "/nodes/1") in found(nodes, "a>END", "s>t>s", output_key="k", **leading)


def test_on_budget_leads_to_nodes_that_are_there() -> None:
    leading = {"budgets": {"on_budget": {"goto": ["a", "END", "x", "END_RUN"]}}}
    codes = found([llm("a")], "a>END", output_key="k", **leading)
    assert ("UNKNOWN_NODE", "error", "/budgets/on_budget/goto/2") in codes


@pytest.mark.parametrize(
    ("targets", "ambiguous"), [(["s"], False), (["s", "t"], True), (["END"], False), ([], False), (["s", "u"], False)]
)
def test_the_result_is_what_the_end_it_came_to_wrote_and_two_at_once_are_ambiguous(
    targets: list[str], ambiguous: bool
) -> None:
    nodes = [llm("a", "answer"), llm("s", "short"), llm("t", "other"), pass_("u")]
    codes = found(nodes, "a>END", "s>END", "t>END", "u>s", budgets={"on_budget": {"goto": targets}})
    assert ("OUTPUT_AMBIGUOUS" in {code for code, _, _ in codes}) is ambiguous


def test_budgets_are_part_of_the_version_and_their_defaults_are_not() -> None:
    def graph(**top: Any) -> Any:
        return compile_graph({"name": "g", "entry": "a", "nodes": [llm("a")], "edges": edges("a>END"), **top}).graph

    bare = graph()
    assert graph(budgets={}).version == bare.version
    assert graph(budgets=None).version == bare.version
    assert graph(budgets={"on_budget": "fail", "max_tokens": None}).version == bare.version
    bounded = graph(budgets={"max_nodes": 3, "on_budget": "fail"})
    assert bounded.version != bare.version
    assert bounded.budgets == {"max_nodes": 3}


@pytest.mark.parametrize(
    ("bounds", "code", "at"),
    [
        ([], "FIELD_INVALID", "/budgets"),
        ({"max_nodes": 0}, "FIELD_INVALID", "/budgets/max_nodes"),
        ({"max_nodes": True}, "FIELD_INVALID", "/budgets/max_nodes"),
        ({"max_nodes": 2.0}, "FIELD_INVALID", "/budgets/max_nodes"),
        ({"max_nodes": "2"}, "FIELD_INVALID", "/budgets/max_nodes"),
        ({"max_wall_clock": 2}, "UNKNOWN_FIELD", "/budgets/max_wall_clock"),
        ({"on_budget": "stop"}, "FIELD_INVALID", "/budgets/on_budget"),
        ({"on_budget": {"go": []}}, "FIELD_INVALID", "/budgets/on_budget"),
    ],
)
def test_budgets_that_are_none_are_named(bounds: Any, code: str, at: str) -> None:
    issues = found([llm("a")], "a>END", budgets=bounds)
    assert [issue[0] for issue in issues] == [code]
    assert issues[0][2].startswith(at)
