"""Fan-out over data: a frame for each item, results in order, and what becomes of an item that fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_graph.core import checkpoint, waits, ways
from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph
from agent_graph.core.graph import Graph
from agent_graph.core.nesting import named_in
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.outcome import errors, final_state, state
from agent_graph.core.record import canonical_record
from tests.core.played import Played, compiled, does, folded, gate, llm, plain, play, router, sub, writes


def each(name: str, path: str = "xs", /, entry: str = "", join: str = "", **config: Any) -> dict[str, Any]:
    over = {"path": path, **config.pop("over", {})}
    named = {key: value for key, value in (("entry", entry), ("join", join)) if value}
    return {"id": name, "type": "parallel", "config": {"for_each": over, **named, **config}}


def join(name: str, *inputs: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "join", "config": {"inputs": [*inputs], **config}}


def mapped(**config: Any) -> Graph:
    """One draft for each item, then a node that uses them all."""
    nodes = [each("m", "xs", "draft", "done", **config), llm("draft", "{index}: {item} of {run_input.topic}"),
             join("done", "draft", mode="first_non_null"), llm("last", "Use {input|json}")]  # fmt: skip
    return compiled(nodes, "draft>done done>last")


def test_each_item_runs_in_a_frame_of_its_own_and_the_results_go_on_in_their_order() -> None:
    at = play(mapped(), {"xs": ["a", "b", "c"], "topic": "tea"})
    paths = [f"m#1[{n}]/draft#1" for n in range(3)]
    assert [at.prompt(path) for path in paths] == ["0: a of tea", "1: b of tea", "2: c of tea"]
    for path in reversed(paths):
        at.answer(path, path[4:5])
    assert at.prompt("last#1") == 'Use ["0","1","2"]'
    assert [*at.run.frames] == [""]
    assert at.facts(e.FramesOpened) == [e.FramesOpened("m#1", 3)]
    assert at.facts_of("m")[0].current == (["0", "1", "2"],)


def test_as_many_items_as_are_allowed_are_under_way_at_a_time() -> None:
    at = play(mapped(max_parallelism=2), {"xs": [*"abcde"], "topic": "t"})
    seen = []
    while "last#1" not in at.calls:
        assert len(at.calls) <= 2
        seen.append([*at.calls])
        at.answer([*at.calls][-1])
    assert seen[0] == ["m#1[0]/draft#1", "m#1[1]/draft#1"]
    assert sum(len(one) for one in seen) == 9


def test_an_empty_list_has_an_empty_result_and_goes_on() -> None:
    at = play(mapped(output_key="all"), {"xs": [], "topic": "t"})
    assert at.calls.keys() == {"last#1"}
    assert state(at.run)["all"] == []


@pytest.mark.parametrize(
    ("value", "code"),
    [({"xs": 5}, "FOR_EACH_NOT_A_LIST"), ({}, "PROMPT_VALUE_MISSING"), ({"xs": None}, "FOR_EACH_NOT_A_LIST")],
)
def test_what_is_no_list_fails_the_node(value: Any, code: str) -> None:
    at = play(mapped(), value)
    assert at.run.error is not None
    assert (at.run.status, at.run.error["code"], at.run.error["node_path"]) == ("failed", code, "m#1")
    assert not at.facts(e.FramesOpened)


def test_one_node_may_be_all_that_runs_for_an_item_and_no_path_is_the_current_value() -> None:
    nodes = [each("m", "", "draft", "draft", output_key="out"), llm("draft", "{item.n}")]
    at = play(compiled(nodes, "draft>END"), [{"n": 1}, {"n": 2}])
    assert [at.prompt(path) for path in at.calls] == ["1", "2"]
    at.answer_all("x")
    assert final_state(at.run) == (["x", "x"],)


def test_an_item_reads_what_was_there_before_and_writes_to_nobody_else() -> None:
    nodes = [
        writes("plan", style="short", n=1),
        each("m", "xs", "add", "done", over={"as": "it", "index_as": "at"}, output_key="sums"),
        does("add", {"op": "increment", "path": "n", "value": 1}, {"op": "copy", "from": "it", "path": "mine"},
             {"op": "append", "path": "log", "value": "seen"}),
        join("done", "n", "mine", "at", "style", "log"),
    ]  # fmt: skip
    at = play(
        compiled(nodes, "plan>m add>done done>END", reducers={"log": "append"}, output_key="sums"), {"xs": [7, 8]}
    )
    assert final_state(at.run) == ([[2, 7, 0, "short", ["seen"]], [2, 8, 1, "short", ["seen"]]],)
    assert state(at.run) == {"xs": [7, 8], "style": "short", "n": 1, "sums": final_state(at.run)[0]}


def test_a_join_without_inputs_hands_on_the_current_value_of_its_item() -> None:
    nodes = [each("m", "xs", "fork", "meet"), plain("fork"), llm("a"), llm("b"), join("meet")]
    at = play(compiled(nodes, "fork>a fork>b a>meet b>meet meet>END"), {"xs": ["q"]})
    assert final_state(at.answer("m#1[0]/a#1", "A").answer("m#1[0]/b#1", "B").run) == (["q"],)


def test_another_graph_runs_for_each_item_and_the_token_goes_on_from_the_node_itself() -> None:
    inner = compiled([llm("a", "{input.q} {q} {index}"), llm("b")], "a>b", name="asks")
    nodes = [each("m", "xs", graph_name="asks"), llm("last", "{input|json}")]
    at = play(compiled(nodes, "m>last", inner=[inner]), {"xs": [{"q": "x"}, {"q": "y"}]})
    assert [at.prompt(path) for path in at.calls] == ["x x 0", "y y 1"]
    for item in (1, 0):
        at.answer(f"m#1[{item}]/a#1").answer(f"m#1[{item}]/b#1", f"r{item}")
    assert at.prompt("last#1") == '["r0","r1"]'


def nested() -> Graph:
    nodes = [
        each("outer", "xs", "inner", "all"),
        each("inner", "item", "draft", "one", over={"as": "word", "index_as": "at"}),
        llm("draft", "{index}.{at} {word}"), join("one", "draft", mode="first_non_null"), join("all", "inner"),
    ]  # fmt: skip
    return compiled(nodes, "draft>one one>all all>END")


def test_fan_out_stands_inside_fan_out() -> None:
    at = play(nested(), {"xs": [["a", "b"], ["c"]]})
    assert {path: at.prompt(path) for path in at.calls} == {
        "outer#1[0]/inner#1[0]/draft#1": "0.0 a", "outer#1[0]/inner#1[1]/draft#1": "0.1 b",
        "outer#1[1]/inner#1[0]/draft#1": "1.0 c",
    }  # fmt: skip
    for path in [*at.calls]:
        at.answer(path, path.replace("outer#1", "").replace("/draft#1", ""))
    assert final_state(at.run) == ([[["[0]/inner#1[0]", "[0]/inner#1[1]"]], [["[1]/inner#1[0]"]]],)


def test_a_loop_goes_round_inside_each_item() -> None:
    loop = {"id": "again", "type": "loop", "config": {"entry": "work", "exit": "out", "max_iterations": 2}}
    nodes = [each("m", "xs", "again", "out"), loop, llm("work", "{item} {loops.again}"), join("out", "work")]
    at = play(compiled(nodes, "work>again out>END"), {"xs": ["a", "b"]})
    asked = []
    while at.calls:
        path = next(iter(at.calls))
        asked.append((path, at.prompt(path)))
        at.answer(path)
    assert sorted(asked) == [(f"m#1[{n}]/work#{k}", f"{item} {k - 1}") for n, item in enumerate("ab") for k in (1, 2)]


FAILING = {"xs": [*"abc"], "topic": "t"}


def test_fail_fast_ends_the_others_and_the_node_fails_with_what_failed_inside() -> None:
    at = play(mapped(), FAILING).fail("m#1[1]/draft#1")
    assert at.run.error is not None
    assert (at.run.status, at.run.error["code"], at.run.error["node_path"]) == (
        "failed", "MODEL_NOT_FOUND", "m#1[1]/draft#1"
    )  # fmt: skip
    assert [fact.frame for fact in at.facts(e.FrameFailed)] == ["m#1[1]/", ""]
    assert [(fact.firing, fact.reason) for fact in at.facts(e.FiringCancelled)] == [
        ("m#1[0]/draft#1", "another frame failed"), ("m#1[2]/draft#1", "another frame failed"),
    ]  # fmt: skip


def test_the_on_error_of_a_fan_out_leads_on_along_the_edges_of_its_join() -> None:
    at = play(mapped(on_error="continue"), FAILING).fail("m#1[1]/draft#1")
    assert at.calls.keys() >= {"last#1"}
    assert errors(at.run) == {"m": {"code": "MODEL_NOT_FOUND", "message": "no"}}


@pytest.mark.parametrize(
    ("policy", "there"),
    [("collect_partial", {"error": {"code": "MODEL_NOT_FOUND", "message": "no"}}), ("ignore", None)],
)
def test_a_failed_item_leaves_a_mark_in_its_place(policy: str, there: Any) -> None:
    at = play(mapped(fail_policy=policy, max_parallelism=1), FAILING)
    at.answer("m#1[0]/draft#1", "A").fail("m#1[1]/draft#1").answer("m#1[2]/draft#1", "C").answer("last#1", "end")
    assert at.facts_of("m")[0].output == (["A", there, "C"],)
    assert at.run.status == "completed"
    assert [fact.frame for fact in at.facts(e.FrameFailed)] == ["m#1[1]/"]


@pytest.mark.parametrize("policy", ["collect_partial", "ignore"])
def test_of_a_fan_out_that_put_up_with_failures_it_is_told_how_many_and_the_first(policy: str) -> None:
    at = play(mapped(fail_policy=policy, max_parallelism=1), FAILING)
    at.answer("m#1[0]/draft#1", "A").fail("m#1[1]/draft#1")
    assert errors(at.run) == {}
    loaded = checkpoint.load(at.graph, checkpoint.dump(at.run))
    assert checkpoint.dump(loaded) == checkpoint.dump(at.run)
    at.fail("m#1[2]/draft#1").answer("last#1", "end")
    said = "2 of 3 items failed (first: MODEL_NOT_FOUND no)"
    assert errors(at.run) == {"m": {"code": "ITEMS_FAILED", "message": said, "failed": 2, "of": 3}}
    assert errors(folded(at.graph, at.log)) == errors(at.run)
    assert errors(checkpoint.load(at.graph, checkpoint.dump(at.run))) == errors(at.run)


def test_what_else_runs_in_a_failed_item_is_cancelled_down_to_the_frames_inside() -> None:
    inner = compiled([gate("ok")], name="asks")
    nodes = [
        each("m", "xs", "fork", "meet", fail_policy="ignore"),
        plain("fork"),
        llm("a"),
        sub("s", "asks"),
        join("meet", "a"),
    ]
    at = play(compiled(nodes, "fork>a fork>s a>meet s>meet meet>END", inner=[inner]), {"xs": [1, 2]})
    at.fail("m#1[0]/a#1")
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["m#1[0]/s#1/ok#1", "m#1[0]/s#1"]
    assert [(one.firing, one.status) for one in at.run.gates.values()] == [
        ("m#1[0]/s#1/ok#1", "withdrawn"), ("m#1[1]/s#1/ok#1", "pending"),
    ]  # fmt: skip
    at.answer("m#1[1]/a#1", "A").vote("m#1[1]/s#1/ok#1", "approve")
    assert final_state(at.run) == ([None, ["A"]],)


def test_enough_results_end_the_rest() -> None:
    at = play(mapped(over={"wait": {"count": 2}}, max_parallelism=3), {"xs": [*"abcde"], "topic": "t"})
    at.answer("m#1[2]/draft#1", "C").answer("m#1[0]/draft#1", "A")
    assert at.facts_of("m")[0].output == (["A", "C"],)
    assert at.facts(e.ItemsClosed) == [e.ItemsClosed("m#1", (0, 2))]
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["m#1[1]/draft#1", "m#1[3]/draft#1"]


def test_fewer_results_than_would_be_enough_are_all_there_are() -> None:
    at = play(mapped(over={"wait": {"count": 3}}, fail_policy="ignore"), {"xs": [*"abc"], "topic": "t"})
    at.fail("m#1[1]/draft#1").answer("m#1[2]/draft#1", "C").answer("m#1[0]/draft#1", "A")
    assert at.facts_of("m")[0].output == (["A", "C"],)
    assert at.facts(e.ItemsClosed) == [e.ItemsClosed("m#1", (0, 2), short=True)]


def test_a_gate_inside_an_item_is_answered_for_that_item_alone() -> None:
    nodes = [each("m", "xs", "ask", "ask"), gate("ok"), gate("ask", prompt="{item}?")]
    at = play(compiled([nodes[0], nodes[2]], "ask>END"), {"xs": ["a", "b"]})
    assert [(one.firing, one.node_id, one.prompt) for one in at.run.open_approvals] == [
        ("m#1[0]/ask#1", "ask", "a?"), ("m#1[1]/ask#1", "ask", "b?"),
    ]  # fmt: skip
    at.vote("m#1[1]/ask#1", "approve").vote("m#1[0]/ask#1", "approve", by="bo")
    (result,) = final_state(at.run)
    assert [one["by"] for one in result] == ["bo", "ann"]  # type: ignore[union-attr,index,call-overload]  # two decisions


def test_an_item_that_another_graph_does_not_take_fails_as_any_other() -> None:
    inner = compiled([llm("a")], name="strict", input_schema={"type": "string"})
    at = play(
        compiled([each("m", "xs", graph_name="strict", fail_policy="collect_partial")], inner=[inner]), {"xs": [1, "x"]}
    )
    (failed, _) = at.answer("m#1[1]/a#1", "A").facts_of("m")[0].output[0]
    assert failed["error"]["code"] == "INPUT_INVALID"


def test_an_item_costs_no_more_events_than_its_nodes() -> None:
    nodes = [each("m", "xs", "t", "j", output_key="out"), does("t", {"op": "copy", "from": "item", "path": "k"}),
             join("j", "k", mode="first_non_null")]  # fmt: skip
    graph = compiled(nodes, "t>j j>END")
    counts = [len(play(graph, {"xs": [*range(count)]}).log) for count in (0, 50)]
    assert counts[1] - counts[0] == 4 * 50


def all_kinds() -> Graph:
    inner = compiled([llm("a"), gate("ok")], "a>ok", name="asks")
    nodes = [
        each("m", "xs", "fork", "meet", max_parallelism=2, fail_policy="collect_partial"), plain("fork"), llm("w"),
        sub("s", "asks"), join("meet", "w", "s"), each("n", "xs", "t", "t", output_key="again"),
        llm("t", "{item}"),
    ]  # fmt: skip
    return compiled(nodes, "fork>w fork>s w>meet s>meet meet>n t>END", inner=[inner])


def through(at: Played) -> Played:
    while at.calls or at.run.open_approvals:
        for path in [*at.calls]:
            if path.startswith("m#1[1]/w"):
                at.fail(path)
            elif path in at.calls:
                at.answer(path, path)
        for open_ in at.run.open_approvals:
            at.vote(open_.firing, "approve")
    return at


WHOLE = through(play(all_kinds(), {"xs": [1, 2, 3]}))


@pytest.mark.parametrize("cut", range(3, len(WHOLE.log)))
def test_a_run_cut_anywhere_and_taken_up_again_comes_to_the_same(cut: int) -> None:
    graph, log = WHOLE.graph, WHOLE.log[:cut]
    run = folded(graph, log)
    for begun in (run, checkpoint.load(graph, checkpoint.dump(run))):
        again = through(Played(graph, begun, [*log]).go())
        assert canonical_record(graph, again.log) == canonical_record(graph, WHOLE.log)
        assert again.run.status == "completed"


def test_cancelling_ends_everything_inside_and_nothing_is_begun_any_more() -> None:
    at = play(nested(), {"xs": [["a", "b"], ["c"]]}).cancel()
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == [
        "outer#1[0]/inner#1[0]/draft#1", "outer#1[0]/inner#1[1]/draft#1", "outer#1[1]/inner#1[0]/draft#1",
        "outer#1[0]/inner#1", "outer#1[1]/inner#1", "outer#1",
    ]  # fmt: skip
    assert (at.run.status, [*at.run.frames]) == ("cancelled", [""])


# -- what the compiler says ----------------------------------------------------------------------------------------


def issues(*nodes: dict[str, Any], edges: str = "", **top: Any) -> list[tuple[str, str]]:
    wires = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    found = compile_graph({"name": "g", "entry": nodes[0]["id"], "nodes": [*nodes], "edges": wires, **top})
    return [(issue.code, issue.pointer) for issue in found.issues if issue.severity != "info"]


def test_what_is_written_for_an_item_cannot_be_read_after_the_items() -> None:
    nodes = [each("m", "xs", "a", "j", output_key="all"), llm("a", output_key="k"), join("j", "k"),
             llm("z", "{k} {outputs.a} {all}")]  # fmt: skip
    spec = {"name": "g", "entry": "m", "nodes": nodes, "edges": [{"from": "a", "to": "j"}, {"from": "j", "to": "z"}]}
    said = [(one.code, one.message) for one in compile_graph(spec).issues if one.severity == "warning"]
    assert [code for code, _ in said] == ["KEY_READ_BEFORE_WRITE"] * 2
    assert all("for each item" in message for _, message in said)


CLOSED = "REGION_NOT_CLOSED", "/nodes/0/config/join"


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ([each("m", "xs", "a", "j"), llm("a"), llm("b"), join("j")], "a>END b>j"),
        ([each("m", "xs", "a", "j"), llm("a"), llm("b"), join("j")], "a>b a>j b>END"),
        ([each("m", "xs", "a", "j"), router("a", "k", {"x": ["END"]}, ["j"]), join("j")], "j>END"),
        ([each("m", "xs", "a", "j"), llm("a"), router("j", "k", {"x": ["END"]}, ["END"])], "a>j"),
        ([each("m", "xs", "a", "j"), llm("a"), join("j")], "a>j j>a"),
        ([each("m", "xs", "a", "j"), router("a", "k", {"x": ["m"]}, ["j"]), join("j")], "j>END"),
        ([each("m", "xs", "a", "j"), llm("a"), join("j", on_error={"goto": ["a"]})], "a>j"),
    ],
    ids=["no way to the join", "can end", "chooses END", "the join chooses", "the join leads back", "leads back",
         "the join chooses after an error"],
)  # fmt: skip
def test_what_runs_for_an_item_is_a_closed_region(nodes: list[dict[str, Any]], edges: str) -> None:
    assert CLOSED in issues(*nodes, edges=edges)


def test_nothing_else_leads_into_what_runs_for_an_item() -> None:
    start = {"id": "s", "type": "passthrough"}
    nodes = [start, each("m", "xs", "a", "j"), llm("a"), join("j")]
    assert ("REGION_NOT_CLOSED", "/nodes/1/config/join") in issues(*nodes, edges="s>m s>a a>j")
    inside = [each("m", "xs", "a", "j"), llm("a"), join("j")]
    assert ("REGION_NOT_CLOSED", "/nodes/0/config/join") in issues(*inside, edges="a>j", entry="a")
    shared = [each("m", "xs", "n", "j"), each("n", "item", "a", "j"), llm("a"), join("j")]
    assert ("REGION_NOT_CLOSED", "/nodes/1/config/join") in issues(*shared, edges="a>j")


def test_items_write_to_states_of_their_own_so_equal_keys_are_no_conflict() -> None:
    nodes = [plain("s"), each("m", "xs", "a", "j", output_key="p"), llm("a", output_key="k"), join("j", "k"),
             each("n", "xs", "b", "i", output_key="q"), llm("b", output_key="k"), join("i", "k"),
             join("z", "p", "q")]  # fmt: skip
    assert issues(*nodes, edges="s>m s>n a>j b>i j>z i>z", input_schema={"properties": {"xs": {}}}) == []
    inside = [each("m", "xs", "f", "j"), plain("f"), llm("a", output_key="k"), llm("b", output_key="k"), join("j", "k")]
    assert ("PARALLEL_WRITE_CONFLICT", "/nodes/2") in issues(*inside, edges="f>a f>b a>j b>j")
    both = [plain("s"), each("m", "xs", "a", "a", output_key="k"), llm("a"), llm("b", output_key="k"), join("z", "k")]
    assert ("PARALLEL_WRITE_CONFLICT", "/nodes/1") in issues(*both, edges="s>m s>b a>z b>z")


def test_nine_fan_outs_inside_one_another_are_too_deep() -> None:
    def tower(levels: int) -> list[tuple[str, str]]:
        nodes = [each(f"m{n}", "xs", f"m{n + 1}" if n < levels - 1 else "a", f"j{n}") for n in range(levels)]
        joins = [join(f"j{n}") for n in range(levels)]
        edges = " ".join(["a>j" + str(levels - 1), *(f"j{n}>j{n - 1}" for n in range(levels - 1, 0, -1))])
        return issues(*nodes, llm("a"), *joins, edges=edges, input_schema={"properties": {"xs": {}}})

    assert tower(8) == []
    assert tower(9) == [("NESTING_TOO_DEEP", "/nodes/8")]


def test_a_place_that_a_failed_item_held_is_given_on() -> None:
    nodes = [each("m", "xs", "draft", "draft", fail_policy="ignore"), llm("draft")]
    at = play(compiled(nodes, "draft>END", max_parallelism=1), {"xs": [1, 2]})
    assert [*at.calls] == ["m#1[0]/draft#1"]
    at.fail("m#1[0]/draft#1").answer("m#1[1]/draft#1", "B")
    assert final_state(at.run) == ([None, "B"],)


def late(at: Played, after_ms: int) -> Played:
    at.at_ms += after_ms
    return at.go(*waits.due(at.run, at.at_ms))


def test_a_fan_out_that_takes_too_long_fails_and_what_is_open_is_closed() -> None:
    at = play(mapped(timeout_ms=100), FAILING).answer("m#1[0]/draft#1")
    assert waits.next_due_ms(at.run) == at.at_ms + 100
    assert late(at, 99).run.status == "running"
    late(at, 1)
    assert at.run.error is not None
    assert (at.run.error["code"], at.run.error["node_path"], at.run.error["details"]) == (
        "FRAMES_TIMEOUT", "m#1", {"timeout_ms": 100, "done": 1, "of": 3}
    )  # fmt: skip
    assert [(fact.firing, fact.reason) for fact in at.facts(e.FiringCancelled)] == [
        ("m#1[1]/draft#1", "the time was over"), ("m#1[2]/draft#1", "the time was over"),
    ]  # fmt: skip


def test_what_is_not_there_in_time_is_put_up_with_as_any_other_failure() -> None:
    at = play(mapped(timeout_ms=100, fail_policy="collect_partial", max_parallelism=1), FAILING)
    again = checkpoint.load(at.graph, checkpoint.dump(late(at.answer("m#1[0]/draft#1", "A"), 100).run))
    assert again.status == "running"
    error = {"error": {"code": "FRAMES_TIMEOUT", "message": "what runs inside it took longer than 100 ms"}}
    assert at.facts_of("m")[0].output == (["A", error, error],)
    assert at.prompt("last#1").startswith('Use ["A",')


def test_what_is_done_in_time_is_not_late_any_more() -> None:
    at = play(mapped(timeout_ms=100), FAILING)
    for item in range(3):
        at.answer(f"m#1[{item}]/draft#1")
    assert waits.next_due_ms(at.run) is None
    assert late(at, 1_000).go(e.TimerFired("m#1")).calls.keys() == {"last#1"}


def test_an_item_that_cannot_begin_goes_with_its_run_when_that_fails_at_the_same_moment() -> None:
    inner = compiled([llm("a")], name="strict", input_schema={"type": "string"})
    nodes = [plain("s"), each("m", "xs", graph_name="strict"), does("bad", {"op": "copy", "from": "none", "path": "k"})]
    at = Played(compiled(nodes, "s>m s>bad", inner=[inner], output_key="xs"))
    at.feed(e.RunAccepted("run-1", "g", at.graph.version, {"xs": ["x", 5]}), e.RunStarted())
    at.go()
    assert (at.run.status, [*at.run.frames], at.run.closing) == ("failed", [""], {})


def test_a_drawing_knows_the_ways_of_items_and_how_often_each_was_taken() -> None:
    at = play(mapped(), {"xs": [*"abc"], "topic": "t"}).answer_all()
    labels = {(way.source, way.target): way.label for way in ways.ways(at.graph)}
    assert labels["m", "draft"] == "for each of xs"
    taken = ways.taken(at.graph, [event.fact for event in at.log])
    assert taken == {
        ("START", "", "m"): 1, ("m", "for_each", "draft"): 3, ("draft", "", "done"): 3, ("done", "", "last"): 1,
        ("last", "", "END"): 1,
    }  # fmt: skip
    inner = compiled([llm("a")], name="asks")
    over = play(compiled([each("m", "", graph_name="asks"), llm("a")], "m>a", inner=[inner]), [1]).answer_all()
    assert ways.taken(over.graph, [event.fact for event in over.log]) == {
        ("START", "", "m"): 1, ("m", "", "a"): 1, ("a", "", "END"): 1,
    }  # fmt: skip


def test_facts_about_frames_that_are_not_there_change_nothing() -> None:
    at = play(mapped(), {"xs": [*"ab"], "topic": "t"})
    before = checkpoint.dump(at.run)
    error = {"code": "X", "message": "y"}
    at.feed(e.FramesOpened("m#1", 2), e.FrameFailed(error, "m#1[7]/"), e.TimerFired("m#1"), e.TimerFired("nobody#1"))
    at.run.seq -= 4
    assert checkpoint.dump(at.run) == before


def test_a_snapshot_whose_frame_nobody_owns_is_refused() -> None:
    at = play(mapped(), {"xs": [*"ab"], "topic": "t"})
    body = json.loads(checkpoint.dump(at.run))
    body["frames"][1]["owner"] = "draft#1"
    with pytest.raises(ValueError, match="nothing owns frame 0 of draft#1"):
        checkpoint.load(at.graph, json.dumps(body).encode())


def test_what_an_item_took_away_is_not_there_after_a_snapshot_either() -> None:
    nodes = [
        each("m", "xs", "drop", "draft"),
        does("drop", {"op": "delete", "path": "topic"}),
        llm("draft", "{topic?}."),
    ]
    at = play(compiled(nodes, "drop>draft draft>END"), {"xs": [1], "topic": "t"})
    again = Played(at.graph, checkpoint.load(at.graph, checkpoint.dump(at.run)))
    assert again.go().prompt("m#1[0]/draft#1") == "."


def test_a_frame_inside_one_that_ends_ends_with_it_and_is_told_of_once() -> None:
    strict = compiled([llm("a")], name="strict", input_schema={"type": "string"})
    nodes = [each("m", "xs", "f", "j", fail_policy="ignore"), plain("f"), sub("s", "strict", input_key="item"),
             does("bad", {"op": "copy", "from": "none", "path": "k"}), join("j")]  # fmt: skip
    at = play(compiled(nodes, "f>s f>bad s>j bad>j j>END", inner=[strict]), {"xs": [5]})
    assert (at.run.status, final_state(at.run)) == ("completed", ([None],))
    assert [fact.frame for fact in at.facts(e.FrameFailed)] == ["m#1[0]/"]


def test_the_graphs_a_spec_names_are_found_whatever_else_is_wrong_with_it() -> None:
    raw = {"nodes": [sub("a", "x"), each("b", "xs", graph_name="y", graph_version="v"), sub("c", "x"), llm("d"), 5]}
    assert named_in(raw) == [("x", ""), ("y", "v")]
    assert [named_in(wrong) for wrong in (5, {}, {"nodes": 5}, {"nodes": [{"config": {"graph_name": 5}}]})] == [[]] * 4
    assert named_in({"nodes": [{"config": {"graph_name": "x", "graph_version": 5}}]}) == [("x", "")]


@pytest.mark.parametrize(
    ("kind", "config", "current"),
    [
        ("parallel", {"for_each": {}}, True), ("parallel", {"for_each": {}, "output_key": "k"}, False),
        ("subgraph", {"graph_name": "g"}, True), ("subgraph", {"graph_name": "g", "output_key": "k"}, False),
        ("subgraph", {"graph_name": "g", "output": {"a": "b"}}, False),
    ],
)  # fmt: skip
def test_the_result_is_the_current_value_where_no_key_is_named(
    kind: str, config: dict[str, Any], current: bool
) -> None:
    assert NODE_TYPES[kind].writes_current(NODE_TYPES[kind].Config(**config)) is current
