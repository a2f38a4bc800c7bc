"""Diagrams: what is drawn is the graph, whatever its labels say. Checked with two independent Mermaid parsers."""

from __future__ import annotations

import html
import json
import os
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.compile import compile_graph
from agent_graph.core.events import NodeFinished, RouteTaken, RunStarted
from agent_graph.core.graph import END, START, Graph
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.render import DIRECTIONS, SHAPES, STATUSES, Rendered, as_json, escape, mermaid, topology_hash
from agent_graph.core.ways import Way, rule_text, taken, ways
from agent_graph.errors import InvalidArgument
from tests.fakes.pictures import data_url

merman = pytest.importorskip("merman", reason="the parser `merman` is not installed (extra `dev`)")
GOLDEN = Path(__file__).parent.parent / "golden" / "diagrams"

ORDINARY = [
    "end",
    "my_end",
    "End",
    "o",
    "x",
    "oven",
    "xray",
    "a-b",
    "1st",
    "a.b",
    "a_b",
    "A_B",
    "style",
    "class",
    "click",
]
HOSTILE = [
    'say "hi"', r"C:\\tmp\\" + '"x"', r"C:\new", "#quot;", "a#35;b", "PR #12;", '`"x"`', "&amp;", "100%", "a;b",
    "%% not a comment", "%%{init: {}}%%", "%%{init: {'theme':'dark'}}%%", "f(x)[0]{y}", "a|b", "((", ">flag]", "[/x/]",
    "B\uff0ctest", "x --> y", "==", "-.-", "x---oB", "end", "subgraph x", "<script>alert(1)</script>",
    "<br/>", "<b>x</b>",
    "<img src=x onerror=alert(1)>", "style a:#b;", "classDef x fill:#f00;", "click n0 callback",
    "fa:fa-car", "fab:fa-x",
    "$$x^2$$", "\ufb02\u00b0\u00b035\u00b6\u00df", "1. first", "- item", "**bold** __b__", "[text](http://x.y)", "~~~",
    "e\u0301 \u00e9", "\u4e2d \u6587", "\u202eabc", "a]", "a)", 'a"]', "a}", "n0 --> n1",
    "@{ shape: circle }", ":::done",
    "javascript:alert(1)", "\U0001f680 go", "#", "##", "#;", "#x;", "&#35;", "&lt;", "\\", "\\\\", "\\n",
    "\\\"", "$", "%",
]  # fmt: skip
RULES = ["a|b", "x --> y", "==", "-.-", 'say "hi"', "#quot;", "`x`", "<b>", "%%{init: {}}%%", "a;b"]


def graph_of(raw: dict[str, Any]) -> Graph:
    compiled = compile_graph(raw)
    assert compiled.graph, [issue.to_json() for issue in compiled.issues]
    return compiled.graph


def chain(labels: list[str], *, ids: list[str] | None = None) -> Graph:
    """Passthrough nodes one after the other; `ids` replaces their ids by ones no spec can have."""
    nodes = [{"id": f"node_{i}", "type": "passthrough", "label": label} for i, label in enumerate(labels)]
    edges = [{"from": f"node_{i}", "to": f"node_{i + 1}"} for i in range(len(labels) - 1)]
    graph = graph_of({"name": "g", "entry": "node_0", "nodes": nodes, "edges": edges})
    if ids is None:
        return graph
    renamed = tuple(replace(node, id=name, label="") for node, name in zip(graph.nodes, ids, strict=True))
    return replace(graph, nodes=renamed, index={name: i for i, name in enumerate(ids)})


def everything() -> Graph:
    """One node of every type, one way of every kind."""
    return graph_of({
        "name": "everything", "entry": "split",
        "nodes": [
            {"id": "split", "type": "parallel", "config": {
                "branches": [{"id": "left", "entry": "think"}, {"id": "right", "entry": "count"}], "join": "meet"}},
            {"id": "think", "type": "llm", "label": "Think", "prompt": "{run_input}",
             "config": {"output_key": "thought"}},
            {"id": "count", "type": "state_transform", "config": {
                "operations": [{"op": "set", "path": "n", "value": 1}]}},
            {"id": "meet", "type": "join", "config": {"inputs": ["thought", "n"], "output": "both"}},
            {"id": "again", "type": "loop", "config": {
                "entry": "work", "exit": "pick", "max_iterations": 3,
                "until": {"path": "n", "op": "gte", "value": 3}, "on_limit": ["gate"]}},
            {"id": "work", "type": "state_transform", "config": {
                "operations": [{"op": "increment", "path": "n", "value": 1}]}},
            {"id": "pick", "type": "router", "config": {
                "rules": [{"path": "n", "op": "gt", "value": 9, "targets": ["END"], "label": "many"},
                          {"any": [{"path": "n", "op": "exists"}, {"not": {"path": "n", "op": "eq", "value": "x"}}],
                           "targets": ["gate", "END"]}],
                "default": []}},
            {"id": "gate", "type": "human_approval", "config": {
                "prompt": "Well?", "on_reject": ["END"], "on_request_changes": "continue"}},
            {"id": "last", "type": "passthrough"},
        ],
        "edges": [
            {"from": "meet", "to": "again"}, {"from": "work", "to": "again"},
            {"from": "gate", "to": "last", "label": "go"}, {"from": "last", "to": "END"},
        ],
        "output_key": "both",
    })  # fmt: skip


def parsed(rendered: Rendered) -> tuple[dict[str, str], Counter[tuple[str, str, str]]]:
    """(labels by drawn id, drawn links with their labels), as an independent parser reads them."""
    engine = merman.MermanEngine(None, merman.MermanEngineServices())
    verdict = engine.validate(rendered.text, None)
    assert verdict.valid, (verdict.error, rendered.text)
    body = json.loads(engine.parse_json(rendered.text, None))
    assert body["subgraphs"] == []
    labels = {node["id"]: node["label"] for node in body["nodes"]}
    links = Counter((edge["from"], edge["to"], edge["label"] or "") for edge in body["edges"])
    return labels, links


def name_of(graph: Graph, drawn: str) -> str:
    return {"start": START, "finish": END}.get(drawn) or graph.nodes[int(drawn[1:])].id


def as_drawn(text: str) -> str:
    """`text` as `merman` reads it: it keeps our line breaks."""
    return re.sub(r"\r\n|\r|\n", "<br/>", text)


def cleaned(text: str) -> bool:
    """`merman` cleans what it hands out as if it were HTML; its picture shows the text as it is."""
    return "<" in text or "&" in text


def visible(text: str) -> str:
    return text.replace("\u2060", "")


def assert_drawn_as_it_is(graph: Graph, rendered: Rendered) -> None:
    labels, links = parsed(rendered)
    expected = Counter((way.source, way.target, as_drawn(way.label)) for way in ways(graph))
    drawn = {(name_of(graph, a), name_of(graph, b), visible(label)): n for (a, b, label), n in links.items()}
    assert Counter(drawn) == expected
    assert {name_of(graph, drawn) for drawn in labels} - {START, END} == set(graph.index)
    assert rendered.counts == {
        "nodes": len(graph.nodes), "edges": sum(links.values()), "characters": len(rendered.text),
    }  # fmt: skip


def test_every_legal_way_of_every_kind_is_drawn_once_with_its_rule() -> None:
    graph = everything()
    assert ways(graph) == (
        Way(START, "split"),
        Way("split", "think", ("branches/left",), "left"),
        Way("split", "count", ("branches/right",), "right"),
        Way("think", "meet"),
        Way("count", "meet"),
        Way("meet", "again"),
        Way("again", "work", ("entry",), "round"),
        Way("again", "pick", ("exit",), "n >= 3"),
        Way("again", "gate", ("limit",), "after 3 rounds"),
        Way("work", "again"),
        Way("pick", END, ("rules/0",), "many: n > 9"),
        Way("pick", "gate", ("rules/1",), 'n exists or not (n == "x")'),
        Way("pick", END, ("rules/1",), 'n exists or not (n == "x")'),
        Way("pick", END, ("default",), "default"),
        Way("gate", "last", ("approve", "request_changes"), "approve / request_changes: go"),
        Way("gate", END, ("reject",), "reject"),
        Way("last", END),
    )
    assert_drawn_as_it_is(graph, mermaid(graph))
    assert_drawn_as_it_is(graph, mermaid(graph, include_details=True))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_direction_parses(direction: str) -> None:
    assert_drawn_as_it_is(everything(), mermaid(everything(), direction=direction))


def test_an_unknown_direction_is_refused() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        mermaid(everything(), direction="TD\n  n0 --> n9")
    assert refusal.value.code == "INVALID_ARGUMENT"


def test_every_node_type_has_a_shape_of_its_own() -> None:
    assert set(NODE_TYPES) <= set(SHAPES)
    assert len({SHAPES[name] for name in NODE_TYPES}) == len(NODE_TYPES)


def test_ids_that_mean_something_to_mermaid_are_drawn_as_they_are() -> None:
    edges = [{"from": a, "to": b} for a, b in pairwise(ORDINARY)]
    nodes = [{"id": name, "type": "passthrough"} for name in ORDINARY]
    graph = graph_of({"name": "g", "entry": "end", "nodes": nodes, "edges": edges})
    rendered = mermaid(graph)
    assert_drawn_as_it_is(graph, rendered)
    assert {name_of(graph, drawn): label for drawn, label in parsed(rendered)[0].items()} == {
        name: name for name in [*ORDINARY, START, END]
    }


def test_ids_that_look_alike_stay_apart() -> None:
    names = [
        "a.b",
        "a_b",
        "a-b",
        "a b",
        "A_B",
        "file.py:12",
        "\u00e9",
        "e\u0301",
        "\u4e2d \u6587",
        'x"y',
        "n0",
        "start",
    ]
    graph = chain(["x"] * len(names), ids=names)
    assert_drawn_as_it_is(graph, mermaid(graph))
    assert [label for drawn, label in parsed(mermaid(graph))[0].items() if drawn[0] == "n"] == names


def test_hostile_labels_are_drawn_letter_by_letter() -> None:
    graph = chain(HOSTILE)
    rendered = mermaid(graph)
    assert_drawn_as_it_is(graph, rendered)
    labels = parsed(rendered)[0]
    for node in graph.nodes:
        if not cleaned(node.label):
            assert visible(labels[f"n{node.index}"]) == f"{node.label}<br/>{node.id}"


def test_hostile_rules_are_drawn_letter_by_letter() -> None:
    nodes = [
        {"id": "pick", "type": "router", "config": {
            "rules": [{"path": "input", "op": "eq", "value": text, "targets": ["a"], "label": text} for text in RULES],
            "default": ["END"]}},
        {"id": "a", "type": "passthrough"},
    ]  # fmt: skip
    graph = graph_of({"name": "g", "entry": "pick", "nodes": nodes, "edges": []})
    assert_drawn_as_it_is(graph, mermaid(graph))


def drawn_by_mermaid(text: str) -> list[str]:
    """The texts of all boxes and links in the picture that Mermaid itself makes, in the order of the picture."""
    mermaidx = pytest.importorskip("mermaidx", reason="Mermaid itself (`mermaidx`) is not installed (extra `dev`)")
    svg = mermaidx.render(text).svg()
    assert "<script" not in svg
    assert "<img" not in svg
    found = re.findall(r'<span class="(?:node|edge)Label[^"]*"[^>]*>(.*?)</span>', svg, re.DOTALL)
    assert len(found) == svg.count("<foreignObject")
    texts = [re.sub(r"^<p>|</p>$", "", inner) for inner in found]
    assert not any(re.search(r"<(?!br ?/>)", inner) for inner in texts), "nothing but line breaks is markup"
    return [html.unescape(re.sub(r"<br ?/>", "\n", inner)) for inner in texts]


def squeezed(text: str) -> str:
    """White space as a page shows it, without what is invisible."""
    return re.sub(r"\s+", " ", visible(text)).strip()


@pytest.mark.timeout(60)
def test_mermaid_itself_draws_exactly_the_source_text() -> None:
    graph = chain(HOSTILE)
    drawn = [squeezed(text) for text in drawn_by_mermaid(mermaid(graph).text)]
    expected = [squeezed(f"{node.label}\n{node.id}") for node in graph.nodes]
    assert Counter(text for text in drawn if text) == Counter([START, END, *expected])


@pytest.mark.timeout(60)
def test_mermaid_itself_draws_every_kind_of_graph() -> None:
    graph = everything()
    statuses = dict(zip(graph.index, list(STATUSES) * 2, strict=False))
    rendered = mermaid(graph, include_details=True, statuses=statuses, taken={(START, "", "split"): 2})
    drawn = Counter(squeezed(text) for text in drawn_by_mermaid(rendered.text))
    for way in ways(graph):
        assert drawn[squeezed(way.label)] or way.source == START
    assert drawn["(2 times)"] == 1


MARKS = (
    "\"'`#;&<>%{}|[]()\\$:\n\r\t \ufb02\u00b0\u00b6\u00df/-=.~*_!?@^, style classDef fa: fa-car end quot 35 br/ n0 -->"
)
PIECES = st.sampled_from([*MARKS, *HOSTILE, *ORDINARY, "style", "classDef", "fa:", "fa-car", "%%{", "}%%", "<br/>"])
LABELS = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=8).map("".join))


@settings(deadline=None, max_examples=200)
@given(st.lists(LABELS, min_size=1, max_size=4))
def test_any_label_parses_and_comes_back(labels: list[str]) -> None:
    graph = chain(["x"] * len(labels))
    nodes = tuple(replace(node, label=label) for node, label in zip(graph.nodes, labels, strict=True))
    graph = replace(graph, nodes=nodes)
    drawn, links = parsed(mermaid(graph))
    assert sum(links.values()) == len(labels) + 1
    assert len(drawn) == len(labels) + 2
    for node in graph.nodes:
        shown = visible(drawn[f"n{node.index}"])
        if not node.label.strip():
            assert shown == node.id
        elif node.label.isprintable() and not cleaned(node.label):
            assert shown.split("<br/>" + node.id)[0].strip() == visible(node.label).strip()


def test_signs_that_no_picture_can_hold_are_shown_by_others() -> None:
    assert escape("a\x00b\x07\x1b") == "a\u2400b\u2407\u241b"
    assert escape("\x7f\x85\ud800") == "\ufffd\ufffd\ufffd"
    assert escape("a\r\nb\rc\nd\te") == "a<br/>b<br/>c<br/>d#9;e"
    assert escape("a\u202eb\u200bc") == "a#8238;b#8203;c"


def test_the_same_graph_is_the_same_bytes() -> None:
    assert mermaid(everything(), include_details=True) == mermaid(everything(), include_details=True)


@pytest.mark.parametrize("name", ["everything", "everything_details", "everything_run"])
def test_the_drawing_is_the_one_reviewed(name: str) -> None:
    graph = everything()
    drawings = {
        "everything": mermaid(graph),
        "everything_details": mermaid(graph, include_details=True, direction="LR"),
        "everything_run": mermaid(
            graph, statuses={"think": "completed", "gate": "waiting", "last": "skipped"},
            taken={(START, "", "split"): 1, ("work", "", "again"): 3, ("again", "entry", "work"): 3},
            firings={"work": 3},
        ),
    }  # fmt: skip
    file = GOLDEN / f"{name}.mmd"
    if os.environ.get("AGENT_GRAPH_GOLDEN") == "write":
        file.write_text(drawings[name].text, encoding="utf-8")
    assert drawings[name].text == file.read_text(encoding="utf-8")


def test_a_graph_of_one_node_is_drawn() -> None:
    graph = chain(["only"])
    assert_drawn_as_it_is(graph, mermaid(graph))
    assert mermaid(graph).counts["edges"] == 2


def test_large_drawings_come_with_a_warning() -> None:
    sources, targets = [f"a{i}" for i in range(30)], [f"b{i}" for i in range(30)]
    nodes = [{"id": name, "type": "passthrough"} for name in ["root", *sources, *targets]]
    edges = [{"from": "root", "to": a} for a in sources] + [{"from": a, "to": b} for a in sources for b in targets]
    rendered = mermaid(graph_of({"name": "g", "entry": "root", "nodes": nodes, "edges": edges, "output_key": "x"}))
    assert rendered.counts["edges"] == 1 + 30 + 900 + 30
    assert [warning["code"] for warning in rendered.warnings] == ["DIAGRAM_MANY_EDGES"]
    long = mermaid(chain(["x" * 400] * 200))
    assert [warning["code"] for warning in long.warnings] == ["DIAGRAM_LONG"]
    assert "json" in str(long.warnings[0]["message"])
    assert mermaid(everything()).warnings == ()


def test_a_run_colours_nodes_thickens_ways_and_counts() -> None:
    graph = everything()
    counts = taken(graph, [
        RunStarted(),
        NodeFinished("split#1", targets=("think", "count")),
        NodeFinished("think#1"),
        NodeFinished("count#1"),
        NodeFinished("meet#1"),
        RouteTaken("again#1", "entry", ("work",)), NodeFinished("again#1", targets=("work",)),
        NodeFinished("work#1"),
        RouteTaken("again#2", "entry", ("work",)), NodeFinished("again#2", targets=("work",)),
        NodeFinished("work#2"),
        RouteTaken("again#3", "exit", ("pick",)), NodeFinished("again#3", targets=("pick",)),
        RouteTaken("pick#1", "rules/1", ("gate", "END")), NodeFinished("pick#1", targets=("gate", "END")),
        RouteTaken("gate#1", "request_changes", ()), NodeFinished("gate#1"),
        NodeFinished("last#1"),
    ])  # fmt: skip
    assert counts == {
        (START, "", "split"): 1,
        ("split", "branches/left", "think"): 1,
        ("split", "branches/right", "count"): 1,
        ("think", "", "meet"): 1,
        ("count", "", "meet"): 1,
        ("meet", "", "again"): 1,
        ("again", "entry", "work"): 2,
        ("work", "", "again"): 2,
        ("again", "exit", "pick"): 1,
        ("pick", "rules/1", "gate"): 1,
        ("pick", "rules/1", END): 1,
        ("gate", "request_changes", "last"): 1,
        ("last", "", END): 1,
    }
    rendered = mermaid(graph, taken=counts, statuses={"think": "completed", "nobody": "failed"}, firings={"work": 2})
    assert sum(parsed(rendered)[1].values()) == rendered.counts["edges"]
    text = rendered.text
    assert '  n4 ==>|"round (2 times)"| n5' in text
    assert '  n4 -->|"after 3 rounds"| n7' in text
    assert '  n6 ==>|"n exists or not (n == #quot;x#quot;)"| finish' in text
    assert '  n6 -->|"many: n #62; 9"| finish' in text
    assert 'n5[/"work<br/>ran 2 times"/]' in text
    assert text.endswith("  classDef completed fill:#d9f2d9,stroke:#2e7d32\n  class n1 completed\n")


def test_a_router_that_takes_all_that_hold_took_each_of_them() -> None:
    rules = [{"path": "input", "op": "exists", "targets": [name]} for name in ("a", "b", "c")]
    nodes = [{"id": "pick", "type": "router", "config": {"rules": rules, "mode": "all", "default": []}}]
    nodes += [{"id": name, "type": "passthrough"} for name in ("a", "b", "c")]
    graph = graph_of({"name": "g", "entry": "pick", "nodes": nodes, "edges": [], "output_key": "x"})
    fact = NodeFinished("pick#1", targets=("a", "c"))
    assert taken(graph, [RouteTaken("pick#1", "rules/0+rules/2", ("a", "c")), fact]) == {
        ("pick", "rules/0", "a"): 1,
        ("pick", "rules/2", "c"): 1,
    }


@pytest.mark.parametrize(("rule", "text"), [
    ({"path": "a.b", "op": "eq", "value": "x"}, 'a.b == "x"'),
    ({"path": "a", "op": "equals", "value": True}, "a == true"),
    ({"path": "a", "op": "lte", "value_path": "b.c"}, "a <= b.c"),
    ({"path": "a", "op": "not_in", "value": [1, 2]}, "a not in [1,2]"),
    ({"path": "a", "op": "not_exists"}, "a does not exist"),
    ({"all": [{"path": "a", "op": "empty"}, {"any": [{"path": "b", "op": "ne", "value": 1},
                                                     {"path": "c", "op": "gt", "value": 2}]}]},
     "a is empty and (b != 1 or c > 2)"),
    ({"not": {"path": "a", "op": "starts_with", "value": "x"}}, 'not (a starts with "x")'),
    ({"op": "contains", "value": "x"}, 'input contains "x"'),
    ({}, "always"),
])  # fmt: skip
def test_a_rule_is_put_in_words(rule: dict[str, Any], text: str) -> None:
    assert rule_text(rule) == text


def test_a_long_rule_is_cut() -> None:
    text = rule_text({"path": "a", "op": "eq", "value": "x" * 1000})
    assert len(text) == 200
    assert text.endswith("\u2026")


def test_the_older_form_of_a_router_is_drawn_too() -> None:
    nodes = [
        {"id": "pick", "type": "router", "config": {"routes": {"yes": "a", "no": "b"}, "default": ["a"]}},
        {"id": "a", "type": "passthrough"},
        {"id": "b", "type": "passthrough"},
    ]
    graph = graph_of(
        {"name": "g", "entry": "pick", "nodes": nodes, "edges": [{"from": "pick", "to": "a", "label": "ok"}]}
    )
    assert ways(graph)[1:4] == (
        Way("pick", "a", ("routes/0",), 'ok: contains "yes"'),
        Way("pick", "b", ("routes/1",), 'contains "no"'),
        Way("pick", "a", ("default",), "ok: default"),
    )
    assert_drawn_as_it_is(graph, mermaid(graph))


def test_a_decision_a_gate_does_not_allow_is_no_way() -> None:
    gate = {"allowed_decisions": ["approve", "reject"], "on_reject": [], "on_request_changes": ["a"]}
    nodes = [{"id": "gate", "type": "human_approval", "config": gate}, {"id": "a", "type": "passthrough"}]
    edges = [{"from": "gate", "to": "a"}]
    graph = graph_of({"name": "g", "entry": "gate", "nodes": nodes, "edges": edges})
    found = [(way.target, way.transitions) for way in ways(graph) if way.source == "gate"]
    assert found == [("a", ("approve",)), (END, ("reject",))]


def test_an_edit_goes_the_way_of_a_yes_and_an_expired_gate_where_it_is_told_to() -> None:
    def asks(goto: list[str]) -> Graph:
        gate = {"allowed_decisions": ["approve", "edit"], "on_expire": {"goto": goto}}
        nodes = [{"id": "gate", "type": "human_approval", "config": gate}, {"id": "a", "type": "passthrough"}]
        nodes.append({"id": "late", "type": "passthrough"})
        return graph_of({"name": "g", "entry": "gate", "nodes": nodes, "edges": [{"from": "gate", "to": "a"}]})

    found = [(way.target, way.transitions, way.label) for way in ways(asks(["late"])) if way.source == "gate"]
    assert found == [("a", ("approve", "edit"), "approve / edit"), ("late", ("expired",), "expired")]
    assert Way("gate", END, ("expired",), "expired") in ways(asks([]))
    went = [RunStarted(), RouteTaken("gate#1", "expired", ("late",)), NodeFinished("gate#1", targets=("late",))]
    assert taken(asks(["late"]), went) == {(START, "", "gate"): 1, ("gate", "expired", "late"): 1}


def test_a_gate_nobody_can_pass_has_no_way_on() -> None:
    gate = {"allowed_decisions": ["reject"], "on_reject": ["a"]}
    nodes = [{"id": "gate", "type": "human_approval", "config": gate}, {"id": "a", "type": "passthrough"}]
    edges = [{"from": "gate", "to": "a"}]
    graph = graph_of({"name": "g", "entry": "gate", "nodes": nodes, "edges": edges})
    assert [(way.target, way.transitions) for way in ways(graph) if way.source == "gate"] == [("a", ("reject",))]


def test_a_loop_without_another_way_at_its_bound_has_one_way_out() -> None:
    nodes = [
        {"id": "again", "type": "loop", "config": {"entry": "work", "exit": "END", "max_iterations": 2}},
        {"id": "work", "type": "passthrough"},
    ]
    edges = [{"from": "work", "to": "again"}]
    graph = graph_of({"name": "g", "entry": "again", "nodes": nodes, "edges": edges})
    assert Way("again", END, ("exit", "limit"), "after 2 rounds") in ways(graph)


def test_a_loop_that_only_its_bound_ends_never_takes_its_exit() -> None:
    loop = {"entry": "work", "exit": "END", "max_iterations": 2, "on_limit": ["END"]}
    nodes = [{"id": "again", "type": "loop", "config": loop}, {"id": "work", "type": "passthrough"}]
    graph = graph_of(
        {"name": "g", "entry": "again", "nodes": nodes, "edges": [{"from": "work", "to": "again"}], "output_key": "x"}
    )
    assert [way.transitions for way in ways(graph) if way.target == END] == [("limit",)]


def test_a_graph_whose_end_cannot_be_reached_draws_none() -> None:
    nodes = [{"id": "gate", "type": "human_approval", "config": {"allowed_decisions": ["reject"]}}]
    rendered = mermaid(graph_of({"name": "g", "entry": "gate", "nodes": nodes, "edges": []}))
    assert set(parsed(rendered)[0]) == {"start", "n0"}


def test_a_router_without_a_default_has_only_its_rules() -> None:
    rules = [{"path": "input", "op": "exists", "targets": ["END"]}]
    nodes = [{"id": "pick", "type": "router", "config": {"rules": rules}}]
    graph = graph_of({"name": "g", "entry": "pick", "nodes": nodes, "edges": []})
    assert [way.transitions for way in ways(graph)] == [(), ("rules/0",)]


def secretive() -> Graph:
    config = {
        "system": "Use the key sk-abcdefghijklmnop1234.",
        "output_key": "x",
        "max_tokens": 77,
        "output_schema": {"type": "object", "properties": {}, "x-api-key": "hidden one", "password": 1234},
    }
    nodes = [{"id": "a", "type": "llm", "label": "A", "description": "Asks", "prompt": "{run_input}", "config": config}]
    return graph_of({"name": "g", "entry": "a", "nodes": nodes, "edges": []})


def test_details_show_no_secret() -> None:
    text = mermaid(secretive(), include_details=True).text
    body = json.dumps(as_json(secretive(), include_details=True))
    for shown in (text, body):
        assert "[redacted]" in shown
        assert "sk-abc" not in shown
        assert "hidden one" not in shown
        assert "1234" not in shown
        assert "77" in shown
    assert "sk-abc" not in mermaid(secretive()).text


def test_json_has_every_way_and_config_only_with_details() -> None:
    graph = everything()
    body = as_json(graph)
    assert list(body) == ["graph_id", "graph_version", "entry", "nodes", "edges", "topology_hash"]
    assert (body["graph_id"], body["graph_version"], body["entry"]) == ("everything", graph.version, "split")
    edges: Any = body["edges"]
    assert [(e["from"], e["to"], tuple(e.get("transitions", ())), e.get("label", "")) for e in edges] == [
        (way.source, way.target, way.transitions, way.label) for way in ways(graph)[1:]
    ]
    nodes: Any = body["nodes"]
    assert [node["id"] for node in nodes] == list(graph.index)
    assert not any("config" in node for node in nodes)
    detailed: Any = as_json(graph, include_details=True)["nodes"]
    assert detailed[1] == {
        "id": "think", "type": "llm", "label": "Think", "config": {"prompt": "{run_input}", "output_key": "thought"},
    }  # fmt: skip
    assert as_json(secretive())["nodes"] == [{"id": "a", "type": "llm", "label": "A", "description": "Asks"}]


def test_the_topology_hash_is_about_shape_alone() -> None:
    graph = everything()
    relabelled = replace(graph, nodes=tuple(replace(node, label="other") for node in graph.nodes))
    assert topology_hash(relabelled) == topology_hash(graph) == as_json(graph)["topology_hash"]
    assert topology_hash(chain(["x"])) != topology_hash(chain(["x", "y"]))


def test_what_a_node_shows_a_model_is_drawn_short_and_told_by_digest() -> None:
    photo = data_url("image/gif", b"GIF89a" + bytes(2_000))
    talk = [{"role": "user", "content": "What is it?", "images": [photo]}]
    compiled_ = compile_graph(
        {"name": "g", "entry": "a", "nodes": [{"id": "a", "type": "llm", "config": {"messages": talk, "cache": True}}],
         "edges": [{"from": "a", "to": "END"}]}
    )  # fmt: skip
    assert compiled_.graph is not None
    text = mermaid(compiled_.graph, include_details=True).text
    assert len(text) < 1_000
    (node, *_) = as_json(compiled_.graph, include_details=True)["nodes"]  # type: ignore[misc]  # a list
    shown = node["config"]["messages"][0]["images"][0]  # type: ignore[index,call-overload]  # JSON
    assert shown.startswith("data:image/gif;bytes=2006;sha256:")  # type: ignore[union-attr]  # a text
