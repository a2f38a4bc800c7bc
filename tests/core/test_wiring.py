"""How edges, targets and branches become ways, and what leads nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.topology import Topology
from tests.core.specs import codes, compiled, gate, issues, join, llm, loop, parallel, pass_, put, router, spec


def ways(raw: Any) -> list[str]:
    graph = compiled(raw).graph
    assert graph is not None
    names = [node.id for node in graph.nodes]
    return [
        f"{names[e.source]}>{names[e.target]}{'' if e.declared else '?'}" for e in graph.topology.edges if e.source >= 0
    ]


def test_edges_come_first_and_targets_after_them() -> None:
    nodes = [router("r", ["b", "a"], ["b"], default=["END"]), pass_("a"), pass_("b")]
    assert ways(spec(nodes, "r>a", "a>END", "b>END", output_key="x")) == ["r>a", "r>b?"]


def test_a_node_without_an_edge_ends_its_branch() -> None:
    graph = compiled(spec([pass_("f"), pass_("a"), pass_("b")], "f>a>END", "f>b", output_key="x")).graph
    assert graph is not None
    assert graph.topology.ends == (False, True, True)


def test_a_branch_node_without_out_edges_leads_to_the_join() -> None:
    nodes = [parallel("p", "j", "a", "b"), llm("a", "x"), llm("b", "y"), llm("c", "z"), join("j")]
    assert ways(spec(nodes, "b>c", "p>j", "p>a", "j>END")) == ["b>c", "p>a", "a>j", "c>j", "p>b?"]


def test_a_branch_may_name_its_way_to_the_join_or_to_end() -> None:
    nodes = [parallel("p", "j", "a", "b"), llm("a", "x"), llm("b", "y"), join("j")]
    assert ways(spec(nodes, "a>j", "b>END", "j>END", output_key="x")) == ["a>j", "p>a?", "p>b?"]


def test_the_innermost_parallel_takes_the_loose_ends() -> None:
    nodes = [
        parallel("p", "j", "q", "c"),
        parallel("q", "k", "a", "b"),
        put("a"),
        put("b"),
        put("c"),
        join("k"),
        join("j"),
    ]
    assert ways(spec(nodes, "j>END")) == ["a>k", "b>k", "c>j", "k>j", "p>q?", "p>c?", "q>a?", "q>b?"]


def test_a_node_that_two_parallels_share_leads_to_both_joins() -> None:
    nodes = [
        router("r", ["p"], default=["q"]),
        parallel("p", "j", "a"),
        parallel("q", "k", "a"),
        put("a"),
        join("j"),
        join("k"),
    ]
    assert ways(spec(nodes, "j>END", "k>END", output_key="x"))[:2] == ["a>j", "a>k"]


def test_branches_that_join_at_end_just_end() -> None:
    nodes = [parallel("p", "END", "a", "b"), put("a"), put("b")]
    assert ways(spec(nodes, output_key="x")) == ["p>a?", "p>b?"]


def test_an_approval_in_a_branch_goes_on_to_the_join_and_choosers_do_not() -> None:
    nodes = [parallel("p", "j", "g", "r"), gate("g"), router("r", ["a"], default=["END"]), put("a"), join("j")]
    assert ways(spec(nodes, "j>END", output_key="x")) == ["g>j", "a>j", "p>g?", "p>r?", "r>a?"]


def test_unknown_ids_are_named_with_the_nearest_known_one() -> None:
    nodes = [router("start", ["analist"], default=["END"]), llm("analyst"), loop("l", "xx", "analyst"),
             parallel("p", "gone", "analyst"), gate("g", on_reject=["ghost"])]  # fmt: skip
    raw = spec(nodes, "analyst>strat", "nowhere>END")
    found = issues(raw, "UNKNOWN_NODE")
    assert [(issue.pointer, issue.node_id, issue.edge) for issue in found] == [
        ("/nodes/0/config/rules/0/targets/0", "start", ""),
        ("/nodes/2/config/entry", "l", ""),
        ("/nodes/3/config/join", "p", ""),
        ("/nodes/4/config/on_reject/0", "g", ""),
        ("/edges/0/to", "", "analyst>strat"),
        ("/edges/1/from", "", "nowhere>END"),
    ]
    assert found[0].message == 'there is no node "analist"; did you mean "analyst"?'
    assert found[4].message == 'there is no node "strat"; did you mean "start"?'
    assert found[5].message == 'there is no node "nowhere"'


def test_only_the_first_unknown_ids_are_compared_with_all_known_ones() -> None:
    nodes = [pass_(f"node{i}") for i in range(1_000)]
    raw = spec(nodes, *(f"nod{i}>END" for i in range(30)))
    hints = ["did you mean" in issue.message for issue in issues(raw, "UNKNOWN_NODE")]
    assert hints == [True] * 21 + [False] * 9


def test_the_entry_must_be_a_node() -> None:
    raw = {**spec([pass_("start")], "start>END"), "entry": "strat"}
    (issue,) = issues(raw, "ENTRY_UNKNOWN")
    assert issue.pointer == "/entry"
    assert issue.message == '`entry` names "strat", and there is no such node; did you mean "start"?'


def test_two_nodes_of_one_name_are_refused() -> None:
    raw = spec([pass_("a"), pass_("b"), pass_("a")], "a>b>END")
    (issue,) = issues(raw, "DUPLICATE_NODE")
    assert (issue.pointer, issue.related, issue.node_id) == ("/nodes/2/id", ("/nodes/0/id",), "a")


def test_an_edge_twice_is_refused_and_the_fix_takes_the_second_away() -> None:
    raw = spec([pass_("a"), pass_("b")], "a>b>END", "a>b")
    (issue,) = issues(raw, "DUPLICATE_EDGE")
    assert (issue.pointer, issue.related, issue.edge) == ("/edges/2", ("/edges/0",), "a>b")
    assert issue.fix == ({"op": "remove", "path": "/edges/2"},)
    raw["edges"].pop()
    assert codes(raw) == []


def test_an_edge_id_twice_is_refused() -> None:
    raw = spec([pass_("a"), pass_("b")], "a>b>END")
    for edge in raw["edges"]:
        edge["id"] = "e"
    (issue,) = issues(raw, "DUPLICATE_EDGE")
    assert (issue.pointer, issue.related, issue.edge) == ("/edges/1/id", ("/edges/0/id",), "e")


def test_an_edge_beside_targets_that_replace_it_is_never_taken() -> None:
    for node in (router("r", ["a"], default=["END"]), loop("r", "a", "END"), parallel("r", "j", "a")):
        raw = spec([node, pass_("a"), pass_("b"), join("j")], "r>b", "a>j", "a>b", output_key="x")
        (issue,) = issues(raw, "EDGE_NEVER_TAKEN")
        assert (issue.severity, issue.pointer, issue.node_id, issue.edge) == ("error", "/edges/0", "r", "r>b")
        assert issue.fix == ({"op": "remove", "path": "/edges/0"},)


def test_a_router_may_declare_the_way_to_end_only_when_it_is_a_target() -> None:
    with_end = spec([router("r", ["a"], default=["END"]), pass_("a")], "r>END", "a>END")
    assert codes(with_end) == []
    without = spec([router("r", ["a"], default=["a"]), pass_("a")], "r>END", "a>END")
    assert codes(without) == [("EDGE_NEVER_TAKEN", "/edges/0")]


def test_start_as_a_source_names_the_entry() -> None:
    raw = spec([pass_("a")], "START>a>END")
    assert codes(raw) == []
    del raw["entry"]
    assert codes(raw) == []
    assert compiled(raw).graph == compiled(spec([pass_("a")], "a>END")).graph


def test_start_cannot_lead_elsewhere_than_entry_says() -> None:
    raw = spec([pass_("a"), pass_("b")], "START>b", "a>b>END")
    assert codes(raw) == [("FIELD_CONFLICT", "/edges/0/to")]
    del raw["entry"]
    raw["edges"].insert(1, {"from": "START", "to": "a"})
    assert ("FIELD_CONFLICT", "/edges/1/to") in codes(raw)


def test_nothing_leads_to_start_or_comes_after_end() -> None:
    raw = spec([pass_("a")], "a>START", "END>a", "END_RUN>a", "a>END")
    assert codes(raw) == [
        ("FIELD_INVALID", "/edges/0/to"),
        ("FIELD_INVALID", "/edges/1/from"),
        ("FIELD_INVALID", "/edges/2/from"),
    ]


def test_ending_the_whole_run_is_a_target_wherever_there_are_targets() -> None:
    last = {**pass_("a"), "config": {"on_error": {"goto": ["END_RUN"]}}}
    raw = spec([router("r", ["END_RUN"], default=["a"]), last], "a>END_RUN")
    assert codes(raw) == []
    topology = compiled(raw).graph.topology  # type: ignore[union-attr]  # just asserted
    assert (topology.ends, topology.ends_run) == ((True, False), 0b10)
    assert Topology.from_json(topology.to_json()) == topology


def test_a_node_that_nothing_leads_to_is_a_warning() -> None:
    raw = spec([pass_("a"), pass_("b")], "a>END", "b>END")
    (issue,) = issues(raw, "NODE_UNREACHABLE")
    assert (issue.severity, issue.pointer, issue.node_id) == ("warning", "/nodes/1", "b")
    assert compiled(raw).graph is not None


def test_a_node_that_cannot_be_read_is_a_known_node_and_hides_no_unknown_one() -> None:
    raw = spec([llm("draft"), {"id": "b", "type": "lm"}], "draft>b>END", "draft>nowhere")
    assert codes(raw) == [("NODE_TYPE_UNKNOWN", "/nodes/1/type"), ("UNKNOWN_NODE", "/edges/2/to")]
    assert (
        'did you mean "beta"'
        in issues(spec([llm("a"), {"id": "beta", "type": "lm"}], "a>beto"), "UNKNOWN_NODE")[0].message
    )
    raw = {**spec([llm("draft"), {"id": "b", "type": "lm"}], "draft>b"), "entry": "drft"}
    assert codes(raw) == [("NODE_TYPE_UNKNOWN", "/nodes/1/type"), ("ENTRY_UNKNOWN", "/entry")]
    assert codes({**raw, "entry": "b"}) == [("NODE_TYPE_UNKNOWN", "/nodes/1/type")]
    assert codes({**raw, "edges": [], "entry": "draft"}) == [("NODE_TYPE_UNKNOWN", "/nodes/1/type")]


@pytest.mark.parametrize(
    ("node", "code", "at"),
    [
        (join("b", mode="colect"), "FIELD_INVALID", "/config/mode"),
        ({"id": "b", "type": "human_approval", "config": {"prompt": 5}}, "FIELD_INVALID", "/config/prompt"),
        ({"id": "b", "type": "loop", "config": {"exit": "END"}}, "FIELD_REQUIRED", "/config/entry"),
        ({"id": "b"}, "FIELD_REQUIRED", "/type"),
    ],
)  # fmt: skip
def test_a_wrong_config_hides_no_unknown_node(node: Any, code: str, at: str) -> None:
    raw = spec([router("a", ["b"], default=["elsewhere"]), node], "nowhere>b")
    assert codes(raw) == [
        (code, f"/nodes/1{at}"), ("UNKNOWN_NODE", "/nodes/0/config/default/0"), ("UNKNOWN_NODE", "/edges/0/from"),
    ]  # fmt: skip


def test_an_edge_that_cannot_be_read_hides_nothing_and_its_own_ends_are_checked() -> None:
    raw = spec([pass_("a"), pass_("b")], "a>b", "a>nowhere")
    raw["edges"] += [{"to": "bb"}, {"from": "START", "to": 5}, {"to": "END"}, 7]
    assert codes(raw) == [
        ("FIELD_REQUIRED", "/edges/2/from"), ("FIELD_INVALID", "/edges/3/to"), ("FIELD_REQUIRED", "/edges/4/from"),
        ("FIELD_INVALID", "/edges/5"), ("UNKNOWN_NODE", "/edges/1/to"), ("UNKNOWN_NODE", "/edges/2/to"),
    ]  # fmt: skip


def test_two_nodes_of_one_name_are_refused_when_one_of_them_cannot_be_read() -> None:
    raw = spec([pass_("a"), {"id": "a", "type": "lm"}, pass_("a")])
    assert [one for one in codes(raw) if one[0] == "DUPLICATE_NODE"] == [
        ("DUPLICATE_NODE", "/nodes/1/id"), ("DUPLICATE_NODE", "/nodes/2/id"),
    ]  # fmt: skip


def test_where_a_node_does_not_say_its_id_an_unknown_name_may_be_its_own() -> None:
    assert codes(spec([pass_("a"), {"type": "passthrough"}], "a>b>END")) == [("FIELD_REQUIRED", "/nodes/1/id")]
