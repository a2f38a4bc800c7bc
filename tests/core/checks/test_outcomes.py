"""core.checks: results nobody writes, products nobody reads, branches without an end, joins that cannot be met."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.checks import quorums
from agent_graph.core.checks.keys import plain
from tests.core.specs import codes, gate, issues, join, llm, pass_, put, router, spec


def test_a_result_nobody_writes_is_told_with_what_was_meant() -> None:
    (issue,) = issues(spec([llm("a", "report")], "a>END", output_key="reprot"), "OUTPUT_NEVER_WRITTEN")
    assert (issue.severity, issue.pointer) == ("warning", "/output_key")
    assert issue.message == (
        "`output_key` names `reprot` as the result, but no node writes it, and a run that ends without it fails;"
        ' did you mean "report"?'
    )
    assert issue.fix == ({"op": "replace", "path": "/output_key", "value": "report"},)
    (issue,) = issues(spec([llm("a", "x1"), llm("b", "x2")], "a>b>END", output_key="zzzz"), "OUTPUT_NEVER_WRITTEN")
    assert (issue.message.rpartition("; ")[2], issue.fix) == ("there is `x1`, `x2`", ())
    (issue,) = issues(spec([llm("a", "x1")], "a>END", output_key="zzzz"), "OUTPUT_NEVER_WRITTEN")
    assert issue.fix[0]["value"] == "x1"
    many = [llm(f"n{i}", f"k{i}") for i in range(6)]
    chain = ">".join(node["id"] for node in many) + ">END"
    (issue,) = issues(spec(many, chain, output_key="zzzz"), "OUTPUT_NEVER_WRITTEN")
    assert issue.message.endswith("`k4` and more")
    (issue,) = issues(spec([llm("a")], "a>END", output_key="zzzz", input_schema={"type": "string"}),
                      "OUTPUT_NEVER_WRITTEN")  # fmt: skip
    assert issue.severity == "error"


@pytest.mark.parametrize("key", ["report.title", "outputs.a", "topic", "__input__", "/report", ".."])
def test_a_result_that_may_be_there_is_no_issue(key: str) -> None:
    raw = spec([llm("a", "report")], "a>END", output_key=key, input_schema={"properties": {"topic": {}}})
    assert issues(raw, "OUTPUT_NEVER_WRITTEN") == []
    assert plain("..") == ()


def test_a_product_nobody_reads_is_an_info() -> None:
    (issue,) = issues(spec([llm("a", "notes"), llm("b")], "a>b>END"), "OUTPUT_NEVER_READ")
    assert (issue.severity, issue.pointer, issue.node_id) == ("info", "/nodes/0/config/output_key", "a")
    raw = spec([llm("a"), join("j", "all", "a"), llm("b")], "a>j>b>END")
    assert [issue.pointer for issue in issues(raw, "OUTPUT_NEVER_READ")] == ["/nodes/1/config/output"]


@pytest.mark.parametrize("prompt", ["{notes}", "{outputs.a}", "{outputs.a.x}", "{notes.x}", "{notes.x.y?}"])
def test_a_product_that_is_read_in_any_way_is_none(prompt: str) -> None:
    raw = spec([llm("a", "notes.x"), {**llm("b"), "prompt": prompt}], "a>b>END")
    assert issues(raw, "OUTPUT_NEVER_READ") == []


def test_what_leads_into_a_cycle_without_an_end_is_told_once() -> None:
    raw = spec([put("s"), put("a"), put("x"), put("y"), put("b")], "s>a>x>y>x", "s>b>END")
    assert codes(raw) == [("LOOP_WITHOUT_EXIT", "/nodes/2"), ("NO_PATH_TO_END", "/nodes/0")]
    (issue,) = issues(raw, "NO_PATH_TO_END")
    assert (issue.node_id, issue.related) == ("s", ("/nodes/2",))
    assert issue.message.startswith('whatever is chosen behind "s", one of its branches gets to "x" and never ends')
    raw = spec([router("r", ["a"], default=["END"]), put("a"), put("x"), put("y")], "a>x>y>x")
    (issue,) = issues(raw, "NO_PATH_TO_END")
    assert issue.node_id == "a"
    assert issues(spec([put("x"), put("y")], "x>y>x"), "NO_PATH_TO_END") == []


def chosen(*inputs: str, **config: Any) -> dict[str, Any]:
    """Two ways that exclude each other, and what they join."""
    nodes = [router("r", ["a", "c"], default=["b"]), put("a", "ra"), put("b", "rb"), put("c", "rc"),
             join("j", "o", *inputs, **config)]  # fmt: skip
    return spec(nodes, "a>j", "b>j", "c>j", "j>END")


def test_a_quorum_of_inputs_that_exclude_each_other_is_impossible() -> None:
    (issue,) = issues(chosen("ra", "rb", "rc", mode="quorum", required=3), "JOIN_QUORUM_IMPOSSIBLE")
    assert (issue.severity, issue.pointer) == ("warning", "/nodes/4/config/required")
    assert issue.message == (
        '"j" asks for 3 of its 3 inputs, and no run has more than 2: the others come from ways that exclude each other'
    )
    assert issue.related == ("/nodes/1", "/nodes/2", "/nodes/3")
    assert issue.fix == ({"op": "add", "path": "/nodes/4/config/required", "value": 2},)
    assert issues(chosen("ra", "rc", "rb", mode="quorum", required=2), "JOIN_QUORUM_IMPOSSIBLE") == []
    assert issues(chosen("outputs.r", "ra", mode="all_success", require=True), "JOIN_QUORUM_IMPOSSIBLE") == []
    (issue,) = issues(chosen("ra", "rb", mode="all_success", require=True), "JOIN_QUORUM_IMPOSSIBLE")
    assert issue.fix == ({"op": "add", "path": "/nodes/4/config/require", "value": False},)
    assert issues(chosen("ra", "rb", mode="all_success"), "JOIN_QUORUM_IMPOSSIBLE") == []


def test_what_may_be_there_anyhow_makes_a_quorum_possible() -> None:
    raw = chosen("ra", "rb", mode="quorum", required=2)
    assert issues({**raw, "input_schema": {"properties": {"rb": {}}}}, "JOIN_QUORUM_IMPOSSIBLE") == []
    assert issues(chosen("ra", "zz", mode="quorum", required=2), "JOIN_QUORUM_IMPOSSIBLE") == []
    raw["nodes"][0]["config"]["mode"] = "all"
    assert issues(raw, "JOIN_QUORUM_IMPOSSIBLE") == []
    again = chosen("ra", "rb", mode="quorum", required=2)
    again["nodes"].append(router("more", ["r"], default=["END"]))
    again["edges"] = [edge for edge in again["edges"] if edge["from"] != "j"] + [{"from": "j", "to": "more"}]
    assert issues(again, "JOIN_QUORUM_IMPOSSIBLE") == [], "in another round the other way is taken"
    one = spec([router("r", ["a"], default=["b"]), put("a", "x"), put("b", "x"), put("c", "y"),
                join("j", "o", "x", "y", mode="quorum", required=2)], "a>c>j", "b>c", "j>END")  # fmt: skip
    assert issues(one, "JOIN_QUORUM_IMPOSSIBLE") == []


def test_a_quorum_of_node_ids_is_counted_too() -> None:
    nodes = [router("r", ["a"], default=["b"]), llm("a"), llm("b"),
             join("j", "o", "a", "outputs.b", mode="quorum", required=2)]  # fmt: skip
    (issue,) = issues(spec(nodes, "a>j", "b>j", "j>END"), "JOIN_QUORUM_IMPOSSIBLE")
    assert issue.related == ("/nodes/1", "/nodes/2")


def test_the_largest_set_that_can_be_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three routers: of each pair one, so three of the six."""
    nodes: list[dict[str, Any]] = [pass_("f")]
    ways = []
    for i in range(3):
        nodes += [router(f"r{i}", [f"a{i}"], default=[f"b{i}"]), put(f"a{i}", f"ka{i}"), put(f"b{i}", f"kb{i}")]
        ways += [f"f>r{i}", f"a{i}>j", f"b{i}>j"]
    inputs = [f"k{side}{i}" for i in range(3) for side in "ab"]
    raw = spec([*nodes, join("j", "o", *inputs, mode="quorum", required=4)], *ways, "j>END")
    (issue,) = issues(raw, "JOIN_QUORUM_IMPOSSIBLE")
    assert issue.fix[0]["value"] == 3
    monkeypatch.setattr(quorums, "_STEPS", 2)
    assert issues(raw, "JOIN_QUORUM_IMPOSSIBLE") == [], "what takes too long to tell is not said"


def test_a_gate_behind_what_has_already_been_done_is_told() -> None:
    post = {"id": "post", "type": "http", "config": {"connection": "c", "method": "POST"}}
    raw = spec([llm("draft"), post, gate("g", on_reject=["END"])], "draft>post>g>END")
    (issue,) = issues(raw, "APPROVAL_AFTER_EFFECT")
    assert (issue.severity, issue.node_id, issue.related) == ("warning", "g", ("/nodes/1",))
    assert (
        issue.message == '"g" asks whether to go on when "post" has already acted; put the gate before what it is about'
    )
    assert issues(spec([llm("draft"), gate("g"), post], "draft>g>post>END"), "APPROVAL_AFTER_EFFECT") == []
    second = {"id": "again", "type": "tool", "config": {"connection": "c", "tool": "t"}}
    assert issues(spec([post, gate("g"), second], "post>g>again>END"), "APPROVAL_AFTER_EFFECT") == []
    post["config"]["method"] = "GET"
    assert issues(raw, "APPROVAL_AFTER_EFFECT") == []
    many = [{"id": f"t{i}", "type": "tool", "config": {"connection": "c", "tool": "t"}} for i in range(4)]
    (issue,) = issues(spec([*many, gate("g")], "t0>t1>t2>t3>g>END"), "APPROVAL_AFTER_EFFECT")
    assert '"t0" and "t1" and "t2" and others has already acted' in issue.message
    assert issues(spec([*many], "t0>t1>t2>t3>END"), "APPROVAL_AFTER_EFFECT") == []


@pytest.mark.parametrize(("kind", "config", "unsafe"), [
    ("tool", {"tool": "t"}, True),
    ("tool", {"tool": "t", "idempotent": True}, False),
    ("http", {"method": "POST"}, True),
    ("http", {"method": "PUT"}, False),
    ("http", {}, False),
    ("graphql", {"document": "mutation { x }"}, True),
    ("graphql", {"document": "{ x }"}, False),
    ("graphql", {"document": "mutation { x }", "idempotent": True}, False),
])  # fmt: skip
def test_a_call_that_could_be_made_twice_is_not_retried(kind: str, config: dict[str, Any], unsafe: bool) -> None:
    node = {"id": "a", "type": kind, "config": {"connection": "c", **config, "retry": {"max_attempts": 2}}}
    found = issues(spec([node], "a>END"), "EFFECT_RETRY_UNSAFE")
    assert [issue.fix for issue in found] == [({"op": "remove", "path": "/nodes/0/config/retry"},)] * unsafe
    node["config"]["retry"] = {"max_attempts": 1}
    assert issues(spec([node], "a>END"), "EFFECT_RETRY_UNSAFE") == []


def test_changes_that_nobody_makes_are_an_info() -> None:
    (issue,) = issues(spec([llm("a"), gate("g")], "a>g>END"), "REQUEST_CHANGES_NO_LOOP")
    assert (issue.severity, issue.node_id) == ("info", "g")
    assert "the same is asked again" in issue.message
    assert issue.fix == (
        {"op": "add", "path": "/nodes/1/config/allowed_decisions", "value": ["approve", "reject"]},
    )  # fmt: skip
    (issue,) = issues(spec([llm("a"), gate("g", on_request_changes=["z"]), put("z")], "a>g>z>END"),
                      "REQUEST_CHANGES_NO_LOOP")  # fmt: skip
    assert ("never comes back here" in issue.message, issue.fix) == (True, ())
    for way in (["a"], "continue"):
        assert issues(spec([llm("a"), gate("g", on_request_changes=way)], "a>g>END"), "REQUEST_CHANGES_NO_LOOP") == []
    for decisions in (["approve", "reject"],):
        raw = spec([llm("a"), gate("g", allowed_decisions=decisions)], "a>g>END")
        assert issues(raw, "REQUEST_CHANGES_NO_LOOP") == []
    (issue,) = issues(spec([gate("g", allowed_decisions=["request_changes"])], "g>END"), "REQUEST_CHANGES_NO_LOOP")
    assert issue.fix == ()
    assert issues(spec([llm("a"), gate("g")], "a>END"), "REQUEST_CHANGES_NO_LOOP") == []
