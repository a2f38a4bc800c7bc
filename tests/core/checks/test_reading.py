"""core.checks.reading: what is read and cannot have been written."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.issues import Issue
from tests.core.specs import gate, join, llm, loop, pass_, put, router, spec, transform

CLOSED = {"type": "object", "properties": {"topic": {}}, "additionalProperties": False}
READS = ("KEY_READ_BEFORE_WRITE", "PROMPT_PLACEHOLDER_UNKNOWN", "JOIN_INPUT_NEVER_WRITTEN")


def found(raw: Any) -> list[Issue]:
    return [issue for issue in compile_graph(raw).issues if issue.code in READS]


def asks(name: str, text: str, key: str = "", **config: Any) -> dict[str, Any]:
    return {**llm(name, key, **config), "prompt": text}


def one(raw: Any) -> Issue:
    (issue,) = found(raw)
    return issue


def test_a_misspelt_placeholder_is_told_what_was_meant_and_repaired() -> None:
    raw = spec([llm("draft", "draft"), asks("review", "Review {draf} and {draf?}: {{draf}}", "review")],
               "draft>review>END")  # fmt: skip
    issue = one(raw)
    assert (issue.code, issue.severity, issue.pointer) == ("PROMPT_PLACEHOLDER_UNKNOWN", "warning", "/nodes/1/prompt")
    assert issue.message == (
        '"review" reads `draf`, and no node writes it: the run\'s input has to bring it, or this node fails; did you'
        ' mean "draft"?'
    )
    (step,) = issue.fix
    assert step == {"op": "replace", "path": "/nodes/1/prompt", "value": "Review {draft} and {draft?}: {{draft}}"}


def test_what_the_input_may_bring_is_an_info_and_the_repair_declares_it() -> None:
    issue = one(spec([asks("a", "About {topic}")], "a>END"))
    assert (issue.code, issue.severity) == ("PROMPT_PLACEHOLDER_UNKNOWN", "info")
    schema = {"type": "object", "required": ["topic"], "properties": {"topic": {}}}
    assert issue.fix == ({"op": "add", "path": "/input_schema", "value": schema},)
    assert found(spec([asks("a", "About {topic}")], "a>END", input_schema=schema)) == []
    issue = one(spec([asks("a", "{topic} {x/y}{more}")], "a>END", input_schema=schema))
    assert issue.fix == ({"op": "add", "path": "/input_schema/properties/more", "value": {}},)
    issue = one(spec([asks("a", "{more}")], "a>END", input_schema={"type": ["string", "object"]}))
    assert issue.fix == ({"op": "add", "path": "/input_schema/properties", "value": {"more": {}}},)


def test_what_the_input_cannot_bring_is_an_error() -> None:
    issue = one(spec([asks("a", "{topic} {style}")], "a>END", input_schema=CLOSED))
    assert (issue.code, issue.severity) == ("PROMPT_PLACEHOLDER_UNKNOWN", "error")
    assert "`input_schema` allows no such key" in issue.message
    assert not issue.fix
    issue = one(spec([asks("a", "{text}")], "a>END", input_schema={"type": "string"}))
    assert issue.severity == "error"


@pytest.mark.parametrize("schema", [
    {"properties": {"a": {}}},
    {"anyOf": [{"properties": {"a": {}}}, True], "additionalProperties": False, "patternProperties": {}},
    {"not": {}, "additionalProperties": False},
])  # fmt: skip
def test_a_schema_that_leaves_a_door_open_proves_nothing(schema: dict[str, Any]) -> None:
    assert one(spec([asks("a", "{zzz}")], "a>END", input_schema=schema)).severity == "info"
    assert found(spec([asks("b", "{a}")], "b>END", input_schema={"properties": {"a": {}}})) == []


def test_an_optional_placeholder_is_only_told_a_near_name() -> None:
    assert found(spec([asks("a", "{feedback?}")], "a>END")) == []
    issue = one(spec([llm("draft", "draft"), asks("b", "{draf?}")], "draft>b>END"))
    assert (issue.severity, "did you mean" in issue.message) == ("warning", True)


def test_a_part_of_a_written_key_and_what_it_lies_in_are_there() -> None:
    nodes = [llm("a", "plan"), put("b", "x.y.z"), asks("c", "{plan.steps.0} {x} {x.y} {/x/y/z} {x.y.z.deeper}")]
    assert found(spec(nodes, "a>b>c>END")) == []
    issue = one(spec([llm("a", "plan"), asks("c", "{plam.steps}")], "a>c>END"))
    assert issue.fix[0]["value"] == "{plan.steps}"


def test_a_key_that_is_written_later_or_beside_is_not_there_yet() -> None:
    issue = one(spec([asks("a", "{later}"), llm("b", "later")], "a>b>END"))
    assert (issue.code, issue.severity, issue.related) == ("KEY_READ_BEFORE_WRITE", "warning", ("/nodes/1",))
    assert issue.message == '"a" reads `later`, and "b" can only run after it or beside it: there is nothing yet'
    assert issue.fix == ({"op": "replace", "path": "/nodes/0/prompt", "value": "{later?}"},)
    fork = spec([pass_("f"), asks("a", "{other}"), llm("b", "other"), join("j")], "f>a>j", "f>b>j", "j>END")
    assert one(fork).code == "KEY_READ_BEFORE_WRITE"
    assert one(spec([asks("a", "{mine}", "mine")], "a>END")).message.startswith('"a" reads `mine`, and it writes it')
    assert found(spec([asks("a", "{later?}"), llm("b", "later")], "a>b>END")) == []


def test_a_cycle_brings_what_its_end_wrote() -> None:
    nodes = [asks("a", "{note?} {note}"), llm("b", "note"), router("r", ["END"], default=["a"])]
    assert found(spec(nodes, "a>b>r")) == []


def test_many_writers_are_not_all_named() -> None:
    writers = [put(f"w{i}", "x") for i in range(5)]
    chain = ">".join(["a", *(f"w{i}" for i in range(5)), "END"])
    assert (
        '"w0" and "w1" and "w2" and others can only run after it'
        in one(spec([asks("a", "{x}"), *writers], chain)).message
    )


def test_a_rule_may_ask_the_input_but_not_what_looks_like_another_key() -> None:
    assert found(spec([router("r", ["END"], default=["END"])])) == []
    nodes = [llm("a", "verdict"), router("r", ["END"], default=["END"], rules=[
        {"path": "verdct", "op": "eq", "value": 1, "targets": ["END"]}])]  # fmt: skip
    issue = one(spec(nodes, "a>r"))
    assert (issue.code, issue.severity, issue.pointer) == (
        "KEY_READ_BEFORE_WRITE",
        "warning",
        "/nodes/1/config/rules/0",
    )
    assert issue.fix == ({"op": "replace", "path": "/nodes/1/config/rules/0/path", "value": "verdict"},)
    nodes[1]["config"]["rules"][0] = {"all": [{"path": "verdct", "op": "exists"}], "targets": ["END"]}
    assert one(spec(nodes, "a>r")).fix == ()
    issue = one(spec([router("r", ["END"], default=["END"])], input_schema=CLOSED))
    assert (issue.code, issue.severity) == ("KEY_READ_BEFORE_WRITE", "warning")


def test_a_transform_sees_what_its_own_operations_did() -> None:
    first = {"op": "set", "path": "n", "value": 1}
    assert found(spec([transform("t", first, {"op": "copy", "path": "m", "from": "n"})], "t>END")) == []
    lost = {"op": "copy", "path": "m", "from": "zzz"}
    issue = one(spec([transform("t", lost)], "t>END"))
    assert (issue.code, issue.severity) == ("KEY_READ_BEFORE_WRITE", "info")
    near = transform("t", {"op": "copy", "path": "m", "from": "drafd"})
    issue = one(spec([llm("a", "draft"), near], "a>t>END"))
    assert issue.fix == ({"op": "replace", "path": "/nodes/1/config/operations/0/from", "value": "draft"},)
    form = transform("t", {"op": "format", "path": "m", "template": "<{drafd}>"})
    issue = one(spec([llm("a", "draft"), form], "a>t>END"))
    assert issue.fix == ({"op": "replace", "path": "/nodes/1/config/operations/0/template", "value": "<{draft}>"},)
    late = transform("t", {"op": "format", "path": "m", "template": "<{late}>"})
    issue = one(spec([late, llm("a", "late")], "t>a>END"))
    assert issue.fix == ({"op": "replace", "path": "/nodes/0/config/operations/0/template", "value": "<{late?}>"},)


def test_a_join_of_what_nobody_writes_is_told() -> None:
    raw = spec([llm("research", "facts"), join("j", "all", "resarch", "zzz")], "research>j>END")
    near, far = found(raw)
    assert (near.code, near.severity, near.pointer) == (
        "JOIN_INPUT_NEVER_WRITTEN",
        "warning",
        "/nodes/1/config/inputs/0",
    )
    assert near.message.endswith('did you mean "research"?')
    assert near.fix == ({"op": "replace", "path": "/nodes/1/config/inputs/0", "value": "research"},)
    assert (far.message.startswith('"j" joins `zzz`, and no node has that id'), far.fix) == (True, ())
    assert found({**raw, "input_schema": {"properties": {"zzz": {}}}}) == [near]


def test_a_join_of_a_node_without_an_output_or_of_a_later_one_is_told() -> None:
    raw = spec([pass_("p"), join("j", "all", "p", "late"), llm("late")], "p>j>late>END")
    without, late = found(raw)
    assert (without.code, without.message) == (
        "JOIN_INPUT_NEVER_WRITTEN", '"j" reads the output of "p", and a `passthrough` leaves none',
    )  # fmt: skip
    assert (late.code, late.related) == ("KEY_READ_BEFORE_WRITE", ("/nodes/2",))
    assert found(spec([llm("a"), join("j", "all", "a")], "a>j>END")) == []


def test_the_engines_books_are_read_of_nodes_that_fill_them() -> None:
    body = asks("b", "{outputs.a} {outputs.a.title} {errors.a.code?} {loops.l}")
    nodes = [llm("a", on_error="continue"), loop("l", "b", "END"), body]
    assert found(spec(nodes, "a>l", "b>l")) == []
    issue = one(spec([llm("draft"), asks("b", "{outputs.drafd}")], "draft>b>END"))
    assert (issue.code, issue.message) == (
        "PROMPT_PLACEHOLDER_UNKNOWN",
        '"b" reads the output of "drafd", and there is no such node; did you mean "draft"?',
    )
    assert issue.fix == ({"op": "replace", "path": "/nodes/1/prompt", "value": "{outputs.draft}"},)
    assert "there is no such node" in one(spec([llm("a"), asks("b", "{outputs.zzzzzz}")], "a>b>END")).message
    issue = one(spec([llm("a"), asks("b", "{errors.a}")], "a>b>END"))
    assert issue.message == '"b" reads the error of "a", and "a" fails the run when it fails'
    issue = one(spec([llm("a"), asks("b", "{loops.a}")], "a>b>END"))
    assert issue.message == '"b" reads the count of "a", and a `llm` leaves none'
    issue = one(spec([asks("a", "{outputs.b}"), llm("b")], "a>b>END"))
    assert (issue.code, issue.related) == ("KEY_READ_BEFORE_WRITE", ("/nodes/1",))
    assert found(spec([asks("b", "{outputs}")], "b>END"))[0].severity == "warning"


def test_a_node_nothing_leads_to_is_not_asked_what_it_reads() -> None:
    assert found(spec([llm("a"), asks("b", "{outputs.zzz}")], "a>END")) == []


def test_a_gate_shows_what_is_there() -> None:
    raw = spec([llm("a", "draft"), gate("g", subject_key="drafts", prompt="{draft}")], "a>g>END")
    issue = one(raw)
    assert (issue.code, issue.pointer) == ("KEY_READ_BEFORE_WRITE", "/nodes/1/config/subject_key")
    assert issue.fix == ({"op": "replace", "path": "/nodes/1/config/subject_key", "value": "draft"},)


def test_what_a_node_nothing_leads_to_writes_is_not_there() -> None:
    assert one(spec([asks("a", "{x}"), put("b", "x")], "a>END")).code == "PROMPT_PLACEHOLDER_UNKNOWN"


def test_an_item_of_a_fan_out_over_data_is_there() -> None:
    assert found(spec([asks("a", "{item.name} {index}")], "a>END")) == []


def test_calls_read_what_their_templates_name() -> None:
    arguments = {"list": ["{drafd}", {"a": 1}]}
    tool = {"id": "t", "type": "tool", "config": {"connection": "c", "tool": "t", "arguments": arguments}}
    issue = one(spec([llm("a", "draft"), tool], "a>t>END"))
    assert issue.fix == ({"op": "replace", "path": "/nodes/1/config/arguments/list/0", "value": "{draft}"},)


def test_a_read_with_several_places_is_not_repaired() -> None:
    nodes = [llm("a", "draft"), transform("t", {"op": "select", "path": "x", "values": ["drafd"]})]
    assert one(spec(nodes, "a>t>END")).fix == ()


def test_no_near_name_is_looked_for_among_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = spec([llm("draft", "draft"), asks("b", "{draf}")], "draft>b>END")
    assert one(raw).severity == "warning"
    monkeypatch.setattr("agent_graph.core.checks.reading._COMPARED", 1)
    assert one(raw).severity == "info"


def test_what_runs_for_each_item_is_seen_by_that_item_alone() -> None:
    each = {"id": "p", "type": "parallel", "config": {"for_each": {"path": "list"}, "entry": "a", "join": "j"}}
    nodes = [put("s", "list"), each, llm("a", "x"), join("j", "", "a"), asks("z", "{x} {outputs.a}")]
    inside, output = found(spec(nodes, "s>p", "j>z>END"))
    assert '"a" runs once for each item of a list and writes to that item\'s state alone' in inside.message
    assert '"a" runs once for each item of a list, and only what runs for that item sees it' in output.message


def test_a_read_in_a_field_whose_name_was_guessed_is_found_too() -> None:
    inner = compile_graph(spec([asks("x", "About {topic}")], "x>END", name="inner")).graph
    assert inner is not None
    calling = {"id": "s", "type": "subgraph", "config": {"graph_name": "inner", "input_map": {"topic": "topic"}}}
    issues = compile_graph(spec([llm("a"), calling], "a>s>END"), stored={("inner", ""): inner}).issues
    assert [(one.code, one.pointer) for one in issues if one.severity == "error"] == [
        ("UNKNOWN_FIELD", "/nodes/1/config/input_map")
    ]
