"""core.checks.repairs: a repair that does not hold is not offered."""

from __future__ import annotations

from agent_graph.core.checks import repairs
from agent_graph.core.compile import compile_graph
from agent_graph.core.issues import Issue
from tests.core.specs import llm, spec


def test_what_cannot_be_applied_or_would_write_over_something_is_no_repair() -> None:
    steps = [{"op": "remove", "path": "/nothing"}, {"op": "move", "from": "/a", "path": "/b"}]
    issues = [Issue("X", "m", fix=(step,)) for step in steps]  # type: ignore[arg-type]  # JSON
    found = repairs.proved({"a": 1, "b": 2}, issues, judged=True, check=lambda _: (True, ()))
    assert [issue.fix for issue in found] == [(), ()]


def test_a_repair_that_makes_parts_of_the_graph_wrong_is_none() -> None:
    issue = Issue("X", "m", fix=({"op": "remove", "path": "/a"},))
    assert repairs.proved({"a": 1}, [issue], judged=True, check=lambda _: (False, ()))[0].fix == ()
    assert repairs.proved({"a": 1}, [issue], judged=True, check=lambda _: (True, ()))[0].fix != ()


def test_a_field_is_not_moved_over_one_that_is_there() -> None:
    node = llm("a", "x")
    node["config"]["ouput_key"] = "y"
    (issue,) = [one for one in compile_graph(spec([node], "a>END")).issues if one.code == "UNKNOWN_FIELD"]
    assert issue.fix == ()


def test_while_parts_are_wrong_a_repair_is_not_blamed_for_what_it_brings_to_light() -> None:
    node = llm("a", "spare")
    node["config"]["ouput_schema"] = {"type": "string"}
    raw = spec([node, llm("b")], "a>b", "b>c")
    raw["edges"][1]["to"] = "ba"
    found = {issue.code: issue.fix for issue in compile_graph(raw).issues}
    assert (
        found["UNKNOWN_NODE"] == ({"op": "replace", "path": "/edges/1/to", "value": "b"},)
        or found["UNKNOWN_NODE"] == ()
    )
    assert found["UNKNOWN_FIELD"][0]["path"] == "/nodes/0/config/output_schema"
