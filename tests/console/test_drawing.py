"""Where nodes stand in a drawing: below what leads to them, beside each other, within the picture."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.console.drawing import drawn, picture
from agent_graph.console.drawing.layers import Room, planned
from agent_graph.core.compile import compile_graph
from agent_graph.core.render import as_json
from agent_graph.core.template import instantiate
from agent_graph.engine.templates import Library

NAMES = [f"n{number}" for number in range(8)]
WAYS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20)
WIDTHS = st.fixed_dictionaries({name: st.floats(20, 200) for name in NAMES})


@given(widths=WIDTHS, ways=WAYS)
def test_no_two_nodes_touch_and_everything_is_within_the_picture(widths: Any, ways: Any) -> None:
    plan = planned(Room(widths, {}, {}), ways, apart=90, margin=20)
    rows: dict[float, list[tuple[float, float]]] = {}
    for name, (x, y) in plan.places.items():
        rows.setdefault(y, []).append((x - widths[name] / 2, x + widths[name] / 2))
        assert x - widths[name] / 2 >= 0
        assert x + widths[name] / 2 <= plan.width
        assert 0 <= y <= plan.height
    for row in rows.values():
        for (_, right), (left, _) in pairwise(sorted(row)):
            assert right < left
    assert set(plan.ways) == {way for way in ways if way[0] != way[1]}
    for (source, target), points in plan.ways.items():
        assert (points[0], points[-1]) == (plan.places[source], plan.places[target])


@given(ways=WAYS)
def test_ways_that_close_no_circle_lead_down(ways: Any) -> None:
    forward = [(one, other) for one, other in ways if one < other]
    plan = planned(Room(dict.fromkeys(NAMES, 50.0), {}, {}), forward, apart=90, margin=20)
    assert all(plan.places[one][1] < plan.places[other][1] for one, other in forward)


@pytest.mark.parametrize("template", sorted(Library(None).all()))
def test_every_template_is_drawn_whole_and_the_same_each_time(template: str) -> None:
    made = Library(None).get(template)
    graph = compile_graph(instantiate(made, "a_graph", params=made.sample.get("params", {}))).graph
    assert graph is not None
    shown = drawn(as_json(graph))
    assert shown is not None
    assert shown == drawn(as_json(graph))
    root = ElementTree.fromstring(str(shown))
    space = {"svg": "http://www.w3.org/2000/svg"}
    assert len(root.findall("svg:g[@class='node']", space)) == len(graph.nodes)


def graph(nodes: int, *, edges: Any = (), **more: Any) -> Any:
    return {
        "entry": "n0", "nodes": [{"id": f"n{number}", "type": "passthrough"} for number in range(nodes)],
        "edges": list(edges), **more,
    }  # fmt: skip


def test_what_is_too_large_to_be_read_is_not_drawn() -> None:
    assert drawn(graph(picture.NODES)) is not None
    assert drawn(graph(picture.NODES + 1)) is None


def test_a_run_is_drawn_with_what_it_took_and_how_often() -> None:
    edges = [{"from": "n0", "to": "n0", "label": "again"}, {"from": "n0", "to": "END"}]
    observed = {
        "nodes": {"n0": {"status": "failed", "firings": 3, "failed": 1}},
        "ways": [{"from": "n0", "to": "n0", "name": "again", "times": 2}],
    }
    shown = str(drawn(graph(1, edges=edges, observed=observed)))
    assert "node-failed" in shown
    assert "passthrough, 3 times, 1 failed" in shown
    assert "again (2 times)" in shown
    assert shown.count('class="way taken"') == 1


def test_a_label_is_text_whatever_stands_in_it() -> None:
    evil = "</svg><script>alert(1)</script>\u202e\x00"
    nodes = [{"id": "n0", "type": "llm", "label": evil, "description": evil}]
    shown = str(drawn(graph(1, edges=[{"from": "n0", "to": "END", "label": evil}]) | {"nodes": nodes}))
    root = ElementTree.fromstring(shown)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "\u202e" not in shown
