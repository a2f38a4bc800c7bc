"""Where people's decisions stand: nothing else may be put there."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.frame_tree import spread
from agent_graph.core.graph import Graph
from agent_graph.core.guarded import decided_at, guarded
from tests.core import played
from tests.core.played import sub
from tests.specs import gate, join, node, passthrough


def compiled(*nodes: dict[str, Any], edges: str, inner: tuple[Graph, ...] = (), **top: Any) -> Graph:
    return played.compiled(nodes, edges, inner=inner, **top)


def outer(result: str, **config: Any) -> Graph:
    """Runs a graph with a gate, whose result is at `result`."""
    held = compiled(gate("ok", output_key="verdict"), edges="ok>END", name="inner", output_key=result)
    return compiled(sub("s", "inner", **config), edges="s>END", inner=(held,))


def test_a_gate_keeps_its_decision_under_its_own_name_or_its_output_key() -> None:
    graph = compiled(gate("a"), gate("b", output_key="x.y"), edges="a>b b>END")
    assert decided_at(graph) == [("a", "a"), ("b", "x.y")]
    assert guarded(graph) == {"a", "x", "x.y"}
    assert spread(graph, {"a": 1, "x": {"y": 1}, "x.y": 1, "z": 1}) == {"z": 1}


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({"output_key": "out"}, {"out"}),
        ({"output": {"a.b": "verdict", "c": "other"}}, {"a", "a.b"}),
        ({}, set()),  # then it is the current value, which is no key
    ],
)
def test_a_decision_that_comes_out_of_a_graph_inside_is_guarded_too(config: Any, keys: set[str]) -> None:
    assert guarded(outer("verdict", **config)) == keys


def test_what_else_comes_out_of_a_graph_with_a_gate_can_be_an_input() -> None:
    assert guarded(outer("text", output_key="text", input_key="text")) == set()


def test_a_gate_among_the_items_of_a_list_guards_their_results() -> None:
    fan = node("p", "parallel", for_each={"path": "xs"}, entry="g", join="j", output_key="all")
    around = (join("j", ["g"]), passthrough("e"))
    edges = "p>g g>j j>e e>END"
    assert ("p", "all") in decided_at(compiled(fan, gate("g"), *around, edges=edges))
    assert decided_at(compiled(fan, passthrough("g"), *around, edges=edges)) == []


def test_a_graph_that_runs_itself_is_looked_at_once() -> None:
    again = sub("s", "g", allow_recursion=True, output_key="again")
    assert guarded(compiled(gate("ok"), again, edges="ok>s s>END", output_key="ok")) == {"ok", "again"}
