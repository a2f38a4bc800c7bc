"""core.checks.unsure: what may be missing when it is read, said at the level strict alone."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.checks import unsure
from agent_graph.core.compile import compile_graph
from agent_graph.core.facts import facts
from agent_graph.core.issues import Issue
from tests.core.specs import gate, join, llm, loop, parallel, pass_, put, router, spec, transform

CODE = "KEY_MAYBE_UNWRITTEN"


def found(raw: Any) -> list[Issue]:
    assert CODE not in {issue.code for issue in compile_graph(raw).issues}, "at level semantic nothing is said"
    return [issue for issue in compile_graph(raw, level="strict").issues if issue.code == CODE]


def one(raw: Any) -> Issue:
    (issue,) = found(raw)
    return issue


def reads(name: str, text: str = "{x}", **config: Any) -> dict[str, Any]:
    return {**llm(name, **config), "prompt": text}


def side_way(*middle: dict[str, Any], last: Any = None, **top: Any) -> dict[str, Any]:
    """A choice of which one way writes `x`; then comes what reads it."""
    nodes = [router("r", ["w"], default=["n"]), llm("w", "x"), last or reads("n"), *middle]
    return spec(nodes, "w>n", "n>END", **top)


def test_what_one_way_of_a_choice_leaves_unwritten_is_told_with_that_way_and_repaired() -> None:
    issue = one(side_way())
    assert (issue.severity, issue.pointer, issue.related) == ("warning", "/nodes/2/prompt", ("/nodes/1",))
    assert issue.message == (
        '"n" reads `x`, and on the way "r" > "n" nothing has written it; if the run\'s input brings it, name it in'
        " `input_schema`"
    )
    assert issue.fix == ({"op": "replace", "path": "/nodes/2/prompt", "value": "{x?}"},)
    assert "input_schema" not in one(side_way(input_schema={"type": "string"})).message


def test_what_every_way_writes_or_the_input_brings_is_there() -> None:
    both = [router("r", ["a"], default=["b"]), llm("a", "x"), llm("b", "x"), reads("n")]
    assert found(spec(both, "a>n", "b>n", "n>END")) == []
    assert found(side_way(input_schema={"properties": {"x": {}}})) == []
    assert found(side_way(last=reads("n", "{x?}"))) == []
    assert found(side_way(last=router("n", default=["END"], rules=[
        {"path": "x", "op": "eq", "value": 1, "targets": ["END"]}]))) == []  # fmt: skip
    fork = [pass_("f"), llm("a", "x"), put("b"), join("j"), reads("n")]
    assert found(spec(fork, "f>a>j", "f>b>j", "j>n>END")) == [], "the join waits for both"


def test_a_join_and_a_transform_are_told_only_where_they_fail_without_it() -> None:
    assert found(side_way(last=join("n", "o", "x", "w"))) == []
    issue = one(side_way(last=join("n", "o", "w", on_missing="error")))
    assert (issue.message.partition(", and")[0], issue.fix) == ('"n" reads `w`', ())
    assert one(side_way(last=transform("n", {"op": "copy", "path": "y", "from": "x"}))).fix == ()
    own = transform("n", {"op": "set", "path": "x", "value": 1}, {"op": "copy", "path": "y", "from": "x"})
    assert found(side_way(last=own)) == []
    assert one(side_way(last=reads("n", "{outputs.w}"))).message.endswith("nothing has written it")


def test_a_first_round_has_nothing_of_what_comes_later() -> None:
    ring = [reads("n", "{x}"), llm("w", "x"), router("b", ["n"], default=["END"])]
    assert one(spec(ring, "n>w>b")).message.startswith(
        '"n" reads `x`, and on the way "n" nothing has written it the first time'
    )
    own = [pass_("s"), {**llm("n", "x"), "prompt": "{x}"}, router("b", ["n"], default=["END"])]
    assert "the first time" in one(spec(own, "s>n>b")).message
    beside = [pass_("f"), reads("n"), llm("w", "x"), join("j"), router("b", ["f"], default=["END"])]
    assert "the first time" in one(spec(beside, "f>n>j", "f>w>j>b")).message


def test_a_loop_runs_its_body_before_it_is_left() -> None:
    body = [loop("l", "w", "n"), llm("w", "x"), reads("n")]
    assert found(spec(body, "w>l", "n>END", output_key="x")) == []
    inner = [loop("o", "i", "n"), loop("i", "w", "e"), llm("w", "x"), put("e"), reads("n")]
    assert found(spec(inner, "w>i", "e>o", "n>END")) == []
    other = [loop("l", "a", "n"), router("a", ["w"], default=["l"]), llm("w", "x"), reads("n")]
    assert one(spec(other, "w>l", "n>END")).message.startswith('"n" reads `x`, and on the way "l" > "a" > "n"')
    loose = [loop("l", "b", "n"), llm("b", "x"), reads("n")]
    assert "KEY_READ_BEFORE_WRITE" in {issue.code for issue in compile_graph(spec(loose, "b>END", "n>END")).issues}


def test_a_writer_that_fails_and_goes_on_has_written_nothing() -> None:
    nodes = [llm("w", "x", on_error="continue"), reads("n")]
    assert '"w" may write nothing and go on' in one(spec(nodes, "w>n>END")).message
    nodes = [llm("w", "x", on_error={"goto": ["n"]}), reads("n")]
    assert '"w" may write nothing and go on' in one(spec(nodes, "w>n>END")).message
    ended = [llm("w", "x", on_error={"goto": ["END"]}), reads("n")]
    assert found(spec(ended, "w>n>END")) == []
    waiting = {"id": "w", "type": "signal", "config": {
        "name": "m", "output_key": "x", "expiry_ms": 5, "on_expire": {"goto": ["n"]}}}  # fmt: skip
    assert '"w" may write nothing' in one(spec([waiting, reads("n")], "w>n>END")).message


@pytest.mark.parametrize("path", ["errors.w", "x", "x.deep"])
def test_behind_a_choice_that_looks_for_it_nothing_is_said(path: str) -> None:
    asks = router("r", default=["END"], rules=[{"path": path, "op": "not_exists", "targets": ["n"]}])
    assert found(spec([llm("w", "x", on_error="continue"), asks, reads("n")], "w>r", "n>END")) == []


def test_what_a_join_does_not_wait_for_and_a_branch_that_may_fail_alone_are_no_writers() -> None:
    early = [pass_("f"), llm("w", "x"), put("b"), join("j", wait="any"), reads("n")]
    assert one(spec(early, "f>w>j", "f>b>j", "j>n>END")).message.startswith('"n" reads `x`')
    alone = parallel("p", "j", "w", "b")
    alone["config"]["fail_policy"] = "ignore"
    nodes = [alone, llm("w", "x"), put("b"), join("j"), reads("n")]
    assert one(spec(nodes, "j>n>END")).message.startswith('"n" reads `x`')


def test_a_result_that_some_end_leaves_unwritten_is_told() -> None:
    ends = [router("r", ["w"], default=["END"]), llm("w", "x")]
    issue = one(spec(ends, "w>END", output_key="x"))
    assert (issue.pointer, issue.related, issue.fix) == ("/output_key", ("/nodes/1",), ())
    assert issue.message == (
        "`output_key` names `x` as the result, and a run can end without a node having written it: it fails then"
    )
    assert found(spec([llm("w", "x")], "w>END", output_key="x")) == []
    again = [llm("w", "x"), gate("g", on_request_changes=["w"], on_reject="continue")]
    assert found(spec(again, "w>g>END", output_key="x")) == []


def test_a_long_way_is_shown_by_its_ends() -> None:
    names = [f"s{i}" for i in range(9)]
    nodes = [router("r", ["w"], default=["s0"]), llm("w", "x"), *map(pass_, names), reads("n")]
    issue = one(spec(nodes, "w>s0", ">".join([*names, "n", "END"])))
    assert 'on the way "r" > "s0" > ... > "s7" > "s8" > "n"' in issue.message


def test_what_only_a_budget_leads_to_is_not_judged() -> None:
    nodes = [llm("w", "x"), reads("n")]
    raw = spec(nodes, "w>END", "n>END", budgets={"max_nodes": 5, "on_budget": {"goto": ["n"]}}, output_key="x")
    assert found(raw) == []


def test_what_takes_too_many_steps_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [router("r", ["w"], default=["n"]), llm("w", "x"), reads("n")]
    raw = spec(ends, "w>n", "n>END", output_key="x")
    assert len(found(raw)) == 2
    for left in range(12):
        monkeypatch.setattr(unsure, "STEPS", left)
        assert len(found(raw)) < 2


def test_facts_name_what_may_be_unwritten() -> None:
    graph = compile_graph(side_way()).graph
    assert graph is not None
    nodes: Any = facts(graph)["nodes"]
    assert {name: one["maybe_unwritten"] for name, one in nodes.items()} == {"r": [], "w": [], "n": ["x"]}
