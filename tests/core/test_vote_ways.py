"""Where a vote can lead: its deadlock is a way like any other, seen by compiler, scheduler and drawing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.graph import END, Graph
from agent_graph.core.render import mermaid
from agent_graph.core.ways import Way, taken, ways
from tests.fakes.played import Played, play
from tests.specs import join, llm, passthrough, spec


def council(*edges: str, **config: Any) -> dict[str, Any]:
    """Two voters; without agreement a third is asked, and the vote is counted with its voice."""
    vote = {"mode": "vote", "output": "outcome", "candidates": ["A", "B"], **config}
    return spec(
        passthrough("fork"), llm("v1", output_key="b1"), llm("v2", output_key="b2"), join("vote", ["b1", "b2"], **vote),
        llm("chair", "{outcome}", output_key="chosen"), llm("told", "{outcome.winner}", output_key="chosen"),
        edges=" ".join(("fork>v1 fork>v2 v1>vote v2>vote chair>END told>END", *edges)), output_key="chosen",
    )  # fmt: skip


def without(body: dict[str, Any], node_id: str) -> dict[str, Any]:
    """The graph less one node and its edges."""
    edges = [edge for edge in body["edges"] if node_id not in edge.values()]
    return body | {"nodes": [each for each in body["nodes"] if each["id"] != node_id], "edges": edges}


def graph_of(body: dict[str, Any]) -> Graph:
    compiled = compile_graph(body)
    assert compiled.graph is not None, [issue.to_json() for issue in compiled.issues]
    assert [issue.to_json() for issue in compiled.issues if issue.severity != "info"] == []
    return compiled.graph


def played(graph: Graph, one: str, two: str) -> Played:
    return play(graph, "?", lambda node, _nth, _call: {"v1": one, "v2": two}.get(node, f"<{node}>"))


def test_a_deadlock_takes_its_own_way_and_a_decision_the_edges() -> None:
    graph = graph_of(council("vote>told", on_deadlock=["chair"]))
    decided, dead = played(graph, "A", "A"), played(graph, "A", "B")
    assert (decided.asked[-1], decided.routes, decided.result) == ("told", ["decided"], "<told>")
    assert (dead.asked[-1], dead.routes, dead.result) == ("chair", ["deadlock"], "<chair>")
    assert decided.prompt("told") == "A"
    assert '"deadlock":"tie"' in dead.prompt("chair")
    assert taken(graph, dead.facts)["vote", "deadlock", "chair"] == 1
    assert taken(graph, decided.facts)["vote", "decided", "told"] == 1


def test_its_ways_are_named_and_drawn() -> None:
    graph = graph_of(without(council("vote>told", on_deadlock=["told", "END"]), "chair"))
    assert [way for way in ways(graph) if way.source == "vote"] == [
        Way("vote", "told", ("decided",)),
        Way("vote", "told", ("deadlock",), "deadlock"),
        Way("vote", END, ("deadlock",), "deadlock"),
    ]
    merman = pytest.importorskip("merman", reason="the parser `merman` is not installed (extra `dev`)")
    engine = merman.MermanEngine(None, merman.MermanEngineServices())
    text = mermaid(graph, include_details=True).text
    links = [edge["label"] for edge in json.loads(engine.parse_json(text, None))["edges"]]
    assert sorted(label for label in links if label) == ["deadlock", "deadlock"]
    assert "on_deadlock" not in text


def test_a_deadlock_may_end_the_branch() -> None:
    graph = graph_of(without(council("vote>told", on_deadlock=[]), "chair") | {"output_key": "outcome"})
    assert Way("vote", END, ("deadlock",), "deadlock") in ways(graph)
    made = played(graph, "A", "B")
    assert made.asked == ["v1", "v2"]
    assert made.result["tied"] == ["A", "B"]


def test_without_a_way_of_its_own_the_outcome_is_in_the_state_for_a_router() -> None:
    graph = graph_of(without(council("vote>told"), "chair"))
    assert [way.transitions for way in ways(graph) if way.source == "vote"] == [()]
    made = played(graph, "A", "B")
    assert (made.routes, made.result, made.prompt("told")) == ([], "<told>", "null")


def test_a_deadlock_that_leads_back_is_a_cycle_that_may_end() -> None:
    graph = graph_of(without(council("vote>told", on_deadlock=["fork"]), "chair"))
    said = iter(["A", "B", "B", "B"])
    made = play(graph, "?", lambda node, _nth, _call: next(said) if node != "told" else "<told>")
    assert made.routes == ["deadlock", "decided"]
    assert made.prompt("told") == "B", "the second round's ballots, and none of the first"


def test_a_deadlock_that_names_nobody_is_found() -> None:
    compiled = compile_graph(council("vote>told", on_deadlock=["chiar"]))
    (issue,) = [each for each in compiled.issues if each.severity == "error"]
    assert (issue.code, issue.pointer) == ("UNKNOWN_NODE", "/nodes/3/config/on_deadlock/0")


def test_the_two_ways_of_a_vote_exclude_each_other() -> None:
    graph = graph_of(council("vote>told", on_deadlock=["chair"]))
    assert graph.output.declared  # both ends write `chosen`, and no PARALLEL_WRITE_CONFLICT was found


def test_a_vote_at_the_end_gives_its_output_key() -> None:
    body = without(without(council("vote>END"), "chair"), "told")
    body["nodes"][3]["config"] |= {"output": "", "output_key": "outcome"}
    del body["output_key"]
    made = played(graph_of(body), "A", "A")
    assert made.result["winner"] == "A"
