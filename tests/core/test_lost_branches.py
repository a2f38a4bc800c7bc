"""Static branches that may fail: the rest of the branch is ended, and what it knew goes to the join as one token."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.graph import Graph
from agent_graph.core.outcome import errors, final_state
from agent_graph.core.record import canonical_record
from tests.core.played import Played, compiled, does, folded, gate, llm, plain, play, router, sub, writes


def fork(policy: str, *entries: str, **config: Any) -> dict[str, Any]:
    branches = [{"id": entry, "entry": entry} for entry in entries]
    return {"id": "p", "type": "parallel", "config": {
        "branches": branches, "join": "j", "fail_policy": policy, **config}}  # fmt: skip


def join(*inputs: str, **config: Any) -> dict[str, Any]:
    return {"id": "j", "type": "join", "config": {"inputs": [*inputs], **config}}


def council(policy: str, **joining: Any) -> Graph:
    nodes = [fork(policy, "a", "b"), llm("a", output_key="ra"), llm("a2", output_key="ra2"), llm("b", output_key="rb")]
    return compiled([*nodes, join("ra2", "b", **joining), llm("last", "{input|json}")], "a>a2 a2>j b>j j>last")


NO = {"error": {"code": "MODEL_NOT_FOUND", "message": "no"}}


@pytest.mark.parametrize(("policy", "there"), [("collect_partial", NO), ("ignore", None)])
@pytest.mark.parametrize("first", [True, False])
def test_a_failed_branch_leaves_a_mark_in_its_place_and_the_join_fires_once(
    policy: str, there: Any, first: bool
) -> None:
    at = play(council(policy))
    for path in ("a#1", "b#1") if first else ("b#1", "a#1"):
        at.fail(path) if path == "a#1" else at.answer(path, "B")
    assert at.facts_of("j")[0].current == ([there, "B"],)
    assert [*at.calls] == ["last#1"]
    assert errors(at.answer("last#1", "end").run) == {"a": NO["error"]}
    assert (at.run.status, final_state(at.run)) == ("completed", ("end",))
    (failed,) = at.facts(e.BranchFailed)
    assert (failed.parallel, failed.branch, failed.error["node_path"]) == ("p", "a", "a#1")
    assert not at.facts(e.FrameFailed)


def test_a_failed_branch_counts_against_a_quorum() -> None:
    at = play(council("collect_partial", mode="quorum", required=2)).fail("a#1").answer("b#1", "B")
    assert at.facts_of("j")[0].current == ({"met": False, "approvals": 1, "required": 2},)


def test_fail_fast_fails_the_run_as_ever() -> None:
    assert play(council("fail_fast")).fail("a#1").run.status == "failed"


def test_what_a_branch_wrote_before_it_failed_goes_on() -> None:
    nodes = [fork("ignore", "w", "b"), writes("w", k=1), llm("a"), llm("b"), join("k", "a", "b")]
    at = play(compiled(nodes, "w>a a>j b>j j>END")).fail("a#1").answer("b#1", "B")
    assert final_state(at.run) == ([1, None, "B"],)


def wide() -> Graph:
    """A branch that forks itself, with a gate, a graph inside, and a node that waits for two."""
    inner = compiled([llm("x"), llm("y")], "x>y", name="inner")
    nodes = [
        fork("collect_partial", "f", "b"), plain("f"), llm("a"), gate("g"), sub("s", "inner"), llm("done"),
        plain("meet"), llm("b"), join("meet", "b", "a", "done"),
    ]  # fmt: skip
    return compiled(nodes, "f>a f>g f>s f>done a>meet g>meet s>meet meet>j done>j b>j j>END", inner=[inner])


def test_all_that_runs_in_a_failed_branch_is_cancelled_and_its_tokens_are_gathered() -> None:
    at = play(wide()).answer("done#1", "D").answer("b#1", "B").fail("a#1")
    cancelled = [(fact.firing, fact.reason) for fact in at.facts(e.FiringCancelled)]
    assert cancelled == [(path, "the branch failed") for path in ("s#1/x#1", "g#1", "s#1")]
    assert [one.status for one in at.run.gates.values()] == ["withdrawn"]
    assert (at.run.status, [*at.run.frames], at.run.losing) == ("completed", [""], {})
    assert final_state(at.run) == ([NO, "B", NO, "D"],)
    assert [path for path in (fact.firing for fact in at.facts(e.NodeStarted)) if path[0] == "j"] == ["j#1"]


def test_two_failures_of_one_branch_are_one_failed_branch() -> None:
    at = play(wide())
    at.feed(*(e.NodeFailed(path, {"code": code, "message": "no", "class": "not_found"}) for path, code in
              (("a#1", "FIRST"), ("done#1", "SECOND"), ("a#1", "AGAIN"))))  # fmt: skip
    at.calls.pop("a#1"), at.calls.pop("done#1")
    at.go().answer("b#1", "B")
    assert [fact.error["code"] for fact in at.facts(e.BranchFailed)] == ["FIRST"]
    assert {name: one["code"] for name, one in errors(at.run).items()} == {"a": "FIRST", "done": "SECOND"}  # type: ignore[index,call-overload]
    assert at.run.status == "completed"


def test_the_closest_parallel_that_puts_up_with_it_takes_a_failure() -> None:
    inner = {
        "id": "q",
        "type": "parallel",
        "config": {
            "branches": [{"id": "x", "entry": "x"}, {"id": "y", "entry": "y"}],
            "join": "k",
            "fail_policy": "ignore",
        },
    }
    nodes = [fork("collect_partial", "q", "b"), inner, llm("x"), llm("y"), llm("b"),
             {"id": "k", "type": "join", "config": {"inputs": ["x", "y"]}}, join("k", "b")]  # fmt: skip
    graph = compiled(nodes, "x>k y>k k>j b>j j>END")
    at = play(graph).fail("x#1").answer("y#1", "Y").answer("b#1", "B")
    assert final_state(at.run) == ([[None, "Y"], "B"],)
    both = play(graph).fail("x#1").fail("y#1").answer("b#1", "B")
    assert both.run.error is None
    assert final_state(both.run) == ([{"error": both.facts(e.BranchFailed)[2].error and {
        "code": "JOIN_NO_INPUTS", "message": both.facts(e.BranchFailed)[2].error["message"]}}, "B"],)  # fmt: skip


def test_a_failed_branch_of_one_round_says_nothing_of_the_next() -> None:
    nodes = [
        does("n", {"op": "increment", "path": "n"}), fork("collect_partial", "a", "b"), llm("a"), llm("b"),
        join("a", "b"), router("r", "again", {"y": ["n"]}, ["END"]),
    ]  # fmt: skip
    at = play(compiled(nodes, "n>p a>j b>j j>r"), {"again": "y", "n": 0})
    at.fail("a#1").answer("b#1", "B1").answer("b#2", "B2").answer("a#2", "A2")
    assert [fact.current for fact in at.facts_of("j")] == [([NO, "B1"],), (["A2", "B2"],)]


def test_a_run_that_ends_while_a_branch_is_lost_ends_all_of_it() -> None:
    at = play(wide()).feed(e.NodeFailed("a#1", {"code": "X", "message": "no", "class": "not_found"}))
    assert at.run.status == "running"
    again = Played(at.graph, checkpoint.load(at.graph, checkpoint.dump(at.run)), [*at.log]).cancel()
    assert again.run.status == "cancelled"
    assert not again.facts(e.BranchFailed)
    assert not again.run.frame or not again.run.frame.running


def through(at: Played) -> Played:
    while at.calls or at.run.open_approvals:
        for path in [*at.calls]:
            if path in at.calls:
                at.fail(path) if path == "a#1" else at.answer(path, path)
        for open_ in at.run.open_approvals:
            at.vote(open_.firing, "approve")
    return at


WHOLE = through(play(wide()))


@pytest.mark.parametrize("cut", range(3, len(WHOLE.log)))
def test_a_run_cut_anywhere_and_taken_up_again_comes_to_the_same(cut: int) -> None:
    graph, log = WHOLE.graph, WHOLE.log[:cut]
    run = folded(graph, log)
    compiled_again = compile_graph(
        graph.spec, stored={(one.name, one.version): one for one in graph.subgraphs.values()}
    )
    stored = load_graph(graph.spec, graph.version, compiled_again.compiled, subgraphs=graph.subgraphs)
    for begun in (run, checkpoint.load(stored, checkpoint.dump(run))):
        again = through(Played(stored, begun, [*log]).go())
        assert final_state(again.run) == final_state(WHOLE.run)
        assert again.run.status == "completed"
        if cut > len(WHOLE.log) - 6:
            assert canonical_record(graph, again.log) == canonical_record(graph, WHOLE.log)


def test_facts_about_branches_that_are_not_lost_change_nothing() -> None:
    at = play(council("ignore"))
    before = checkpoint.dump(at.run)
    error = {"code": "X", "message": "y"}
    at.feed(e.BranchFailed("p", "a", error), e.BranchFailed("p", "zz", error), e.BranchFailed("nobody", "a", error),
            e.BranchFailed("p", "a", error, "gone#1/"))  # fmt: skip
    at.run.seq -= 4
    assert checkpoint.dump(at.run) == before


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ([llm("a"), llm("b"), llm("x")], "a>x b>x x>j"),
        ([llm("a"), llm("b"), llm("x")], "a>x x>END b>j"),
        ([llm("a"), router("b", "k", {"x": ["p"]}, ["j"])], "a>j"),
        ([llm("a"), router("b", "k", {"x": ["END"]}, ["j"])], "a>j"),
        ([llm("a"), llm("b"), llm("c"), llm("d")], "a>j b>c c>d d>c"),
        ([{"id": "s", "type": "passthrough"}, llm("a"), llm("b")], "s>p s>a a>j b>j"),
        ([{"id": "s", "type": "passthrough"}, llm("a"), llm("b"), llm("c")], "s>p s>c c>j a>j b>j"),
    ],
    ids=["two lead to one", "one ends", "one leads back", "one chooses END", "one never ends", "a way in",
         "another way to the join"],
)  # fmt: skip
def test_branches_that_may_fail_alone_are_parts_of_their_own(nodes: list[dict[str, Any]], edges: str) -> None:
    wires = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    entry = "s" if nodes[0]["id"] == "s" else "p"
    whole = [fork("ignore", "a", "b"), *nodes, join()]
    found = compile_graph({"name": "g", "entry": entry, "nodes": whole, "edges": wires})
    assert ("REGION_NOT_CLOSED", "/nodes/0/config/join") in [(one.code, one.pointer) for one in found.issues]


def test_a_join_that_does_not_wait_for_all_has_no_branches_that_may_fail_alone() -> None:
    nodes = [fork("ignore", "a", "b"), llm("a"), llm("b"), join("a", wait="any")]
    found = compile_graph({"name": "g", "entry": "p", "nodes": nodes})
    assert [(one.code, one.pointer) for one in found.issues if one.severity == "error"] == [
        ("REGION_NOT_CLOSED", "/nodes/0/config/join")
    ]


def test_what_is_missing_for_other_reasons_is_no_error_of_a_branch() -> None:
    nodes = [fork("collect_partial", "a", "b"), llm("a"), router("b", "k", {"x": ["c"]}, ["j"]),
             llm("c", output_key="rc"), join("a", "c", "rc", "topic")]  # fmt: skip
    at = play(compiled(nodes, "a>j c>j j>END"), {"k": ""}).answer("a#1", "A")
    assert final_state(at.run) == (["A", None, None, None],)


def test_a_node_that_waits_in_a_failed_branch_gives_up_its_token_and_two_branches_may_fail_at_once() -> None:
    nodes = [
        fork("ignore", "f", "b", "c"), plain("f"), llm("x", output_key="x"), llm("y"), plain("meet"), llm("b"),
        llm("c"), join("x", "meet", "b", "c"),
    ]  # fmt: skip
    at = play(compiled(nodes, "f>x f>y x>meet y>meet meet>j b>j c>j j>END")).answer("x#1", "X").answer("c#1", "C")
    error = {"code": "X", "message": "no", "class": "not_found"}
    at.calls.clear()
    at.feed(e.NodeFailed("y#1", error), e.NodeFailed("b#1", error)).go()
    assert final_state(at.run) == (["X", None, None, "C"],)
    assert [fact.branch for fact in at.facts(e.BranchFailed)] == ["f", "b"]
    assert [fact.firing for fact in at.facts(e.NodeStarted) if fact.firing.startswith("meet")] == []
