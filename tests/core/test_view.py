"""What a firing sees through its view: paths, books, the current value, and a join's inputs by round."""

from __future__ import annotations

from typing import Any

from agent_graph.core.effects import MISSING
from agent_graph.core.view import View
from tests.core.played import Played, compiled, does, llm, plain, play, router, writes


def view(at: Played, path: str) -> View:
    firing = at.run.firing(path)
    assert firing is not None
    return View(firing)


def test_a_firing_sees_input_state_and_outputs_of_its_past() -> None:
    at = play(compiled([llm("a"), writes("w", k={"x": [1, 2]}), llm("b")], "a>w w>b", reducers={"log": "append"}), "in")
    seen = view(at.answer("a#1", "A"), "b#1")
    assert (seen.current, seen.run_input, seen.reentered) == ("A", "in", False)
    assert [seen.read(path) for path in ("k.x.1", "/k/x/0", "outputs.a", "k.y")] == [2, 1, "A", MISSING]
    assert seen.resolve("k.y") == ("k", "y")
    assert (seen.reducer("log"), seen.reducer("k")) == ("append", "")


def supervised(*inputs: str, **config: Any) -> Played:
    """A supervisor asks both workers in the first round and one of them in the second; a plan is made before."""
    meet = {"id": "meet", "type": "join", "config": {"inputs": [*inputs], "output": "all", **config}}
    boss = {"id": "boss", "type": "router", "config": {
        "rules": [{"path": "rounds", "op": "eq", "value": 2, "targets": ["END"]},
                  {"path": "rounds", "op": "eq", "value": 1, "targets": ["b"]}],
        "default": ["a", "b"],
    }}  # fmt: skip
    nodes = [writes("plan", goal="g"), boss, llm("a", "a", output_key="ka"), llm("b", "b"), meet]
    count = does("count", {"op": "increment", "path": "rounds"})
    graph = compiled([*nodes, count], "plan>boss a>meet b>meet meet>count count>boss", output_key="all")
    at = play(graph, {"given": "i"}).answer("a#1", "A").answer("b#1", "B").answer("b#2", "B2")
    assert at.run.status == "completed", at.run.error
    return at


def seen_by_the_join(at: Played) -> list[Any]:
    return [fact.writes[0].value for fact in at.facts_of("meet")]


def test_a_join_does_not_get_an_earlier_rounds_input_again_but_what_was_there_before_the_loop() -> None:
    at = supervised("a", "ka", "b", "goal", "given", "nothing")
    assert seen_by_the_join(at) == [["A", "A", "B", "g", "i", None], [None, None, "B2", "g", "i", None]]


def test_an_earlier_rounds_input_is_there_where_that_is_allowed() -> None:
    assert seen_by_the_join(supervised("a", "ka", "b", allow_stale=True)) == [["A", "A", "B"], ["A", "A", "B2"]]


def test_staleness_is_the_same_where_nothing_becomes_the_base() -> None:
    """Beside the loop a slow branch holds a token, so that all writers of all rounds stay apart."""
    meet = {"id": "meet", "type": "join", "config": {"inputs": ["a", "note"], "output": "all"}}
    again = router("again", "outputs.a", {"more": ["a"]}, default=["END"])
    nodes = [plain("s"), llm("slow"), writes("first", note="n"), llm("a", "a"), meet, again]
    graph = compiled(nodes, "s>slow s>first first>a a>meet meet>again", output_key="all")
    at = play(graph).answer("a#1", "more").answer("a#2", "enough").answer("slow#1")
    assert seen_by_the_join(at) == [["more", "n"], ["enough", "n"]]
    assert at.run.status == "completed"


def test_an_input_that_was_deleted_since_is_not_there() -> None:
    meet = {"id": "meet", "type": "join", "config": {"inputs": ["k", "goal"], "output": "all"}}
    drop = does("drop", {"op": "delete", "path": "k"}, {"op": "increment", "path": "rounds"})
    boss = {"id": "boss", "type": "router", "config": {
        "rules": [{"path": "rounds", "op": "eq", "value": 1, "targets": ["END"]}], "default": ["meet"],
    }}  # fmt: skip
    graph = compiled([boss, meet, drop], "meet>drop drop>boss", output_key="all")
    at = play(graph, {"k": 1, "goal": "g"})
    assert seen_by_the_join(at) == [[1, "g"]]
    assert at.run.status == "completed"
