"""`retry`, `fallback_models` and `on_error` as a spec says them: checks, minimal form, schema, ways and diagrams."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.failure import follow_up
from agent_graph.core.nodes.base import Retry
from agent_graph.core.render import mermaid
from agent_graph.core.spec import json_schema
from agent_graph.core.ways import Way, taken, ways
from tests.core.played import compiled, llm, plain, play, router, writes


def issues(*nodes: dict[str, Any], edges: str = "", **top: Any) -> list[tuple[str, str, str]]:
    """(code, severity, pointer) of each."""
    wires = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    made = compile_graph({"name": "g", "entry": nodes[0]["id"], "nodes": [*nodes], "edges": wires, **top})
    return [(issue.code, issue.severity, issue.pointer) for issue in made.issues]


@pytest.mark.parametrize(
    ("config", "code", "pointer"),
    [
        ({"retry": {"max_attemps": 2}}, "UNKNOWN_FIELD", "retry/max_attemps"),
        ({"retry": {"max_attempts": 0}}, "FIELD_INVALID", "retry/max_attempts"),
        ({"retry": {"backoff_factor": 0.5}}, "FIELD_INVALID", "retry/backoff_factor"),
        ({"retry": {"on": ["bug"]}}, "FIELD_INVALID", "retry/on/0"),
        ({"retry": 3}, "FIELD_INVALID", "retry"),
        ({"on_error": "ignore"}, "FIELD_INVALID", "on_error"),
        ({"on_error": {}}, "FIELD_INVALID", "on_error"),
        ({"on_error": {"go": ["b"]}}, "FIELD_INVALID", "on_error/go"),
        ({"on_error": {"goto": "b"}}, "FIELD_INVALID", "on_error/goto"),
        ({"on_error": {"goto": ["c"]}}, "UNKNOWN_NODE", "on_error/goto/0"),
        ({"on_error": {"goto": ["b", "END_RUNS"]}}, "UNKNOWN_NODE", "on_error/goto/1"),
        ({"fallback_models": ["a", "a"]}, "FIELD_INVALID", "fallback_models/1"),
        ({"fallback_models": ["http://x"]}, "FIELD_INVALID", "fallback_models/0"),
        ({"fallback_models": [""]}, "FIELD_INVALID", "fallback_models/0"),
    ],
)
def test_what_is_wrong_is_told_where_it_is(config: dict[str, Any], code: str, pointer: str) -> None:
    found = issues(llm("a", **config), llm("b"), edges="a>b")
    assert (code, "error", f"/nodes/0/config/{pointer}") in found
    assert len(found) == 1


def test_a_misspelt_field_of_retry_is_told_the_nearest_one_of_retry() -> None:
    (issue,) = compile_graph({"name": "g", "entry": "a", "nodes": [llm("a", retry={"delay_ms": 1})]}).issues
    assert issue.message.endswith('did you mean "max_delay_ms"?')


def test_nothing_goes_past_a_gate_but_a_decision() -> None:
    gate = {"id": "g", "type": "human_approval", "config": {"on_error": "continue", "on_request_changes": "continue"}}
    assert issues(gate) == [("NODE_TYPE_UNAVAILABLE", "error", "/nodes/0/config/on_error")]


def test_retry_where_no_call_is_made_is_a_warning_and_its_fix_makes_it_go() -> None:
    node = {"id": "a", "type": "passthrough", "config": {"retry": {"max_attempts": 5}}}
    (issue,) = compile_graph({"name": "g", "entry": "a", "nodes": [node]}).issues
    assert (issue.code, issue.severity, issue.pointer) == ("FIELD_UNUSED", "warning", "/nodes/0/config/retry")
    assert issue.fix == ({"op": "remove", "path": "/nodes/0/config/retry"},)


def test_what_says_only_the_defaults_is_no_part_of_the_version() -> None:
    bare = compiled([llm("a")]).version
    same = [{"retry": {"max_attempts": 3, "jitter": True, "backoff_factor": 2.0}}, {"retry": {}}, {"on_error": "fail"}]
    assert {compiled([llm("a", **config)]).version for config in same} == {bare}
    made = compiled([llm("a", retry={"max_attempts": 5, "jitter": True})])
    assert made.spec["nodes"][0]["config"]["retry"] == {"max_attempts": 5}  # type: ignore[index,call-overload]  # JSON
    assert made.nodes[0].config.retry == Retry(max_attempts=5)


def test_a_stored_graph_is_loaded_with_its_targets() -> None:
    spec = {
        "name": "g",
        "entry": "a",
        "nodes": [llm("a", on_error={"goto": ["h"]}, retry={"on": ["timeout"]}), llm("h")],
    }
    made = compile_graph(spec)
    assert made.graph is not None
    again = load_graph(made.graph.spec, made.graph.version, made.compiled)
    assert again.nodes[0].config == made.graph.nodes[0].config
    assert again.topology == made.graph.topology


def test_the_schema_tells_the_fields_of_retry() -> None:
    schema: Any = json_schema()
    for node in schema["properties"]["nodes"]["items"]["oneOf"]:
        config = node["properties"]["config"]
        retry = next(part for part in config["properties"]["retry"]["anyOf"] if part["type"] == "object")
        assert retry["properties"]["jitter"]["description"].startswith("The delay is drawn")
        assert "$defs" not in config
    assert "$ref" not in str(schema)


def test_targets_are_ways_drawn_and_counted() -> None:
    nodes = [llm("a", output_key="x", on_error={"goto": ["h", "END"]}), llm("b", output_key="x"), writes("h", x=1)]
    made = compiled(nodes, "a>b b>END h>END", output_key="x")
    assert [way for way in ways(made) if way.source == "a"] == [
        Way("a", "b"), Way("a", "h", ("on_error",), "on error"), Way("a", "END", ("on_error",), "on error"),
    ]  # fmt: skip
    assert '  n0 -->|"on error"| n2\n' in mermaid(made).text
    assert "on_error" not in mermaid(made, include_details=True).text
    at = play(made)
    failed = e.NodeFailed("a#1", {"code": "X", "message": "", "class": "refused"})
    at.go(follow_up(at.run, failed))
    counts = taken(made, [event.fact for event in at.log])
    assert counts[("a", "on_error", "h")] == counts[("a", "on_error", "END")] == 1
    assert ("a", "", "b") not in counts
    fine = play(made).answer("a#1").answer("b#1")
    counts = taken(made, [event.fact for event in fine.log])
    assert counts[("a", "", "b")] == 1
    assert not [key for key in counts if key[1] == "on_error"]


def test_going_on_takes_the_plain_ways() -> None:
    made = compiled([llm("a", on_error="continue"), plain("b")], "a>b b>END")
    assert "on_error: continue" in mermaid(made, include_details=True).text
    at = play(made)
    at.go(follow_up(at.run, e.NodeFailed("a#1", {"code": "X", "message": "", "class": "refused"})))
    assert taken(made, [event.fact for event in at.log])[("a", "", "b")] == 1


def test_a_choosing_node_that_goes_on_takes_its_declared_edges() -> None:
    nodes = [router("r", "k", {"yes": ["b"]}), plain("b")]
    nodes[0]["config"] |= {"default": None, "on_error": "continue"}
    made = compiled(nodes, "r>b b>END")
    at = play(made)
    assert at.run.status == "completed"
    assert taken(made, [event.fact for event in at.log])[("r", "rules/0", "b")] == 1


def test_a_handler_and_what_it_handles_may_write_the_same_key() -> None:
    nodes = [llm("a", output_key="x", on_error={"goto": ["h"]}), writes("h", x=1), llm("b", output_key="x")]
    assert issues(*nodes, edges="a>b b>END h>END") == []


def test_the_result_is_what_the_node_that_ended_wrote() -> None:
    nodes = [llm("a", on_error={"goto": ["h"]}), llm("b", output_key="x"), llm("h", output_key="y")]
    assert compiled(nodes, "a>b b>END h>END").output.by_end == {"b": "x", "h": "y"}


def test_an_edge_beside_a_choice_may_name_a_handler() -> None:
    chooser = router("r", "k", {"yes": ["b"]}, ["b"])
    chooser["config"]["on_error"] = {"goto": ["h"]}
    assert issues(chooser, plain("b"), plain("h"), edges="r>h b>END h>END") == []
    assert ("EDGE_NEVER_TAKEN", "error", "/edges/0") in issues(
        router("r", "k", {"yes": ["b"]}, ["b"]), plain("b"), plain("h"), edges="r>h b>END h>END"
    )


def test_a_cycle_that_only_an_error_leaves_has_a_way_out() -> None:
    nodes = [llm("a", on_error={"goto": ["END"]}), llm("b")]
    assert "LOOP_WITHOUT_EXIT" not in {code for code, _, _ in issues(*nodes, edges="a>b b>a")}


def test_a_handler_is_no_part_of_a_branch() -> None:
    split = {"id": "p", "type": "parallel", "config": {
        "branches": [{"id": "x", "entry": "a"}, {"id": "y", "entry": "b"}], "join": "j",
    }}  # fmt: skip
    nodes = [split, llm("a", on_error={"goto": ["h"]}), llm("b"), plain("h"), plain("j")]
    made = compiled(nodes, "j>END", output_key="k")
    topology, index = made.topology, made.index
    assert (index["a"], index["j"]) in topology.edge_between
    assert (index["h"], index["j"]) not in topology.edge_between
    assert topology.ends[index["h"]]
