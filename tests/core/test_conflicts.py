"""PARALLEL_WRITE_CONFLICT: what is found, and what is no conflict."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from tests.core.specs import gate, issues, join, llm, loop, parallel, pass_, put, router, spec

CODE = "PARALLEL_WRITE_CONFLICT"


def council(*keys: str, **top: Any) -> dict[str, Any]:
    analysts = [llm(f"a{i}", key) for i, key in enumerate(keys)]
    fan = [f"fanout>{a['id']}>j" for a in analysts]
    return spec([pass_("fanout"), *analysts, join("j"), llm("syn", "report")], *fan, "j>syn>END", **top)


def conflicts(raw: Any) -> list[tuple[str, ...]]:
    """The names each issue gives."""
    return [tuple(issue.message.split('"')[1::2]) for issue in issues(raw, CODE)]


def test_a_council_that_writes_one_key_is_refused_with_the_key_and_its_nodes() -> None:
    found = compile_graph(council("msg", "msg", "msg"))
    (issue,) = [issue for issue in found.issues if issue.severity == "error"]
    assert (issue.code, issue.pointer, issue.node_id) == (CODE, "/nodes/1", "a0")
    assert issue.related == ("/nodes/2", "/nodes/3")
    assert issue.message == (
        '"a0", "a1" and "a2" write `msg` side by side, and nothing says which counts: give them keys of their own'
        " and join these, or name a reducer for `msg`"
    )
    assert found.graph is None
    assert found.compiled == {}


def test_a_reducer_for_the_key_makes_it_right() -> None:
    assert conflicts(council("msg", "msg", "msg", reducers={"msg": "append"})) == []
    assert conflicts(council("msg.a", "msg.a", "b", reducers={"msg.a": "append"})) == []


def over(node_id: str, **operation: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "state_transform", "config": {"operations": [{"path": "log", **operation}]}}


@pytest.mark.parametrize(
    "operation", [{"op": "delete"}, {"op": "set", "value": [], "replace": True}, {"op": "delete", "path": "log.0"}]
)
def test_overwriting_a_gathered_key_beside_a_contribution_is_a_conflict(operation: dict[str, Any]) -> None:
    adds = [over(name, op="append", value=name) for name in ("a", "b")]
    fork = ["s>a>j", "s>b>j", "s>c>j", "j>END"]
    reducers = {"log": "append"}
    raw = spec([pass_("s"), *adds, over("c", **operation), join("j")], *fork, output_key="log", reducers=reducers)
    (issue,) = issues(raw, CODE)
    assert issue.message.startswith('"a", "b" and "c" write `log` side by side, and its reducer gathers')
    assert "throw some of it away" in issue.message
    before = spec(
        [over("c", **operation), pass_("s"), *adds, join("j")], "c>s", *fork[:2], "j>END", output_key="log",
        reducers=reducers,
    )  # fmt: skip
    assert issues(before, CODE) == []


def test_two_that_only_contribute_are_named_by_no_conflict_of_another_key() -> None:
    both = {"id": "b", "type": "state_transform", "config": {"operations": [
        {"op": "append", "path": "log", "value": 1}, {"op": "set", "path": "x", "value": 1}]}}  # fmt: skip
    twin = {**both, "id": "a"}
    raw = spec(
        [pass_("s"), twin, both, over("c", op="delete"), join("j")], "s>a>j", "s>b>j", "s>c>j", "j>END",
        output_key="log", reducers={"log": "append"},
    )  # fmt: skip
    assert sorted(issue.message.split("`")[1] for issue in issues(raw, CODE)) == ["log", "x"]


def test_keys_of_their_own_and_the_current_value_are_no_conflict() -> None:
    assert conflicts(council("a", "b", "c")) == []
    assert conflicts(council("", "", "")) == []


def test_a_path_inside_another_is_the_same_place() -> None:
    assert conflicts(council("a", "a.b", "c")) == [("a0", "a1")]
    assert conflicts(council("a.b", "a.c", "a.bb")) == []
    assert conflicts(council("/a/b", "a.b", "x")) == [("a0", "a1")]


@pytest.mark.parametrize("mode", ["first", "all"])
def test_handlers_behind_one_router_exclude_each_other(mode: str) -> None:
    nodes = [router("r", ["a"], ["b"], default=["c"], mode=mode), *(llm(n, "response") for n in "abc"), join("j")]
    bare = spec(nodes, "a>j", "b>j", "c>j>END")
    assert conflicts(bare) == []
    assert conflicts(spec(nodes, "r>a>j", "r>b>j", "r>c>j>END")) == []


def test_one_rule_with_two_targets_is_a_fork() -> None:
    nodes = [router("r", ["a", "b"], default=["END"]), llm("a", "x"), llm("b", "x"), join("j")]
    assert conflicts(spec(nodes, "a>j", "b>j>END")) == [("a", "b")]


def test_writing_again_in_order_is_no_conflict() -> None:
    assert conflicts(spec([llm("a", "x"), llm("b", "x"), llm("c", "x")], "a>b>c>END")) == []
    after_join = spec([pass_("f"), llm("a", "a"), llm("b", "b"), join("j", "x"), llm("c", "x")],
                      "f>a>j", "f>b>j", "j>c>END")  # fmt: skip
    assert conflicts(after_join) == []
    waits = spec([pass_("f"), llm("a", "x"), llm("b", "x")], "f>a>b>END", "f>b")
    assert conflicts(waits) == []


def test_a_loop_that_rewrites_a_key_is_no_conflict() -> None:
    nodes = [loop("l", "draft", "done"), llm("draft", "text"), llm("review", "text"), put("done", "text")]
    assert conflicts(spec(nodes, "draft>review>l", "done>END")) == []
    by_router = [llm("draft", "text"), llm("review", "text"), router("r", ["draft"], default=["END"])]
    assert conflicts(spec(by_router, "draft>review>r")) == []


def test_a_council_in_a_loop_conflicts_in_every_round() -> None:
    nodes = [pass_("f"), llm("a", "x"), llm("b", "x"), join("j"), router("r", ["f"], default=["END"])]
    assert conflicts(spec(nodes, "f>a>j", "f>b>j", "j>r")) == [("a", "b")]


def test_one_certain_writer_beside_one_behind_a_router_is_found() -> None:
    nodes = [pass_("f"), llm("a", "x"), router("r", ["b"], default=["END"]), llm("b", "x"), join("j")]
    assert conflicts(spec(nodes, "f>a>j", "f>r", "b>j>END")) == [("a", "b")]


def test_many_certain_writers_beside_a_single_possible_one_are_found() -> None:
    nodes = [pass_("f"), *(llm(n, "x") for n in "abc"), router("r", ["z"], default=["END"]), llm("z", "x"), join("j")]
    assert conflicts(spec(nodes, "f>a>b>c>j>END", "f>r", "z>j")) == [("a", "b", "c", "z")]


def test_two_writers_behind_routers_of_their_own_may_never_meet() -> None:
    nodes = [
        pass_("f"),
        *(router(f"r{n}", [n], default=["END"]) for n in "ab"),
        llm("a", "x"),
        llm("b", "x"),
        join("j"),
    ]
    assert conflicts(spec(nodes, "f>ra", "f>rb", "a>j>END", "b>j")) == []


def test_a_writer_that_the_other_branch_can_lead_to_by_a_later_round_is_not_provable() -> None:
    turns = [router("h", ["f"], ["w2"], default=["END"]), router("r", ["h"], default=["END"])]
    nodes = [*turns, pass_("f"), llm("w1", "x"), llm("w2", "x")]
    assert conflicts(spec(nodes, "f>w1>r", "f>w2>END", output_key="x")) == []


def test_rounds_that_can_mix_are_not_provable() -> None:
    nodes = [pass_("f"), llm("w1", "x"), router("r", ["f"], default=["END"]), llm("w2", "x")]
    assert conflicts(spec(nodes, "f>w1>r", "f>w2>END", output_key="x")) == []


def test_a_branch_that_may_go_back_to_its_fork_first_is_not_certain() -> None:
    nodes = [pass_("f"), router("r", ["f"], default=["w1"]), llm("w1", "x"), router("q", ["w2"], default=["END"]),
             llm("w2", "x")]  # fmt: skip
    assert conflicts(spec(nodes, "f>r", "f>q", "w1>END", "w2>END", output_key="x")) == []


def test_a_writer_after_a_loop_is_certain_all_the_same() -> None:
    nodes = [pass_("f"), loop("l", "body", "a"), llm("body", "y"), llm("a", "x"), llm("b", "x"), join("j")]
    assert conflicts(spec(nodes, "f>l", "body>l", "f>b>j", "a>j>END")) == [("a", "b")]


def test_static_branches_and_an_approved_fork_are_forks() -> None:
    branches = [parallel("p", "j", "a", "b"), llm("a", "x"), llm("b", "x"), join("j")]
    assert conflicts(spec(branches, "j>END")) == [("a", "b")]
    gated = [gate("g", on_reject=["c"]), llm("a", "x"), llm("b", "x"), llm("c", "x"), join("j")]
    assert conflicts(spec(gated, "g>a>j", "g>b>j", "c>j>END")) == [("a", "b")]


def test_a_transform_with_many_paths_names_the_one_that_is_shared() -> None:
    nodes = [pass_("f"), put("a", "p", "q", "shared.deep"), put("b", "r", "shared"), join("j")]
    (issue,) = issues(spec(nodes, "f>a>j", "f>b>j>END"), CODE)
    assert "`shared.deep`" in issue.message
    assert "reducer for `shared`" in issue.message


def test_a_fan_of_hundreds_is_one_issue_that_names_a_few() -> None:
    (issue,) = issues(council(*["x"] * 500), CODE)
    assert len(issue.related) == 11


def test_nothing_is_said_of_nodes_that_never_run() -> None:
    nodes = [pass_("s"), pass_("f"), llm("a", "x"), llm("b", "x"), join("j")]
    assert conflicts(spec(nodes, "s>END", "f>a>j", "f>b>j", "j>END")) == []


def test_the_search_ends_when_it_has_looked_at_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_graph.core.conflicts.PROOFS", 1)
    assert conflicts(council("x", "x", "x")) == [("a0", "a1")]
    monkeypatch.setattr("agent_graph.core.conflicts.STEPS", 0)
    assert conflicts(council("x", "x", "x")) == []
    monkeypatch.setattr("agent_graph.core.conflicts.SIZE", 0)
    assert conflicts(council("x", "x", "x")) == []


def test_ten_thousand_writers_of_one_key_in_order_are_quick() -> None:
    names = [f"n{i}" for i in range(9_000)]
    raw = spec([put(name, "x") for name in names], ">".join([*names, "END"]))
    started = time.process_time()
    assert conflicts(raw) == []
    assert time.process_time() - started < 10
