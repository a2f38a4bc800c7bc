"""Snapshots: a run dumped and loaded at any cut has the same future and the same canonical record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.jsonvalue import canonical
from agent_graph.core.outcome import final_state, state
from agent_graph.core.run import Run
from agent_graph.core.scheduler import decide, evolve, new_run
from tests.core.played import Played, compiled, does, gate, llm, plain, play, router, writes

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"d": [value]}
    return value


def council() -> Played:
    """Rounds, reducers, a join in a loop, places to wait for, a gate with two rounds, a repair."""
    nodes = [
        writes("plan", goal={"ü": "é\u2028\U0001f600", "n": 10**60}), plain("fork"), llm("a", output_key="ka"),
        llm("b", output_schema=SCHEMA), does("c", {"op": "append", "path": "log", "value": "c"}),
        {"id": "meet", "type": "join", "config": {"inputs": ["a", "b", "goal"], "output": "all"}},
        does("count", {"op": "increment", "path": "rounds"}, {"op": "append", "path": "log", "value": "r"}),
        router("again", "ka", {"more": ["fork"]}, default=["g"]), gate("g", subject_key="all"),
    ]  # fmt: skip
    edges = "plan>fork fork>a fork>b fork>c a>meet b>meet c>meet meet>count count>again g>END"
    graph = compiled(nodes, edges, reducers={"log": "append", "rounds": "add"}, output_key="all", max_parallelism=1)
    at = play(graph, {"in": deep(60), "x": None})
    for text in ("more", "enough"):
        for _ in range(2):
            path = next(iter(at.calls))
            if path.startswith("a"):
                at.answer(path, text)
            else:
                at.answer(path, "{}", prompt_tokens=2, warnings=({"code": "W", "message": "w"},)).answer(
                    path, '{"n":7}'
                )
    at.vote("g#1", "request_changes", note="näher").vote("g#1", "approve")
    assert at.run.status == "completed", at.run.error
    return at


def branches() -> Played:
    """Branch inputs, conflicts that meet, waiting nodes and a circle."""
    fork = {"id": "fork", "type": "parallel", "config": {
        "branches": [{"id": "one", "entry": "r1", "input": "k"}, {"id": "two", "entry": "r2"}], "join": "end",
    }}  # fmt: skip
    nodes = [
        fork, router("r1", "k", {"1": ["a"]}, default=[]), router("r2", "k", {"2": ["b"]}, default=[]),
        llm("a", output_key="x"), llm("b", output_key="x"), plain("end"), llm("z"),
    ]  # fmt: skip
    at = play(compiled(nodes, "a>end b>end end>z", output_key="x"), {"k": "12"})
    at.answer("b#1", "B").answer("a#1", "A").answer("z#1")
    assert (at.run.status, len(at.facts(e.WriteConflict))) == ("completed", 1)
    return at


def circle() -> Played:
    nodes = [plain("s"), llm("p"), llm("q"), llm("slow")]
    graph = compiled(
        [*nodes, router("rp", "never", {}, default=["q", "END"]), router("rq", "never", {"x": ["p"]}, default=["END"])],
        "s>p s>q s>slow p>rp q>rq", output_key="__input__",
    )  # fmt: skip
    at = play(graph)
    while at.calls:
        at.answer(next(iter(at.calls)))
    assert at.run.status == "completed", at.run.error
    return at


def failing() -> Played:
    nodes = [plain("s"), gate("g"), llm("a"), llm("b"), plain("end")]
    at = play(compiled(nodes, "s>g s>a s>b g>end a>end b>end", output_key="__input__"))
    return at.answer("a#1").fail("b#1")


def rounds_of_one_branch() -> Played:
    """A branch that goes round while the node behind it is slow: further tokens wait for a node that runs."""
    nodes = [llm("ask", output_key="k"), router("r", "k", {"more": ["ask", "slow"]}, default=["slow"]), llm("slow")]
    at = play(compiled(nodes, "ask>r", output_key="k"), {"k": ""})
    at.answer("ask#1", "more").answer("ask#2", "more").answer("ask#3", "enough")
    for nth in (1, 2, 3):
        at.answer(f"slow#{nth}")
    assert at.run.status == "completed", at.run.error
    return at


def interrupted() -> Played:
    at = play(compiled([plain("s"), llm("a"), llm("b"), plain("end")], "s>a s>b a>end b>end"))
    return at.answer("a#1").resume().answer("b#1")


RUNS = {made.__name__: made() for made in (council, branches, circle, rounds_of_one_branch, failing, interrupted)}


def snap(at: Played, run: Run) -> Run:
    return checkpoint.load(at.graph, checkpoint.dump(run))


def facts(at: Played, run: Run) -> list[str]:
    return sorted(repr(action) for action in decide(at.graph, run))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_loaded_at_any_cut_goes_on_as_if_nothing_had_happened(name: str) -> None:
    at = RUNS[name]
    for cut in range(len(at.log) + 1):
        run = new_run()
        for event in at.log[:cut]:
            run = evolve(at.graph, run, event)
        again = snap(at, run)
        assert facts(at, again) == facts(at, run), at.told[:cut]
        assert (again.status, again.seq, state(again)) == (run.status, run.seq, state(run))
        for event in at.log[cut:]:
            again = evolve(at.graph, again, event)
        assert (again.status, again.error, again.usage) == (at.run.status, at.run.error, at.run.usage)
        assert canonical([state(again), list(final_state(again))]) == canonical(
            [state(at.run), list(final_state(at.run))]
        )
        assert again.gates == at.run.gates


@pytest.mark.parametrize("name", RUNS)
def test_a_run_may_be_dumped_and_loaded_after_every_event(name: str) -> None:
    at, run = RUNS[name], new_run()
    for event in at.log:
        run = evolve(at.graph, snap(at, run), event)
    assert checkpoint.dump(run) == checkpoint.dump(snap(at, at.run))


def test_what_a_driver_had_in_hand_is_offered_anew() -> None:
    at = play(compiled([plain("s"), llm("a"), llm("b"), plain("end")], "s>a s>b a>end b>end"))
    assert decide(at.graph, at.run) == ()
    again = snap(at, at.run)
    assert [action.firing for action in decide(at.graph, again)] == ["a#1", "b#1"]  # type: ignore[union-attr]
    assert list(again.open) == ["a#1", "b#1"]


def test_a_node_that_waits_is_released_after_loading() -> None:
    at = play(compiled([plain("s"), llm("a"), llm("b"), plain("end")], "s>a s>b a>end b>end")).answer("a#1")
    at.run = snap(at, at.run)
    at.calls.clear()
    assert at.go().answer("b#1").run.status == "completed"


def test_a_frame_that_is_about_to_fail_starts_nothing_when_it_is_loaded() -> None:
    at = play(compiled([plain("s"), llm("a"), llm("b"), plain("end")], "s>a s>b a>end b>end")).answer("a#1")
    at.feed(e.NodeFailed("b#1", {"code": "X", "message": "y", "class": "bug"}))
    again = snap(at, at.run)
    assert again.frame is not None
    assert list(again.frame.running) == []
    assert facts(at, again) == facts(at, at.run)


def test_a_snapshot_is_text_and_holds_big_integers_deep_values_and_any_sign() -> None:
    at = RUNS["council"]
    text = checkpoint.dump(at.run).decode()
    assert str(10**60) in text
    assert "\U0001f600" in text
    assert state(snap(at, at.run))["in"] == deep(60)


WRONG: dict[str, Any] = {
    "no text": b"\xff", "no JSON": b"{", "empty": b"", "a list": b"[]", "null": b"null", "a number": b"3",
    "nothing in it": b"{}", "too deep": b"[" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_bytes_that_are_no_snapshot_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        checkpoint.load(RUNS["council"].graph, WRONG[name])


@pytest.mark.parametrize("key", ["run_id", "usage", "gates", "open", "queue", "places"])
def test_a_snapshot_that_lacks_something_is_refused(key: str) -> None:
    body = json.loads(checkpoint.dump(RUNS["interrupted"].run))
    del body[key]
    with pytest.raises(ValueError, match=key):
        checkpoint.load(RUNS["interrupted"].graph, json.dumps(body).encode())


@pytest.mark.parametrize("key", ["usage", "gates", "open", "queue", "frames"])
def test_a_snapshot_in_another_form_is_refused(key: str) -> None:
    body = {**json.loads(checkpoint.dump(RUNS["interrupted"].run)), key: ["other"]}
    with pytest.raises(ValueError, match="not a snapshot of a run"):
        checkpoint.load(RUNS["interrupted"].graph, json.dumps(body).encode())


def test_a_snapshot_of_another_format_is_refused() -> None:
    body = {**json.loads(checkpoint.dump(new_run())), "format": checkpoint.FORMAT + 1}
    with pytest.raises(ValueError, match="format"):
        checkpoint.load(RUNS["council"].graph, json.dumps(body).encode())
