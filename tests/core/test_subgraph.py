"""A graph inside a graph: its frame, what goes in and comes out, and what becomes of it when something goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph
from agent_graph.core.graph import Graph
from agent_graph.core.nesting import whole
from agent_graph.core.outcome import errors, final_state, state
from agent_graph.core.record import canonical_record
from tests.core.played import Played, compiled, does, folded, gate, llm, plain, play, router, sub, writes


def named(name: str, *nodes: dict[str, Any], edges: str = "", **top: Any) -> Graph:
    return compiled([*nodes], edges, name=name, **top)


DRAFT = named("writer", llm("draft", "Draft {input}"), llm("polish", "Polish {input}"), edges="draft>polish")


def test_a_graph_runs_in_a_frame_of_its_own_and_its_result_goes_on() -> None:
    at = play(compiled([sub("s", "writer"), llm("last", "Use {input}")], "s>last", inner=[DRAFT]), "tea")
    assert at.prompt("s#1/draft#1") == "Draft tea"
    assert at.answer("s#1/draft#1", "leaf").prompt("s#1/polish#1") == "Polish leaf"
    assert at.answer("s#1/polish#1", "green leaf").prompt("last#1") == "Use green leaf"
    at.answer("last#1", "end")
    assert (at.run.status, final_state(at.run), [*at.run.frames]) == ("completed", ("end",), [""])
    assert at.facts(e.FramesOpened) == [e.FramesOpened("s#1")]
    assert at.facts_of("s") == [e.NodeFinished("s#1", output=("green leaf",), current=("green leaf",))]


def test_input_and_output_are_maps_of_paths_and_neither_state_sees_the_other() -> None:
    inner = named("sum", does("add", {"op": "copy", "from": "n.left", "path": "total"},
                              {"op": "increment", "path": "total", "value": 2}), writes("own", mine=1),
                  edges="add>own", output_key="total")  # fmt: skip
    node = sub("s", "sum", input={"n.left": "a.b", "x": "run"}, output={"sum.total": "total", "seen": "mine"})
    at = play(compiled([node, plain("end")], "s>end", inner=[inner], output_key="sum.total"), {"a": {"b": 5}, "run": 0})
    assert final_state(at.run) == (7,)
    assert state(at.run) == {"a": {"b": 5}, "run": 0, "sum": {"total": 7}, "seen": 1}
    assert at.facts_of("s")[0].output == ({"sum.total": 7, "seen": 1},)


def test_an_output_key_gets_the_result_by_the_rule_of_the_graph_inside() -> None:
    inner = named("keyed", writes("w", answer={"x": 1}), output_key="answer.x")
    at = play(compiled([sub("s", "keyed", input_key="in", output_key="got")], inner=[inner]), {"in": 3})
    assert (state(at.run), final_state(at.run)) == ({"in": 3, "got": 1}, (1,))


def test_what_the_graph_inside_reads_as_run_input_is_its_own_input() -> None:
    inner = named("asks", llm("a", "{run_input.q} of {q}"))
    at = play(compiled([sub("s", "asks", input={"q": "question"})], inner=[inner]), {"question": "why", "q": "no"})
    assert at.prompt("s#1/a#1") == "why of why"


def nest(levels: int) -> Graph:
    graph = named("level-0", llm("a"))
    for level in range(1, levels + 1):
        graph = named(f"level-{level}", sub("s", graph.name), inner=[graph])
    return graph


def test_graphs_stand_eight_deep_and_no_deeper() -> None:
    at = play(nest(8))
    path = "s#1/" * 8 + "a#1"
    assert [*at.calls] == [path]
    assert final_state(at.answer(path, "deep").run) == ("deep",)
    found = compile_graph(
        {"name": "g", "entry": "s", "nodes": [sub("s", "level-8")]}, stored={("level-8", ""): nest(8)}
    )
    assert [(one.code, one.pointer) for one in found.issues] == [("NESTING_TOO_DEEP", "/nodes/0")]


def test_a_graph_that_stands_inside_in_two_places_is_counted_once() -> None:
    inner = nest(1)
    (lowest,) = inner.subgraphs.values()
    graph = compiled([sub("s", inner.name), sub("t", lowest.name)], "s>t", inner=[inner, lowest])
    assert sorted(one.name for one in whole(graph)) == ["g", "level-0", "level-1"]


def test_a_region_around_them_is_no_frame() -> None:
    inner = nest(7)
    nodes = [plain("f"), sub("s", inner.name), llm("y"), {"id": "j", "type": "join", "config": {"wait": "any"}}]
    at = play(compiled(nodes, "f>s f>y s>j y>j", inner=[inner]))
    assert "f#1/" + "s#1/" * 8 + "a#1" in at.calls


def test_five_graphs_run_side_by_side_each_with_what_it_sees() -> None:
    sides = [sub(f"s{n}", "writer", input_key=f"k{n}", output_key=f"out{n}") for n in range(5)]
    meet = {"id": "meet", "type": "join", "config": {"inputs": [f"s{n}" for n in range(5)]}}
    wires = " ".join(f"fork>s{n} s{n}>meet" for n in range(5))
    graph = compiled([plain("fork"), *sides, meet], wires, inner=[DRAFT])
    at = play(graph, {f"k{n}": f"v{n}" for n in range(5)})
    assert [at.prompt(f"s{n}#1/draft#1") for n in range(5)] == [f"Draft v{n}" for n in range(5)]
    for n in reversed(range(5)):
        at.answer(f"s{n}#1/draft#1", f"d{n}").answer(f"s{n}#1/polish#1", f"p{n}")
    assert final_state(at.run) == ([f"p{n}" for n in range(5)],)


def counting_down(**more: Any) -> Graph:
    """Runs itself until its count is 0."""
    nodes = [
        does("less", {"op": "increment", "path": "n", "value": -1}),
        {"id": "more", "type": "router", "config": {
            "rules": [{"path": "n", "op": "gt", "value": 0, "targets": ["again"]}], "default": ["done"]}},
        sub("again", "down", input={"n": "n"}, output_key="below", allow_recursion=True),
        does("done", {"op": "set", "path": "below", "value": "bottom"}),
    ]  # fmt: skip
    return named("down", *nodes, edges="less>more again>END done>END", output_key="below", **more)


def test_a_graph_may_run_itself_until_it_ends_by_itself() -> None:
    at = play(counting_down(), {"n": 3})
    assert (at.run.status, final_state(at.run)) == ("completed", ("bottom",))
    assert [fact.firing for fact in at.facts(e.FramesOpened)] == ["again#1", "again#1/again#1"]


def test_recursion_that_does_not_end_fails_at_the_limit() -> None:
    at = play(counting_down(), {"n": 30})
    assert at.run.status == "failed"
    assert at.run.error is not None
    assert (at.run.error["code"], at.run.error["node_path"]) == ("NESTING_TOO_DEEP", "again#1/" * 8 + "again#1")


@pytest.mark.parametrize(
    ("config", "code", "at"),
    [
        ({"graph_name": "nobody"}, "SUBGRAPH_NOT_FOUND", "graph_name"),
        ({"graph_name": "writer", "graph_version": "sha256:no"}, "SUBGRAPH_NOT_FOUND", "graph_version"),
        ({"graph_name": "g"}, "SUBGRAPH_CYCLE", "graph_name"),
        ({"graph_name": "back"}, "SUBGRAPH_CYCLE", "graph_name"),
        ({"graph_name": "far"}, "SUBGRAPH_CYCLE", "graph_name"),
        ({"graph_name": "writer", "allow_recursion": True}, "FIELD_INVALID", "allow_recursion"),
        ({"graph_name": "g", "allow_recursion": True, "graph_version": "sha256:1"}, "FIELD_CONFLICT", "graph_version"),
        ({"graph_name": "writer", "input_key": "a", "input": {"b": "c"}}, "FIELD_CONFLICT", "input"),
        ({"graph_name": "writer", "output_key": "a", "output": {"b": "c"}}, "FIELD_CONFLICT", "output"),
        ({"graph_name": "writer", "input": {"a": ""}}, "FIELD_INVALID", "input/a"),
        ({"graph_name": "writer", "output": {"a..b": "c"}}, "STATE_PATH_INVALID", "output/a..b"),
        ({}, "FIELD_REQUIRED", "graph_name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_graph_inside_is_said_when_the_one_around_it_is_compiled(
    config: dict[str, Any], code: str, at: str
) -> None:
    older = named("g", llm("a"))
    back = named("back", sub("s", "g"), inner=[older])
    far = named("far", sub("s", "back"), inner=[back])
    spec = {"name": "g", "entry": "s", "nodes": [{"id": "s", "type": "subgraph", "config": config}]}
    stored = {(graph.name, ""): graph for graph in (DRAFT, back, far)}
    found = compile_graph(spec, stored=stored)
    assert found.graph is None
    assert (code, f"/nodes/0/config/{at}") in [(one.code, one.pointer) for one in found.issues]


def test_the_version_inside_is_pinned_when_the_graph_around_it_is_compiled() -> None:
    nodes = [{"id": "s", "type": "subgraph", "config": {"graph_name": "writer"}}]
    newer = named("writer", llm("draft", "New {input}"))
    before, after = (compiled(nodes, inner=[graph]) for graph in (DRAFT, newer))
    assert before.version != after.version
    assert before.spec["nodes"] == [
        {"id": "s", "type": "subgraph", "config": {"graph_name": "writer", "graph_version": DRAFT.version}}
    ]
    assert play(before, "x").prompt("s#1/draft#1") == "Draft x"


def test_an_input_the_graph_inside_does_not_take_fails_the_node_and_not_the_program() -> None:
    inner = named("strict", llm("a"), input_schema={"type": "object", "required": ["topic"]})
    graph = compiled([sub("s", "strict", on_error="continue"), llm("next", "{errors.s.code}")], "s>next", inner=[inner])
    at = play(graph, "no object")
    assert at.prompt("next#1") == "INPUT_INVALID"
    assert [fact.frame for fact in at.facts(e.FrameFailed)] == ["s#1/"]
    assert [*at.run.frames] == [""]


def test_a_path_that_leads_nowhere_fails_the_node_before_anything_runs() -> None:
    at = play(compiled([sub("s", "writer", input={"a": "none"})], inner=[DRAFT]))
    assert at.run.error is not None
    assert (at.run.error["code"], at.run.error["node_path"]) == ("PROMPT_VALUE_MISSING", "s#1")
    assert not at.facts(e.FramesOpened)


def test_a_result_that_was_never_written_is_the_failure_of_the_node() -> None:
    inner = named("silent", plain("a"), output_key="k")
    for config in ({}, {"output": {"x": "elsewhere"}}):
        at = play(compiled([sub("s", "silent", **config)], inner=[inner]))
        assert at.run.error is not None
        assert (at.run.status, at.run.error["code"]) == ("failed", "OUTPUT_KEY_NOT_WRITTEN")
        assert [fact.frame for fact in at.facts(e.FrameFailed)] == ["s#1/", ""]


def test_a_failure_fails_frame_after_frame_and_the_run_says_where_it_was() -> None:
    outer = named("outer", plain("f"), sub("in", "writer"), llm("beside"), edges="f>in f>beside",
                  output_key="k", inner=[DRAFT])  # fmt: skip
    at = play(compiled([sub("s", "outer"), llm("last")], "s>last", inner=[outer]))
    at.fail("s#1/in#1/draft#1")
    assert at.run.error is not None
    assert (at.run.error["code"], at.run.error["node_path"]) == ("MODEL_NOT_FOUND", "s#1/in#1/draft#1")
    assert [fact.frame for fact in at.facts(e.FrameFailed)] == ["s#1/in#1/", "s#1/", ""]
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["s#1/beside#1"]
    assert [fact.firing for fact in at.facts(e.NodeFailed)] == ["s#1/in#1/draft#1", "s#1/in#1", "s#1"]
    assert at.calls.keys() <= {"s#1/beside#1"}


def test_the_owner_is_not_retried_and_its_on_error_applies() -> None:
    retry = {"max_attempts": 5, "jitter": False}
    graph = compiled(
        [sub("s", "writer", retry=retry, on_error={"goto": ["plan_b"]}), llm("plan_b", "Instead of {errors.s.code}")],
        inner=[DRAFT],
    )
    at = play(graph).fail("s#1/draft#1")
    assert at.prompt("plan_b#1") == "Instead of MODEL_NOT_FOUND"
    at.answer("plan_b#1", "saved")
    assert (at.run.status, final_state(at.run)) == ("completed", ("saved",))
    assert errors(at.run) == {"s": {"code": "MODEL_NOT_FOUND", "message": "no"}}
    assert not at.facts(e.NodeRetried)


def test_conflicts_that_meet_only_at_the_end_of_a_frame_are_told_once() -> None:
    pick = router("r", "which", {"x": ["a"], "y": ["b"]})
    pick["config"]["mode"] = "all"
    inner = named("clash", pick, does("a", {"op": "set", "path": "k", "value": 1}), llm("b", output_key="k"),
                  output_key="k")  # fmt: skip
    at = play(compiled([sub("s", "clash", input={"which": "w"})], inner=[inner]), {"w": "xy"})
    at.answer("s#1/b#1", "later")
    told = at.facts(e.WriteConflict)
    assert [(fact.firing, fact.key) for fact in told] == [("s#1/END", "k")]
    assert (at.run.met, final_state(at.run)) == ([], ("later",))


def gated() -> Graph:
    inner = named("asks", llm("draft"), gate("ok", output_key="verdict"), llm("go", "Go {verdict.decision}"),
                  edges="draft>ok ok>go")  # fmt: skip
    middle = named("middle", sub("in", "asks"), inner=[inner])
    return compiled([sub("s", "middle")], inner=[middle])


def test_an_approval_inside_shows_where_it_stands_and_is_decided_as_any_other() -> None:
    at = play(gated()).answer("s#1/in#1/draft#1")
    assert at.run.status == "waiting"
    (open_,) = at.run.open_approvals
    assert (open_.firing, open_.node_id) == ("s#1/in#1/ok#1", "ok")
    at.vote("s#1/in#1/ok#1", "approve")
    assert at.prompt("s#1/in#1/go#1") == "Go approve"


def test_cancelling_a_run_withdraws_and_ends_what_stands_inside_first() -> None:
    at = play(gated()).answer("s#1/in#1/draft#1").cancel()
    assert at.run.status == "cancelled"
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["s#1/in#1/ok#1", "s#1/in#1", "s#1"]
    assert [gate.status for gate in at.run.gates.values()] == ["withdrawn"]
    assert [*at.run.frames] == [""]


@pytest.mark.parametrize("cut", range(3, 30))
def test_a_run_cut_anywhere_and_taken_up_again_comes_to_the_same(cut: int) -> None:
    def through(at: Played) -> Played:
        while at.calls or at.run.open_approvals:
            at.answer_all("x")
            for open_ in at.run.open_approvals:
                at.vote(open_.firing, "approve")
        return at

    graph = gated()
    whole = through(play(graph))
    log = whole.log[:cut]
    run = folded(graph, log)
    for begun in (run, checkpoint.load(graph, checkpoint.dump(run))):
        again = through(Played(graph, begun, [*log]).go())
        assert canonical_record(graph, again.log) == canonical_record(graph, whole.log)
