"""Static branches bounded as a whole: how many calls at a time, and how long; with what fails, and restarts."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import checkpoint, waits
from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.graph import Graph
from agent_graph.core.outcome import errors, final_state
from agent_graph.core.record import canonical_record
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Record, decide
from tests.core.played import Played, compiled, does, folded, gate, llm, plain, play, router, sub


def fork(name: str, join: str, *entries: str, **config: Any) -> dict[str, Any]:
    branches = [{"id": entry, "entry": entry} for entry in entries]
    return {"id": name, "type": "parallel", "config": {"branches": branches, "join": join, **config}}


def join(name: str, *inputs: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "join", "config": {"inputs": [*inputs], **config}}


def each(name: str, entry: str, leave: str, **config: Any) -> dict[str, Any]:
    config = {"for_each": {"path": "xs"}, "entry": entry, "join": leave, **config}
    return {"id": name, "type": "parallel", "config": config}


def again(at: Played) -> Run:
    """The run as another process finds it, by its snapshot, on the graph as it is stored."""
    stored = {(one.name, one.version): one for one in at.graph.subgraphs.values()}
    compiled_again = compile_graph(at.graph.spec, stored=stored)
    graph = load_graph(at.graph.spec, at.graph.version, compiled_again.compiled, subgraphs=at.graph.subgraphs)
    return checkpoint.load(graph, checkpoint.dump(at.run))


def late(at: Played, after_ms: int) -> Played:
    """Time passes; what the clock ends is recorded."""
    at.at_ms += after_ms
    at.go(*waits.due(at.run, at.at_ms))
    at.calls = {path: call for path, call in at.calls.items() if at.run.firing(path) is not None}
    return at


# -- how many at a time --------------------------------------------------------------------------------------------


def narrow(**config: Any) -> Graph:
    """Three branches beside a call outside; two of theirs at a time."""
    nodes = [
        plain("s"), fork("p", "j", "a", "b", "c", **{"max_parallelism": 2, **config}), llm("a"), llm("a2"), llm("b"),
        llm("c"), join("j", "a2", "b", "c"), llm("beside"),
    ]  # fmt: skip
    return compiled(nodes, "s>p s>beside a>a2 a2>j b>j c>j j>END beside>END", output_key="outputs.j")


def test_so_many_calls_of_the_branches_are_in_flight_and_others_pass_them_by() -> None:
    at = play(narrow())
    assert {*at.calls} == {"a#1", "b#1", "beside#1"}
    assert {*at.answer("a#1", "A").calls} == {"b#1", "beside#1", "c#1"}
    assert {*at.answer("beside#1").calls} == {"b#1", "c#1"}
    assert {*at.answer("c#1", "C").calls} == {"b#1", "a2#1"}
    at.answer("b#1", "B").answer("a2#1", "A2")
    assert (at.run.taken, at.run.places) == ({}, 0)
    assert final_state(at.run) == (["A2", "B", "C"],)


def test_the_bound_of_the_run_holds_all_the_same() -> None:
    nodes = [fork("p", "j", "a", "b", "c", max_parallelism=9), llm("a"), llm("b"), llm("c"), join("j", "a")]
    at = play(compiled(nodes, "a>j b>j c>j j>END", max_parallelism=2))
    assert {*at.calls} == {"a#1", "b#1"}


def test_a_restart_in_the_middle_keeps_the_bound() -> None:
    at = play(narrow()).answer("a#1")
    for run in (again(at), folded(at.graph, at.log)):
        assert run.taken == {("", at.graph.index["p"]): 2}
        assert (run.places, [*run.queue]) == (3, ["a2#1"])
    resumed = Played(at.graph, again(at), [*at.log]).resume()
    assert {*resumed.calls} == {"b#1", "c#1", "beside#1"}


def test_a_call_that_fails_or_is_cancelled_leaves_its_place_to_the_next() -> None:
    at = play(narrow(fail_policy="ignore")).fail("a#1")
    assert {*at.calls} == {"b#1", "c#1", "beside#1"}
    assert play(narrow()).cancel().run.taken == {}


def test_bounds_inside_one_another_hold_together() -> None:
    nodes = [
        fork("p", "j", "q", "b", max_parallelism=2), fork("q", "k", "x", "y", max_parallelism=1), llm("x"), llm("y"),
        join("k", "x", "y"), llm("b"), join("j", "k", "b"),
    ]  # fmt: skip
    at = play(compiled(nodes, "x>k y>k k>j b>j j>END"))
    assert {*at.calls} == {"x#1", "b#1"}
    assert {*at.answer("b#1").calls} == {"x#1"}
    assert {*at.answer("x#1").calls} == {"y#1"}
    assert at.answer("y#1").run.status == "completed"


def test_calls_in_frames_inside_a_branch_are_its_calls() -> None:
    inner = compiled([plain("i"), llm("x"), llm("y"), join("z", "x")], "i>x i>y x>z y>z", name="inner")
    nodes = [fork("p", "j", "s", "m", max_parallelism=2), sub("s", "inner"), each("m", "w", "t"), llm("w"),
             join("t", "w"), join("j", "s", "m")]  # fmt: skip
    at = play(compiled(nodes, "s>j w>t t>j j>END", inner=[inner]), {"xs": [1, 2]})
    asked: list[str] = []
    while at.calls:
        assert len(at.calls) <= 2
        asked.append(next(iter(at.calls)))
        at.answer(asked[-1], "x")
    assert sorted(asked) == ["m#1[0]/w#1", "m#1[1]/w#1", "s#1/x#1", "s#1/y#1"]
    assert (at.run.status, at.run.taken) == ("completed", {})


def test_in_items_each_has_branches_of_its_own() -> None:
    nodes = [each("m", "p", "j"), fork("p", "j", "a", "b", max_parallelism=1), llm("a"), llm("b"), join("j", "a", "b")]
    at = play(compiled(nodes, "a>j b>j j>END"), {"xs": [1, 2]})
    assert {*at.calls} == {"m#1[0]/a#1", "m#1[1]/a#1"}
    assert {*at.answer("m#1[0]/a#1").calls} == {"m#1[0]/b#1", "m#1[1]/a#1"}


def test_branches_of_which_the_first_are_enough_are_bounded_too() -> None:
    nodes = [fork("p", "j", "a", "b", "c", max_parallelism=2), plain("a"), llm("a1"), llm("a2"), llm("b"), llm("c"),
             join("k", "a1", wait="any"), join("j", "k", "b", "c", wait={"count": 2})]  # fmt: skip
    at = play(compiled(nodes, "a>a1 a>a2 a1>k a2>k k>j b>j c>j j>END"))
    assert len(at.calls) == 2
    while at.calls:
        at.answer(next(iter(at.calls)))
        assert len(at.calls) <= 2
    assert (at.run.status, at.run.taken) == ("completed", {})


def test_what_a_budget_holds_back_leaves_its_place() -> None:
    nodes = [fork("p", "j", "a", "b", max_parallelism=1), llm("a"), llm("b"), join("j", "a", "b")]
    graph = compiled(nodes, "a>j b>j j>END", budgets={"max_llm_calls": 1, "on_budget": "pause"})
    at = play(graph).answer("a#1")
    assert (at.run.status, at.run.taken) == ("waiting", {})
    (asked,) = at.run.open_approvals
    assert at.vote(asked.firing, "approve").answer("b#1").run.status == "completed"


# -- how long ------------------------------------------------------------------------------------------------------


def council(policy: str, **config: Any) -> Graph:
    nodes = [
        fork("p", "j", "a", "b", fail_policy=policy, **{"timeout_ms": 100, **config}), llm("a", output_key="ra"),
        llm("a2", output_key="ra2"), llm("b", output_key="rb"), join("j", "ra2", "b"), llm("last", "{input|json}"),
    ]  # fmt: skip
    return compiled(nodes, "a>a2 a2>j b>j j>last last>END")


SAYS = "what runs inside it took longer than 100 ms"
NO = {"error": {"code": "FRAMES_TIMEOUT", "message": SAYS}}


@pytest.mark.parametrize(("policy", "there"), [("collect_partial", NO), ("ignore", None)])
def test_what_is_not_through_in_time_fails_and_the_join_goes_on_without_it(policy: str, there: Any) -> None:
    at = play(council(policy)).answer("b#1", "B").answer("a#1", "A")
    assert (waits.next_due_ms(at.run), waits.wake_ms(at.run)) == (at.at_ms + 100, at.at_ms + 100)
    assert late(at, 99).calls.keys() == {"a2#1"}
    late(at, 1)
    assert [(fact.firing, fact.reason) for fact in at.facts(e.FiringCancelled)] == [("a2#1", "the branch failed")]
    (failed,) = at.facts(e.BranchFailed)
    assert (failed.parallel, failed.branch, failed.error["node_path"]) == ("p", "a", "p#1")
    assert failed.error["details"] == {"timeout_ms": 100, "done": 1, "of": 2}
    assert at.facts_of("j")[0].current == ([there, "B"],)
    assert errors(at.run) == {"a2": NO["error"]}
    assert at.answer("last#1", "end").run.status == "completed"
    assert (waits.next_due_ms(at.run), at.run.until, at.run.losing) == (None, {}, {})
    assert {"type": "timer_fired", "firing": "p#1"} in canonical_record(at.graph, at.log)["choices"]  # type: ignore[operator]  # a list


def test_the_run_fails_where_failures_are_not_put_up_with() -> None:
    at = late(play(council("fail_fast")).answer("b#1"), 100)
    assert at.run.error is not None
    assert (at.run.status, at.run.error["code"], at.run.error["message"]) == ("failed", "FRAMES_TIMEOUT", SAYS)
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["a#1"]
    assert not at.facts(e.BranchFailed)


def test_branches_that_are_through_in_time_leave_nothing_that_waits() -> None:
    at = play(council("ignore")).answer("a#1").answer("a2#1")
    assert at.run.until
    at.answer("b#1")
    assert (at.run.until, waits.next_due_ms(at.run), waits.wake_ms(at.run)) == ({}, None, None)
    assert late(at, 10_000).go(e.TimerFired("p#1")).calls.keys() == {"last#1"}


def test_an_item_fails_whose_branches_take_too_long_and_the_others_do_not() -> None:
    nodes = [each("m", "p", "j", fail_policy="collect_partial", output_key="all"),
             fork("p", "j", "a", "b", timeout_ms=100), llm("a"), llm("b"), join("j", "a", "b")]  # fmt: skip
    at = play(compiled(nodes, "a>j b>j j>END", output_key="all"), {"xs": [1, 2]})
    at.answer("m#1[0]/a#1", "A").answer("m#1[1]/a#1", "A").answer("m#1[0]/b#1", "B")
    assert [*at.run.until] == ["m#1[1]/p#1"]
    late(at, 100)
    assert (at.run.until, final_state(at.run)) == ({}, ([["A", "B"], NO],))
    failed = play(at.graph, {"xs": [1, 2]}).fail("m#1[0]/a#1")
    assert [*failed.run.until] == ["m#1[1]/p#1"]


def wide(**config: Any) -> Graph:
    """A branch that forks itself, with a gate, a graph inside, items, a mutex, and a node that waits."""
    inner = compiled([llm("x"), llm("y")], "x>y", name="inner")
    nodes = [
        fork("p", "j", "f", "b", **{"fail_policy": "collect_partial", "timeout_ms": 100, **config}), plain("f"),
        llm("a", mutex="one"), gate("g"), sub("s", "inner"), each("m", "w", "t", max_parallelism=1), llm("w"),
        join("t", "w"), llm("done"), plain("meet"), llm("b", mutex="one"), join("j", "meet", "b", "a", "done"),
    ]  # fmt: skip
    edges = "f>a f>g f>s f>m f>done a>meet g>meet s>meet w>t t>meet meet>j done>j b>j j>END"
    return compiled(nodes, edges, inner=[inner])


def test_all_that_runs_in_a_late_branch_is_cancelled_down_to_the_deepest() -> None:
    at = play(wide(), {"xs": [1, 2]}).answer("done#1", "D").answer("b#1", "B").answer("a#1", "A")
    late(at, 100)
    cancelled = [fact.firing for fact in at.facts(e.FiringCancelled)]
    assert cancelled == ["m#1[0]/w#1", "s#1/x#1", "g#1", "s#1", "m#1"]
    assert [one.status for one in at.run.gates.values()] == ["withdrawn"]
    assert (at.run.status, [*at.run.frames], at.run.mutexes) == ("completed", [""], {})
    assert final_state(at.run) == ([NO, "B", "A", "D"],)
    assert not {"m#1[1]/w#1", "meet#1"} & {fact.firing for fact in at.facts(e.NodeStarted)}


def through(at: Played) -> Played:
    while at.calls or at.run.open_approvals or at.run.until:
        for path in [path for path in at.calls if path[0] in "bd"]:
            at.answer(path, path)
        late(at, 100) if at.run.until else at.answer_all() if at.calls else None
        for open_ in at.run.open_approvals:
            at.vote(open_.firing, "approve")
    return at


WHOLE = through(play(wide(), {"xs": [1, 2]}))


@pytest.mark.parametrize("cut", range(3, len(WHOLE.log)))
def test_a_run_cut_anywhere_and_taken_up_again_comes_to_the_same(cut: int) -> None:
    graph, log = WHOLE.graph, WHOLE.log[:cut]
    run = folded(graph, log)
    begun = Played(graph, run, [*log])
    for found in (again(begun), folded(graph, log)):
        taken_up = Played(graph, found, [*log])
        taken_up.at_ms = WHOLE.log[cut - 1].at_ms
        ended = through(taken_up.go())
        assert ended.run.status == "completed"
        assert final_state(ended.run) == final_state(WHOLE.run)
        assert not ended.run.frames[""].running


@pytest.mark.parametrize("facts", range(1, 8))
def test_a_run_that_ends_while_a_branch_is_late_ends_all_of_it(facts: int) -> None:
    at = play(wide(), {"xs": [1, 2]})
    at.feed(e.TimerFired("p#1"))
    for _ in range(facts):
        at.feed(*(one.fact for one in decide(at.graph, at.run)[:1] if isinstance(one, Record)))
    ended = Played(at.graph, again(at), [*at.log]).cancel()
    assert ended.run.status == "cancelled"
    assert not ended.run.frames[""].running


def test_a_fork_inside_says_that_it_is_late_and_what_failed_in_it_is_the_branchs() -> None:
    nodes = [
        fork("p", "j", "q", "b", fail_policy="collect_partial", timeout_ms=100),
        fork("q", "k", "x", "y", fail_policy="ignore", timeout_ms=100), llm("x"), llm("y"), llm("y2"),
        join("k", "x", "y2"), llm("b"), join("j", "k", "b", "y"),
    ]  # fmt: skip
    at = play(compiled(nodes, "x>k y>y2 y2>k k>j b>j j>END")).answer("b#1", "B").answer("y#1", "Y")
    late(at, 100)
    assert final_state(at.run) == ([NO, "B", "Y"],)
    assert [fact.branch for fact in at.facts(e.BranchFailed)] == ["q"]
    assert errors(at.run) == {"q": NO["error"]}


def test_a_late_round_says_nothing_of_the_next_and_its_time_begins_anew() -> None:
    nodes = [
        does("n", {"op": "increment", "path": "n"}),
        fork("p", "j", "a", "b", fail_policy="collect_partial", timeout_ms=100), llm("a"), llm("b"),
        join("j", "a", "b"), router("r", "again", {"y": ["n"]}, ["END"]),
    ]  # fmt: skip
    at = play(compiled(nodes, "n>p a>j b>j j>r"), {"again": "y", "n": 0}).answer("b#1", "B1")
    late(at, 100)
    assert [*at.run.until] == ["p#2"]
    at.answer("b#2", "B2").answer("a#2", "A2")
    assert [fact.current for fact in at.facts_of("j")] == [([NO, "B1"],), (["A2", "B2"],)]


def test_a_fork_that_fires_again_before_its_branches_are_through_begins_their_time_anew() -> None:
    nodes = [plain("s"), plain("x"), fork("p", "j", "a", "b", timeout_ms=100, merge="each"), llm("a"), llm("b"),
             join("j", "a", "b"), llm("z")]  # fmt: skip
    at = play(compiled(nodes, "s>x s>z z>p x>p a>j b>j j>END"))
    assert [*at.run.until.values()] == [at.at_ms + 100]
    first = [*at.run.until]
    at.at_ms += 50
    at.answer("z#1")
    assert [*at.run.until] != first
    assert [*at.run.until.values()] == [at.at_ms + 100]


def test_a_failure_in_an_item_is_the_items_and_not_that_of_a_branch_around_it() -> None:
    nodes = [fork("p", "j", "m", "b", fail_policy="collect_partial"), each("m", "w", "t"), llm("w"), join("t", "w"),
             llm("b"), join("j", "m", "b")]  # fmt: skip
    at = play(compiled(nodes, "w>t t>j b>j j>END"), {"xs": [1, 2]}).fail("m#1[0]/w#1").answer("b#1", "B")
    assert [fact.frame for fact in at.facts(e.FrameFailed)] == ["m#1[0]/"]
    assert [(fact.branch, fact.frame) for fact in at.facts(e.BranchFailed)] == [("m", "")]
    assert at.run.status == "completed"


def test_a_budget_that_leads_elsewhere_takes_the_time_with_it() -> None:
    nodes = [fork("p", "j", "a", "b", fail_policy="ignore", timeout_ms=100, max_parallelism=1), llm("a"), llm("b"),
             join("j", "a", "b"), plain("out")]  # fmt: skip
    at = play(compiled(nodes, "a>j b>j j>END out>END", budgets={"max_llm_calls": 1, "on_budget": {"goto": ["out"]}}))
    at.answer("a#1")
    assert (at.run.until, at.run.taken, at.run.status) == ({}, {}, "completed")


def test_facts_about_branches_that_are_cancelled_change_nothing() -> None:
    at = play(wide(), {"xs": [1]})
    at.feed(e.TimerFired("p#1"), e.FiringCancelled("done#1", "the branch failed"))
    assert at.run.firing("done#1") is not None
    before = checkpoint.dump(at.run)
    usage = at.run.usage.llm_calls
    at.feed(e.NodeFailed("done#1", {"code": "X", "message": "no", "class": "not_found"}),
            e.ToolAnswered("done#1", "c", "text", attempt=1))  # fmt: skip
    at.run.seq -= 2
    assert (checkpoint.dump(at.run), at.run.usage.llm_calls) == (before, usage)


def test_a_branch_that_fails_in_an_item_ends_with_the_late_branch_around_it() -> None:
    nodes = [
        fork("p", "j", "m", "b", fail_policy="collect_partial", timeout_ms=100), each("m", "q", "k", max_parallelism=1),
        fork("q", "k", "x", "y", fail_policy="ignore"), llm("x"), llm("y"), join("k", "x", "y"), llm("b"),
        join("j", "m", "b"),
    ]  # fmt: skip
    at = play(compiled(nodes, "x>k y>k k>j b>j j>END"), {"xs": [1, 2]}).answer("b#1", "B")
    error = {"code": "X", "message": "no", "class": "not_found"}
    at.feed(e.NodeFailed("m#1[0]/x#1", error), e.TimerFired("p#1"))
    ended = Played(at.graph, again(at), [*at.log]).go()
    assert final_state(ended.run) == ([NO, "B"],)
    assert [fact.branch for fact in ended.facts(e.BranchFailed)] == ["m"]
    assert ([*ended.run.frames], ended.run.losing, ended.run.open) == ([""], {}, {})


# -- parts of their own --------------------------------------------------------------------------------------------


def issues_of(nodes: list[dict[str, Any]], edges: str, entry: str = "p") -> list[tuple[str, str]]:
    wires = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    found = compile_graph({"name": "g", "entry": entry, "nodes": nodes, "edges": wires})
    return [(one.code, one.pointer) for one in found.issues if one.severity == "error"]


OPEN = [("REGION_NOT_CLOSED", "/nodes/0/config/join")]


@pytest.mark.parametrize("bound", [{"timeout_ms": 5}, {"max_parallelism": 1}])
def test_what_is_bounded_as_a_whole_is_a_part_of_its_own_and_branches_may_share_nodes(bound: dict[str, Any]) -> None:
    nodes = [fork("p", "j", "a", "b", **bound), llm("a"), llm("b"), llm("x"), join("j", "x")]
    assert issues_of(nodes, "a>x b>x x>j") == []
    assert issues_of(nodes, "a>x x>END b>j") == OPEN
    assert issues_of([*nodes[:3], plain("x"), nodes[4]], "x>p x>a a>j b>j", "x") == OPEN
    alone = [fork("p", "j", "a", "b", fail_policy="ignore", **bound), *nodes[1:]]
    assert issues_of(alone, "a>x b>x x>j") == OPEN


def test_nothing_has_a_time_beside_a_join_that_does_not_wait_for_all() -> None:
    nodes = [fork("p", "j", "a", "b", timeout_ms=5), llm("a"), llm("b"), join("j", "a", wait="any")]
    assert issues_of(nodes, "a>j b>j") == OPEN
    assert issues_of([fork("p", "j", "a", "b", max_parallelism=1), *nodes[1:]], "a>j b>j") == []
