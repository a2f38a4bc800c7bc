"""Shapes that went wrong elsewhere, as the checker sees them before anything runs; the runs are in tests/scenarios."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from tests.core.specs import join, llm, pass_, put, router, spec


def said(raw: Any) -> list[tuple[str, str]]:
    return [(issue.code, issue.severity) for issue in compile_graph(raw).issues]


@pytest.mark.parametrize("mode", ["first_non_null", "collect_array"])
def test_JB02_two_ways_of_a_router_may_meet_in_a_join(mode: str) -> None:
    raw = spec([put("s", "k"), router("r", ["a"], default=["b"]), put("a", "ra"), put("b", "rb"),
                join("j", "o", "ra", "rb", mode=mode), put("z", "done")],
               "s>r", "a>j", "b>j", "j>z>END", output_key="o")  # fmt: skip
    assert said(raw) == []


def test_JB08_a_way_back_is_no_parent_the_first_round_waits_for() -> None:
    review = [{"path": "review", "op": "contains", "value": "OK", "targets": ["done"]}]
    raw = spec([put("s"), join("pre"), llm("gen", "text"), {**llm("rev", "review"), "prompt": "{text}"},
                router("r", rules=review, default=["pre"]), put("done")],
               "s>pre>gen>rev>r", "done>END", output_key="text")  # fmt: skip
    assert said(raw) == []


def test_JB13_a_plain_node_may_have_two_parents() -> None:
    count = {"id": "t", "type": "state_transform", "config": {"operations": [{"op": "increment", "path": "n"}]}}
    assert said(spec([pass_("s"), put("a"), put("b"), count], "s>a>t", "s>b>t", "t>END", output_key="n")) == []


def test_ST03_workers_that_write_one_key_without_a_reducer_are_refused_with_the_key_and_their_names() -> None:
    workers = [llm(f"a{i}", "msg") for i in range(3)]
    nodes = [pass_("fan"), *workers, join("j"), {**llm("syn", "report"), "prompt": "{msg}"}]
    ways = [*(f"fan>a{i}>j" for i in range(3)), "j>syn>END"]
    found = compile_graph(spec(nodes, *ways))
    assert found.graph is None
    (issue,) = found.issues
    assert (issue.code, issue.severity) == ("PARALLEL_WRITE_CONFLICT", "error")
    assert issue.message.startswith('"a0", "a1" and "a2" write `msg` side by side')
    assert (issue.pointer, issue.related) == ("/nodes/1", ("/nodes/2", "/nodes/3"))
    assert said(spec(nodes, *ways, reducers={"msg": "append"})) == []
