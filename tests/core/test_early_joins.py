"""A join that does not wait for all: its region, what it takes, and what becomes of the rest."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.failure import follow_up
from agent_graph.core.outcome import state
from agent_graph.core.record import canonical_record
from tests.core.played import Played, compiled, folded, gate, llm, plain, play, router, sub, writes

Json = dict[str, Any]


def join(name: str, *inputs: str, wait: Any = "any", **config: Any) -> Json:
    more = {"output": name, "mode": "collect_object", "on_missing": "skip"} if inputs else {}
    return {"id": name, "type": "join", "config": {"inputs": [*inputs], "wait": wait, **more, **config}}


def race(wait: Any = "any", **config: Any) -> Any:
    """Three branches of two calls each; who comes first, as the join waits, goes on."""
    first = [llm(name, output_key=name) for name in "abc"]
    nodes = [plain("s"), *first, *(llm(f"{name}2", f"{{{name}?}}", output_key=f"{name}2") for name in "abc")]
    edges = " ".join(f"s>{n} {n}>{n}2 {n}2>j" for n in "abc")
    last = [join("j", "a2", "b2", "c2", wait=wait, **config), llm("z", "{j?}")]
    return compiled([*nodes, *last], f"{edges} j>z z>END")


def asked(at: Played) -> list[str]:
    """The calls somebody waits for."""
    return sorted(path for path in at.calls if at.run.firing(path) is not None)


def closings(at: Played) -> list[tuple[tuple[str, ...], bool]]:
    return [(fact.edges, fact.short) for fact in at.facts(e.JoinClosed)]


def cancelled(at: Played) -> list[str]:
    return [fact.firing for fact in at.facts(e.FiringCancelled)]


def test_the_first_branch_goes_on_and_the_rest_is_cancelled() -> None:
    at = play(race())
    assert list(at.calls) == ["s#1/a#1", "s#1/b#1", "s#1/c#1"]
    at.answer("s#1/b#1").answer("s#1/a#1").answer("s#1/b2#1", "B")
    assert closings(at) == [(("b2",), False)]
    assert cancelled(at) == ["s#1/c#1", "s#1/a2#1"]
    assert at.prompt("z#1") == '{"b2":"B"}'
    at.answer("z#1", "end")
    record: Any = canonical_record(at.graph, at.log)
    assert (record["status"], record["final_state"]) == ("completed", ["end"])
    assert state(at.run) == {"b": "ok", "b2": "B", "j": {"b2": "B"}}, "what the others wrote is nobody's past"
    assert [*at.run.frames] == [""]


def test_it_waits_for_as_many_as_it_says_and_takes_exactly_those() -> None:
    at = play(race({"count": 2}))
    for firing in ("a", "b", "c", "c2"):
        at.answer(f"s#1/{firing}#1")
    assert closings(at) == []
    at.answer("s#1/a2#1")
    assert closings(at) == [(("a2", "c2"), False)]
    assert cancelled(at) == ["s#1/b2#1"]
    assert at.prompt("z#1") == '{"a2":"ok","c2":"ok"}'


def test_without_cancel_the_rest_runs_on_and_is_for_nothing() -> None:
    at = play(race(cancel_rest=False)).answer("s#1/a#1").answer("s#1/a2#1", "A")
    assert (closings(at), cancelled(at)) == ([(("a2",), False)], [])
    assert sorted(at.calls) == ["s#1/b#1", "s#1/c#1", "z#1"]
    at.answer("z#1", "end")
    assert at.run.status == "running", "the run ends when nothing is active"
    at.answer("s#1/b#1", "late")
    assert at.prompt("s#1/b2#1") == "late", "it sees what its own past wrote"
    at.answer("s#1/b2#1").answer("s#1/c#1").answer("s#1/c2#1")
    assert (at.run.status, state(at.run)) == ("completed", {"a": "ok", "a2": "A", "j": {"a2": "A"}})
    assert [fact.firing for fact in at.facts(e.NodeStarted)].count("s#1/j#1") == 1


def fail(at: Played, firing: str) -> Played:
    at.calls.pop(firing)
    return at.go(
        follow_up(at.run, e.NodeFailed(firing, {"code": "MODEL_REFUSED", "message": "no", "class": "refused"}))
    )


def test_a_branch_that_fails_leaves_its_edge_empty_and_the_others_go_on() -> None:
    at = play(race())
    fail(at, "s#1/a#1").answer("s#1/b#1")
    fail(at, "s#1/b2#1")
    assert (at.run.status, at.run.failure) == ("running", None)
    at.answer("s#1/c#1").answer("s#1/c2#1", "C")
    assert closings(at) == [(("c2",), False)]
    assert at.prompt("z#1") == '{"c2":"C"}'


def test_when_fewer_can_still_come_it_fires_with_those_that_came() -> None:
    at = play(race({"count": 3})).answer("s#1/b#1").answer("s#1/b2#1").answer("s#1/c#1")
    fail(at, "s#1/a#1")
    assert closings(at) == []
    at.answer("s#1/c2#1")
    assert closings(at) == [(("b2", "c2"), True)]


@pytest.mark.parametrize("on_error", ["fail", "continue"])
def test_when_none_can_come_the_join_has_no_inputs(on_error: str) -> None:
    at = play(race(on_error=on_error))
    for branch in "abc":
        fail(at, f"s#1/{branch}#1")
    assert closings(at) == [((), True)]
    (failed,) = [fact for fact in at.facts(e.NodeFailed) if fact.firing == "s#1/j#1"]
    assert failed.error["code"] == "JOIN_NO_INPUTS"
    if on_error == "fail":
        assert (at.run.status, at.run.error and at.run.error["code"]) == ("failed", "JOIN_NO_INPUTS")
    else:
        assert list(at.calls) == ["z#1"]


def test_a_token_of_a_node_that_failed_and_went_on_does_not_count() -> None:
    nodes = [plain("s"), llm("a", on_error="continue", output_key="a"), llm("b", output_key="b"), join("j", "a", "b")]
    at = play(compiled([*nodes, llm("z")], "s>a s>b a>j b>j j>z z>END"))
    fail(at, "s#1/a#1")
    assert closings(at) == []
    at.answer("s#1/b#1")
    assert closings(at) == [(("b",), False)]


def test_a_fork_that_chooses_fewer_branches_makes_it_short() -> None:
    split = {"id": "r", "type": "router", "config": {"mode": "all", "default": ["a"], "rules": [
        {"path": "in", "op": "contains", "value": name, "targets": [name]} for name in "abc"]}}  # fmt: skip
    nodes = [split, *(llm(name, output_key=name) for name in "abc"), join("j", "a", "b", "c", wait={"count": 2})]
    graph = compiled([*nodes, plain("z")], "a>j b>j c>j j>z z>END", output_key="j")
    at = play(graph, {"in": "b"}).answer("r#1/b#1", "B")
    assert closings(at) == [(("b",), True)]
    assert canonical_record(graph, at.log)["final_state"] == [{"b": "B"}]
    at = play(graph, {"in": "abc"}).answer("r#1/c#1").answer("r#1/a#1")
    assert closings(at) == [(("a", "c"), False)]


def test_a_static_parallel_gives_its_branches_their_inputs() -> None:
    fork = {"id": "p", "type": "parallel", "config": {"join": "j", "branches": [
        {"id": "x", "entry": "a", "input": "left"}, {"id": "y", "entry": "b", "input": "right"}]}}  # fmt: skip
    graph = compiled([fork, llm("a", output_key="a"), llm("b", output_key="b"), join("j", "a", "b")], "j>END",
                     output_key="j")  # fmt: skip
    at = play(graph, {"left": "L", "right": "R"})
    assert [at.prompt(path) for path in ("p#1/a#1", "p#1/b#1")] == ["L", "R"]
    at.answer("p#1/b#1", "B")
    assert canonical_record(graph, at.log)["final_state"] == [{"b": "B"}]


def test_gates_and_waits_of_the_rest_are_withdrawn() -> None:
    nodes = [plain("s"), llm("a", output_key="a"), gate("g"), {"id": "w", "type": "signal", "config": {}},
             {"id": "t", "type": "timer", "config": {"delay_ms": 9}}, join("j", "a", "g")]  # fmt: skip
    at = play(compiled([*nodes, llm("z")], "s>a s>g s>w s>t a>j g>j w>j t>j j>z z>END"))
    at.answer("s#1/a#1")
    assert [one.status for one in at.run.gates.values()] == ["withdrawn"]
    assert (at.run.waits, sorted(cancelled(at))) == ({}, ["s#1/g#1", "s#1/t#1", "s#1/w#1"])


def test_other_branches_wait_for_the_region_as_for_any_node() -> None:
    nodes = [plain("s"), plain("f"), llm("a", output_key="a"), llm("b"), join("j", "a", "b"), llm("side"), plain("m")]
    graph = compiled([*nodes, llm("z")], "s>f s>side f>a f>b a>j b>j j>m side>m m>z z>END", output_key="j")
    at = play(graph).answer("side#1")
    assert sorted(at.calls) == ["f#1/a#1", "f#1/b#1"]
    at.answer("f#1/a#1", "A")
    assert asked(at) == ["z#1"]


LOOPED = compiled(
    [
        {"id": "l", "type": "loop", "config": {"entry": "f", "exit": "END", "max_iterations": 3}}, plain("f"),
        llm("a", output_key="a"), llm("b", output_key="b"), join("j", "a", "b"),
        {"id": "keep", "type": "state_transform", "config": {"operations": [
            {"op": "append", "path": "log", "from": "j"}]}},
    ], "f>a f>b a>j b>j j>keep keep>l", output_key="log", reducers={"log": "append"},
)  # fmt: skip


def test_every_round_of_a_loop_has_a_region_of_its_own() -> None:
    at = play(LOOPED)
    for nth, branch in enumerate("aba", 1):
        assert asked(at) == [f"f#{nth}/a#1", f"f#{nth}/b#1"]
        at.answer(f"f#{nth}/{branch}#1", f"{branch}{nth}")
    record: Any = canonical_record(LOOPED, at.log)
    assert record["final_state"] == [[{"a": "a1"}, {"b": "b2"}, {"a": "a3"}]], "nothing of an earlier round"
    assert len(closings(at)) == 3


def test_what_was_for_nothing_is_forgotten_and_memory_does_not_grow_with_rounds() -> None:
    nodes = [
        {"id": "l", "type": "loop", "config": {"entry": "f", "exit": "END", "max_iterations": 30}}, plain("f"),
        llm("a", output_key="a"), llm("a2", output_key="a2"), llm("b", output_key="b"),
        join("j", "a2", "b"), writes("k", seen=1),
    ]  # fmt: skip
    graph = compiled(nodes, "f>a f>b a>a2 a2>j b>j j>k k>l", output_key="j")
    at = play(graph, {})
    sizes = []
    for nth in range(1, 31):
        at.answer(f"f#{nth}/a#1").answer(f"f#{nth}/b#1", f"b{nth}")
        assert at.run.frame is not None
        sizes.append((len(at.run.frame.state.writers), len(checkpoint.dump(at.run))))
    assert at.run.status == "completed"
    assert canonical_record(graph, at.log)["state"] == {"j": {"b": "b30"}, "b": "b30", "seen": 1}
    assert max(writers for writers, _ in sizes) <= 8
    assert max(size for _, size in sizes[10:]) <= 1.2 * sizes[5][1]
    assert checkpoint.dump(folded(graph, at.log)) == checkpoint.dump(at.run)


def test_a_region_in_a_region() -> None:
    nodes = [plain("s"), plain("f"), *(llm(name, output_key=name) for name in ("a", "b", "c")),
             join("inner", "a", "b"), join("outer", "inner", "c")]  # fmt: skip
    graph = compiled([*nodes, plain("z")], "s>f s>c f>a f>b a>inner b>inner inner>outer c>outer outer>z z>END",
                     output_key="outer")  # fmt: skip
    at = play(graph)
    assert sorted(at.calls) == ["s#1/c#1", "s#1/f#1/a#1", "s#1/f#1/b#1"]
    at.answer("s#1/f#1/b#1", "B")
    assert canonical_record(graph, at.log)["final_state"] == [{"inner": {"b": "B"}}]
    assert sorted(cancelled(at)) == ["s#1/c#1", "s#1/f#1/a#1"]
    at = play(graph).answer("s#1/c#1", "C")
    assert canonical_record(graph, at.log)["final_state"] == [{"c": "C"}]
    assert sorted(cancelled(at)) == ["s#1/f#1/a#1", "s#1/f#1/b#1"]
    at = play(graph)
    fail(at, "s#1/f#1/a#1")
    fail(at, "s#1/f#1/b#1")
    assert (at.run.status, list(at.calls)) == ("running", ["s#1/c#1"]), "the join inside is a branch that failed"
    assert at.answer("s#1/c#1").run.status == "completed"


def test_a_graph_inside_is_cancelled_with_all_that_is_in_it() -> None:
    inner = compiled([plain("s"), llm("x", output_key="x"), llm("y")], "s>x s>y", name="inner", output_key="x")
    nodes = [plain("s"), sub("g", "inner", output_key="g"), llm("b", output_key="b"), join("j", "g", "b")]
    graph = compiled([*nodes, plain("z")], "s>g s>b g>j b>j j>z z>END", output_key="j", inner=[inner])
    at = play(graph).answer("s#1/b#1", "B")
    assert cancelled(at) == ["s#1/g#1/x#1", "s#1/g#1/y#1", "s#1/g#1"]
    assert canonical_record(graph, at.log)["final_state"] == [{"b": "B"}]
    at = play(graph).answer("s#1/g#1/x#1", "X").answer("s#1/g#1/y#1")
    assert (canonical_record(graph, at.log)["final_state"], [*at.run.frames]) == ([{"g": "X"}], [""])


def test_in_the_items_of_a_fan_out() -> None:
    over = {"id": "m", "type": "parallel", "config": {"for_each": {"path": "xs"}, "entry": "f", "join": "end"}}
    nodes = [over, plain("f"), llm("a", "a {item}", output_key="a"), llm("b", "b {item}", output_key="b"),
             join("j", "a", "b"), {"id": "end", "type": "join", "config": {"inputs": ["j"], "mode": "first_non_null"}},
             plain("z")]  # fmt: skip
    graph = compiled(nodes, "f>a f>b a>j b>j j>end end>z z>END", output_key="outputs.m")
    at = play(graph, {"xs": [1, 2]})
    at.answer("m#1[0]/f#1/b#1", "B0").answer("m#1[1]/f#1/a#1", "A1")
    assert at.run.status == "completed"
    assert at.facts_of("m")[0].output == ([{"b": "B0"}, {"a": "A1"}],)


def test_the_end_of_the_run_ends_regions_too() -> None:
    at = play(race()).cancel()
    assert (at.run.status, sorted(cancelled(at))) == ("cancelled", ["s#1/a#1", "s#1/b#1", "s#1/c#1"])
    nodes = [plain("s"), plain("f"), llm("a", output_key="a"), llm("b"), join("j", "a", "b"), llm("stop")]
    graph = compiled(nodes, "s>f s>stop f>a f>b a>j b>j j>END stop>END_RUN", output_key="in")
    at = play(graph, {"in": 1}).answer("stop#1")
    assert (at.run.status, sorted(cancelled(at))) == ("completed", ["f#1/a#1", "f#1/b#1"])


def test_the_same_choices_give_the_same_run_whatever_the_order() -> None:
    graph = race({"count": 2})
    found = defaultdict(list)
    names = [f"s#1/{name}#1" for name in ("a", "b", "c", "a2", "b2", "c2")] + ["z#1"]
    for order in itertools.permutations(names[:6]):
        at = play(graph)
        ranks = {name: place for place, name in enumerate(order)}
        while at.calls:
            at.answer(min(at.calls, key=lambda name: ranks.get(name, 9)))
        record: Any = canonical_record(graph, at.log)
        found[str(record["choices"])].append(record)
    assert len(found) > 3
    assert all(record == same[0] for same in found.values() for record in same)


@pytest.mark.parametrize("cancel_rest", [True, False])
def test_it_is_the_same_after_a_cut_at_every_event(cancel_rest: bool) -> None:
    graph = race({"count": 2}, cancel_rest=cancel_rest)
    at = play(graph)
    order = ["s#1/a#1", "s#1/b#1", "s#1/b2#1", "s#1/a2#1", "z#1", "s#1/c#1", "s#1/c2#1"]

    def rest(run: Played) -> Any:
        run.go()
        while run.calls:
            run.answer(next(name for name in order if name in run.calls))
        return canonical_record(graph, run.log)

    whole = rest(at)
    for cut in range(2, len(at.log) + 1):
        again = folded(graph, at.log[:cut])
        loaded = checkpoint.load(graph, checkpoint.dump(again))
        assert checkpoint.dump(loaded) == checkpoint.dump(again), cut
        assert rest(Played(graph, loaded, at.log[:cut])) == whole, cut
        assert rest(Played(graph, again, at.log[:cut])) == whole, cut


def test_the_region_is_stored_with_the_version() -> None:
    nodes = [plain("s"), llm("a"), llm("b"), join("j")]
    spec = {"name": "g", "entry": "s", "nodes": nodes, "edges": [{"from": "s", "to": to} for to in "ab"] + [
        {"from": name, "to": "j"} for name in "ab"]}  # fmt: skip
    made = compile_graph(spec)
    assert made.graph is not None
    assert load_graph(made.graph.spec, made.graph.version, made.compiled).topology.early == made.graph.topology.early
    assert made.graph.topology.early[0].nodes == 0b1110


@pytest.mark.parametrize(
    ("nodes", "edges", "why"),
    [
        ([plain("s"), llm("a"), llm("b"), llm("j0")], "s>a s>b s>j0 a>j b>j j0>END", "can end before"),
        ([router("s", "in", {"x": ["a"]}, default=["b", "out"]), llm("a"), llm("b"), llm("out")],
         "a>j b>j out>END", "can end before"),
        ([plain("s"), llm("a"), router("b", "in", {"x": ["j"]}, default=["END"])], "s>a s>b a>j", "can end before"),
        ([plain("s"), llm("a"), router("b", "in", {"x": ["j"]}, default=["s"])], "s>a s>b a>j", "leads back"),
        ([llm("s")], "s>j", "no node starts them all"),
        ([plain("s"), llm("a"), llm("b")], "s>a s>b s>END a>j b>j", "can end before"),
        ([plain("s"), llm("a"), llm("b"), llm("u")], "s>a s>b a>j b>j u>a", "leads into them"),
        ([plain("s"), llm("a"), llm("b")], "s>a s>b a>j b>j j>a", "leads back"),
    ],
)  # fmt: skip
def test_what_is_no_part_of_its_own_is_refused(nodes: list[Json], edges: str, why: str) -> None:
    wires = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    made = compile_graph({"name": "g", "entry": "s", "nodes": [*nodes, join("j")], "edges": wires, "output_key": "x"})
    (issue,) = [one for one in made.issues if one.code == "REGION_NOT_CLOSED"]
    assert (issue.severity, issue.node_id, issue.pointer.endswith("/wait")) == ("error", "j", True)
    assert why in issue.message


def test_a_budget_must_not_lead_into_it() -> None:
    wires = [{"from": "s", "to": to} for to in "ab"] + [{"from": name, "to": "j"} for name in "ab"]
    made = compile_graph({
        "name": "g", "entry": "s", "nodes": [plain("s"), llm("a"), llm("b"), join("j")], "edges": wires,
        "budgets": {"max_nodes": 3, "on_budget": {"goto": ["a"]}}, "output_key": "x",
    })  # fmt: skip
    (issue,) = [one for one in made.issues if one.code == "REGION_NOT_CLOSED"]
    assert "`on_budget` leads into them" in issue.message


def test_two_regions_of_one_fork_stand_side_by_side() -> None:
    nodes = [plain("s"), llm("p"), llm("q"), {**plain("f"), "config": {"merge": "each"}}, llm("a", output_key="a"),
             llm("b", output_key="b"), join("j", "a", "b"), llm("side"), plain("m")]  # fmt: skip
    graph = compiled(nodes, "s>p s>q s>side p>f q>f f>a f>b a>j b>j j>m side>m m>END", output_key="j")
    at = play(graph).answer("p#1").answer("q#1").answer("side#1")
    assert asked(at) == ["f#1.1/a#1", "f#1.1/b#1", "f#2.1/a#1", "f#2.1/b#1"]
    at.answer("f#2.1/a#1", "second")
    assert at.run.status == "running"
    assert checkpoint.dump(checkpoint.load(graph, checkpoint.dump(at.run))) == checkpoint.dump(at.run)
    at.answer("f#1.1/b#1", "first")
    assert at.run.status == "completed"
    assert len(closings(at)) == 2


def test_what_fails_after_the_join_has_fired_changes_nothing() -> None:
    at = play(race()).answer("s#1/a#1")
    call = at.calls["s#1/a2#1"]
    at.feed(e.ModelAnswered("s#1/a2#1", {"text": "A"}, call.attempt), e.NodeFinished("s#1/a2#1", output=("A",)))
    at.go(e.NodeFailed("s#1/b#1", {"code": "MODEL_REFUSED", "message": "no", "class": "refused"}))
    assert (closings(at), cancelled(at)) == ([(("a2",), False)], ["s#1/c#1"])
    assert asked(at) == ["z#1"]


def test_what_runs_on_for_nothing_is_not_taken_elsewhere() -> None:
    first = [llm(name, output_key=name) for name in "ab"]
    nodes = [plain("s"), *first, join("j", "a", "b", cancel_rest=False), llm("z"), plain("short")]
    graph = compiled(
        nodes, "s>a s>b a>j b>j j>z z>END short>END", output_key="j",
        budgets={"max_llm_calls": 2, "on_budget": {"goto": ["short"]}},
    )  # fmt: skip
    at = play(graph).answer("s#1/a#1", "A")
    assert (at.run.status, state(at.run)) == ("completed", {"a": "A", "j": {"a": "A"}})
    assert sorted(cancelled(at)) == ["s#1/b#1", "z#1"]


def test_more_than_can_come_are_never_waited_for() -> None:
    nodes = [plain("s"), llm("a"), llm("b"), join("j", wait={"count": 3})]
    wires = [{"from": "s", "to": to} for to in "ab"] + [{"from": name, "to": "j"} for name in "ab"]
    made = compile_graph({"name": "g", "entry": "s", "nodes": nodes, "edges": wires, "output_key": "x"})
    assert [(one.code, one.pointer) for one in made.issues if one.severity == "error"] == [
        ("FIELD_INVALID", "/nodes/3/config/wait")
    ]


def test_branches_of_which_one_counts_may_write_one_key() -> None:
    graph = compiled([plain("s"), writes("a", x=1), writes("b", x=2), join("j"), plain("z")],
                     "s>a s>b a>j b>j j>z z>END", output_key="x")  # fmt: skip
    at = play(graph)
    assert canonical_record(graph, at.log)["final_state"] == [1]
    assert at.facts(e.WriteConflict) == []


def test_a_budget_that_goes_elsewhere_takes_what_the_region_knew_with_it() -> None:
    first = [llm(name, output_key=name) for name in "ab"]
    nodes = [plain("s"), *first, llm("a2", output_key="a2"), join("j", "a2", "b"), plain("z"),
             {"id": "short", "type": "passthrough"}]  # fmt: skip
    graph = compiled(
        nodes, "s>a s>b a>a2 a2>j b>j j>z z>END short>END", output_key="a",
        budgets={"max_llm_calls": 2, "on_budget": {"goto": ["short"]}},
    )  # fmt: skip
    at = play(graph).answer("s#1/a#1", "kept")
    assert (at.run.status, [*at.run.frames], at.run.parts) == ("completed", [""], {})
    assert canonical_record(graph, at.log)["final_state"] == ["kept"]
    assert sorted(cancelled(at)) == ["s#1/a2#1", "s#1/b#1"]
    again = folded(graph, at.log)
    assert state(again) == state(at.run)
