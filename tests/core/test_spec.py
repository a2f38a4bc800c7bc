"""core.spec: what a spec may say, how it is told what is wrong, and its minimal form."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.compile import compile_graph
from agent_graph.core.limits import Limits
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.spec import json_schema, minimal, parse_spec
from tests.core.specs import (
    codes,
    compiled,
    gate,
    issues,
    join,
    llm,
    loop,
    parallel,
    pass_,
    router,
    spec,
    transform,
)
from tests.sizes import size


def small(raw: Any) -> Any:
    parsed, found = parse_spec(raw)
    assert parsed is not None
    assert not found, found
    return minimal(parsed)


def version(raw: Any) -> str:
    graph = compiled(raw).graph
    assert graph is not None
    return graph.version


def said(raw: Any) -> list[tuple[str, str, str]]:
    return [(issue.code, issue.pointer, issue.message) for issue in parse_spec(raw)[1]]


ONE = spec([pass_("a")], "a>END")


@pytest.mark.parametrize("raw", [None, True, 3, "x", [], [ONE]])
def test_a_spec_is_an_object(raw: Any) -> None:
    assert parse_spec(raw)[0] is None
    assert said(raw) == [("FIELD_INVALID", "", "a graph spec must be a JSON object")]


@pytest.mark.parametrize("sent", ["3", "1.0", 2, None, True, [], ""])
def test_another_spec_version_is_not_read_at_all(sent: Any) -> None:
    raw = {"spec_version": sent, "nodes": 5}
    assert parse_spec(raw)[0] is None
    assert said(raw) == [
        ("SPEC_VERSION_UNSUPPORTED", "/spec_version", 'this program reads spec_version "2" (and the older "1")')
    ]


@pytest.mark.parametrize("sent", ["1", "2"])
def test_the_spec_version_is_no_part_of_the_minimal_form(sent: str) -> None:
    assert small({**ONE, "spec_version": sent}) == small(ONE)


def test_every_issue_is_found_at_once() -> None:
    raw = {
        "nmae": "x", "name": "a b", "entry": 5, "output_key": "", "max_iterations": True, "max_parallelism": "5",
        "reducers": {"a": "ad"}, "metadata": {"a": [1], "b": 1}, "budgets": {"max_nodes": 0, "max_node": 1},
        "nodes": [
            {"id": "a", "type": "lmm"},
            {"id": "b", "type": "llm", "prompt": 5, "config": {"max_tokens": 0, "think": "x"}},
            {"id": "c", "type": "loop"}, {"type": "llm"}, 5, {"id": "d", "type": "http"},
        ],
        "edges": [{"from": "a"}, {"from": "a", "to": "b", "weight": True}, {"from": "a", "to": "b", "cond": 1}, []],
    }  # fmt: skip
    assert said(raw) == [
        ("FIELD_INVALID", "/name", "`name` must have 1 to 64 letters, digits and the signs _ . -"),
        ("FIELD_INVALID", "/entry", "`entry` must be a string"),
        ("FIELD_INVALID", "/output_key", "`output_key` must not be empty"),
        ("FIELD_INVALID", "/reducers/a",
         "`a` must be 'last_write_wins', 'append', 'add' or 'merge'; did you mean \"add\"?"),
        ("FIELD_INVALID", "/max_iterations", "`max_iterations` must be an integer"),
        ("FIELD_INVALID", "/max_parallelism", "`max_parallelism` must be an integer"),
        ("FIELD_INVALID", "/budgets/max_nodes", "`max_nodes` must be at least 1"),
        ("UNKNOWN_FIELD", "/budgets/max_node", 'there is no field "max_node" here; did you mean "max_nodes"?'),
        ("UNKNOWN_FIELD", "/nmae", 'there is no field "nmae" here; did you mean "name"?'),
        ("FIELD_INVALID", "/metadata/a", "metadata is flat: strings, numbers, true, false or null"),
        ("NODE_TYPE_UNKNOWN", "/nodes/0/type", 'there is no node type "lmm"; did you mean "llm"?'),
        ("FIELD_INVALID", "/nodes/1/prompt", "`prompt` must be a string"),
        ("FIELD_INVALID", "/nodes/1/config/max_tokens", "`max_tokens` must be at least 1"),
        ("FIELD_INVALID", "/nodes/1/config/think",
         "`think` must be true or false or must be 'low', 'medium', 'high' or 'max'"),
        ("FIELD_REQUIRED", "/nodes/2/config/entry", "`entry` is required"),
        ("FIELD_REQUIRED", "/nodes/2/config/exit", "`exit` is required"),
        ("FIELD_REQUIRED", "/nodes/3/id", "`id` is required"),
        ("FIELD_INVALID", "/nodes/4", "this must be an object {id, type, config}"),
        ("NODE_TYPE_UNAVAILABLE", "/nodes/5/type", "HTTP calls are not available yet"),
        ("FIELD_REQUIRED", "/edges/0/to", "`to` is required"),
        ("FIELD_INVALID", "/edges/1/weight", "`weight` must be a number"),
        ("UNKNOWN_FIELD", "/edges/2/cond", 'there is no field "cond" here; did you mean "condition"?'),
        ("FIELD_INVALID", "/edges/3", "this must be an object {from, to}, with ids of nodes or END"),
    ]  # fmt: skip


def test_required_fields_are_named() -> None:
    assert [row[:2] for row in said({})] == [("FIELD_REQUIRED", at) for at in ("/name", "/nodes", "/entry")]
    assert [row[:2] for row in said({"name": "x", "nodes": [pass_("a")]})] == [("FIELD_REQUIRED", "/entry")]


@pytest.mark.parametrize(("nodes", "edges"), [([], []), ("x", []), ([pass_("a")], {})])
def test_nodes_and_edges_are_lists_and_there_is_a_node(nodes: Any, edges: Any) -> None:
    parsed, found = parse_spec({"name": "x", "entry": "a", "nodes": nodes, "edges": edges})
    assert parsed is not None
    assert not parsed.complete
    assert [issue.code for issue in found] == ["FIELD_INVALID"]
    assert [issue.code for issue in compile_graph({"name": "x", "nodes": nodes, "edges": edges}).issues] == [
        "FIELD_INVALID", "FIELD_REQUIRED",
    ]  # fmt: skip


def test_more_nodes_or_edges_than_allowed_are_refused() -> None:
    raw = spec([pass_("a"), pass_("b"), pass_("c")], "a>b>c>END")
    tight = Limits(nodes=2, edges=1)
    found = compile_graph(raw, limits=tight)
    assert found.graph is None
    assert [(i.code, i.pointer, i.message) for i in found.issues] == [
        ("LIMIT_EXCEEDED", "/nodes", "3 nodes, and at most 2 are allowed"),
        ("LIMIT_EXCEEDED", "/edges", "3 edges, and at most 1 are allowed"),
    ]
    assert compile_graph(raw, limits=Limits(nodes=3, edges=3)).graph is not None


@pytest.mark.parametrize("value", ["5", 5.0, 5.5, True, [5], {}, 0])
def test_nothing_is_taken_for_an_integer_that_is_none(value: Any) -> None:
    assert codes({**ONE, "max_iterations": value}) == [("FIELD_INVALID", "/max_iterations")]
    assert codes(spec([llm("a", max_tokens=value)], "a>END")) == [("FIELD_INVALID", "/nodes/0/config/max_tokens")]


@pytest.mark.parametrize("name", ["END", "START", "END_RUN"])
def test_ids_with_a_meaning_of_their_own_are_refused(name: str) -> None:
    assert ("NODE_ID_RESERVED", "/nodes/0/id") in codes(spec([pass_(name)]))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "x" * 65, "a\n", "²"])
def test_an_id_has_plain_signs(name: str) -> None:
    assert ("NODE_ID_INVALID", "/nodes/0/id") in codes(spec([pass_(name)]))


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * 64, "-", "__x"])
def test_plain_ids_are_taken(name: str) -> None:
    assert codes(spec([pass_(name)], f"{name}>END")) == []


def test_a_misspelt_field_does_not_hide_what_else_is_wrong() -> None:
    nodes = [llm("a", **{"output-key": "x", "zzz": 1}), pass_("b")]
    raw = spec(nodes, "a>b>a", output_key="x")
    raw["nodes"][0]["colour"] = 1
    assert codes(raw) == [
        ("UNKNOWN_FIELD", "/nodes/0/colour"),
        ("UNKNOWN_FIELD", "/nodes/0/config/output-key"),
        ("UNKNOWN_FIELD", "/nodes/0/config/zzz"),
        ("LOOP_WITHOUT_EXIT", "/nodes/0"),
    ]


def test_a_wrong_field_at_the_top_brings_no_issue_that_is_none() -> None:
    fork = spec([pass_("f"), llm("a", "x"), llm("b", "x"), join("j", "all", "x")], "f>a>j", "f>b>j", "j>END")
    for name, value, code, at in (
        ("reducer", {"x": "append"}, "UNKNOWN_FIELD", "/reducer"),
        ("reducers", {"x": "apend"}, "FIELD_INVALID", "/reducers/x"),
    ):
        assert codes({**fork, name: value}) == [(code, at)]
    assert ("PARALLEL_WRITE_CONFLICT", "/nodes/1") in codes({**fork, "reducers": ["x"]})
    assert codes({**ONE, "input_schema": 5}) == [("FIELD_INVALID", "/input_schema")]


def test_a_config_field_on_the_node_is_told_where_it_belongs() -> None:
    raw = spec([{**llm("a"), "output_key": "x"}], "a>END")
    assert said(raw) == [("UNKNOWN_FIELD", "/nodes/0/output_key", "`output_key` belongs in the node's `config`")]


def test_a_field_nothing_acts_on_yet_is_refused_unless_it_says_the_default() -> None:
    refused = codes(spec([llm("a", executor="caller")], "a>END"))
    assert refused == [("NODE_TYPE_UNAVAILABLE", "/nodes/0/config/executor")]
    raw = spec([llm("a", retry=None, on_error="fail", mutex="", tools=[])], "a>END")
    assert codes(raw) == []
    assert small(raw) == small(spec([llm("a")], "a>END"))


def test_evidence_required_may_stand_on_the_node_and_wants_json() -> None:
    bare = {**llm("a"), "evidence_required": True}
    assert codes(spec([bare], "a>END")) == [("EVIDENCE_NEEDS_JSON", "/nodes/0/evidence_required")]
    assert codes(spec([{**bare, "json_mode": True}], "a>END")) == []


@pytest.mark.parametrize("kind", ["tool", "http", "graphql"])
def test_known_types_that_are_not_there_yet_say_so(kind: str) -> None:
    assert codes(spec([{"id": "a", "type": kind}]))[0] == ("NODE_TYPE_UNAVAILABLE", "/nodes/0/type")


@pytest.mark.parametrize("config", [
    {"tool": {"connection": "files", "tool": "read", "arguments": {"path": ["{input}", 1]}, "idempotent": True}},
    {"http": {"connection": "tracker", "method": "POST", "path": "/issues", "body": {"title": "{input}"}}},
    {"graphql": {"connection": "tracker", "document": "mutation { close }", "on_errors": {"goto": ["END"]}}},
], ids=["tool", "http", "graphql"])  # fmt: skip
def test_a_type_that_only_the_checker_knows_is_looked_at_like_any_other(config: dict[str, Any]) -> None:
    ((kind, given),) = config.items()
    made = {"id": "b", "type": kind, "config": {**given, "output_key": "x"}}
    raw = spec([pass_("a"), made, pass_("c")], "a>b>c>END", output_key="x")
    assert codes(raw) == [("NODE_TYPE_UNAVAILABLE", "/nodes/1/type")]
    made["config"]["conection"] = 1
    assert codes(raw) == [("NODE_TYPE_UNAVAILABLE", "/nodes/1/type"), ("UNKNOWN_FIELD", "/nodes/1/config/conection")]


def test_a_call_names_no_address_and_holds_no_secret() -> None:
    call = {"connection": "c", "path": "https://example.org/", "headers": {"Authorization": "x", "Accept": "y"}}
    assert codes(spec([{"id": "a", "type": "http", "config": call}], "a>END")) == [
        ("NODE_TYPE_UNAVAILABLE", "/nodes/0/type"),
        ("FIELD_INVALID", "/nodes/0/config/path"),
        ("FIELD_INVALID", "/nodes/0/config/headers/Authorization"),
    ]


def test_a_type_that_resembles_none_is_told_which_there_are() -> None:
    (issue,) = issues(spec([{"id": "a", "type": "zzzzzz"}]), "NODE_TYPE_UNKNOWN")
    assert issue.message.endswith("there are " + ", ".join(NODE_TYPES))


def test_fields_that_may_stand_on_the_node_mean_the_same_in_the_config() -> None:
    on_node = {"id": "a", "type": "llm", "prompt": "p", "model": "m", "json_mode": True, "max_tokens": 5}
    inside = {"id": "a", "type": "llm", "config": {"prompt": "p", "model": "m", "json_mode": True, "max_tokens": 5}}
    both = {**on_node, **inside}
    assert small(spec([on_node], "a>END")) == small(spec([inside], "a>END")) == small(spec([both], "a>END"))


def test_given_twice_and_different_they_are_in_conflict() -> None:
    raw = spec([{"id": "a", "type": "llm", "prompt": "p", "config": {"prompt": "q"}}], "a>END")
    (issue,) = issues(raw, "FIELD_CONFLICT")
    assert (issue.pointer, issue.related, issue.node_id) == ("/nodes/0/prompt", ("/nodes/0/config/prompt",), "a")


def test_a_field_that_says_nothing_may_stand_on_any_node() -> None:
    spare = {"prompt": None, "model": None, "json_mode": False, "evidence_required": False, "config": None}
    assert small(spec([{**pass_("a"), **spare}], "a>END")) == small(ONE)
    assert codes(spec([{**pass_("a"), "prompt": "p"}], "a>END")) == [("UNKNOWN_FIELD", "/nodes/0/prompt")]


def test_recursion_limit_is_the_older_name_of_max_iterations() -> None:
    assert small({**ONE, "recursion_limit": 9}) == small({**ONE, "max_iterations": 9})
    assert small({**ONE, "recursion_limit": 9, "max_iterations": 9})["max_iterations"] == 9
    assert codes({**ONE, "recursion_limit": 9, "max_iterations": 8}) == [("FIELD_CONFLICT", "/recursion_limit")]
    assert codes({**ONE, "recursion_limit": "9"}) == [("FIELD_INVALID", "/recursion_limit")]


def test_routes_keep_their_order_in_the_minimal_form() -> None:
    one = {"id": "r", "type": "router", "routes": {"b": "END", "a": ["r2"]}, "config": {"default": []}}
    other = {"id": "r", "type": "router", "config": {"routes": {"a": ["r2"], "b": "END"}, "default": []}}
    first, second = (spec([node, pass_("r2")], "r2>END") for node in (one, other))
    assert small(first)["nodes"][0]["config"]["routes"] == [["b", "END"], ["a", ["r2"]]]
    assert small(small(first)) == small(first)
    assert version(first) != version(second)


def test_the_older_default_keys_are_defaults() -> None:
    raw = spec([llm("a", "__input__", input_key="__input__"), join("j", "__input__")], "a>j>END")
    assert small(raw) == small(spec([llm("a"), join("j")], "a>j>END"))
    older = [gate("g", output_key="__approval_decision__"), loop("l", "b", "END", counter_key="__loop__:l"), pass_("b")]
    legacy = spec(older, "g>l", "b>l", spec_version="1")
    assert small(legacy) == small(spec([gate("g"), loop("l", "b", "END"), pass_("b")], "g>l", "b>l"))
    assert {c for c, _ in codes({**legacy, "spec_version": "2"})} == {"RESERVED_KEY"}


def test_an_edges_condition_is_its_label_and_a_warning() -> None:
    raw = {**ONE, "edges": [{"from": "a", "to": "END", "condition": "yes"}]}
    (issue,) = issues(raw, "CONDITION_IS_LABEL")
    assert (issue.severity, issue.pointer) == ("warning", "/edges/0/condition")
    parsed, _ = parse_spec(raw)
    assert parsed is not None
    assert minimal(parsed)["edges"] == [{"from": "a", "to": "END", "label": "yes"}]
    raw["edges"][0]["label"] = "no"
    assert ("FIELD_CONFLICT", "/edges/0/condition") in codes(raw)


def test_defaults_change_no_digest_and_labels_do() -> None:
    written = {
        **ONE, "description": "", "metadata": {}, "reducers": {}, "max_parallelism": 8, "max_iterations": None,
        "input_schema": None, "budgets": {}, "output_key": None, "spec_version": "2",
        "nodes": [{**pass_("a"), "label": "", "description": "", "config": {"timeout_ms": 120000, "requirements": []}}],
        "edges": [{"from": "a", "to": "END", "id": "", "label": "", "weight": None}],
    }  # fmt: skip
    assert small(written) == small(ONE)
    assert version(written) == version(ONE)
    assert version({**ONE, "description": "d"}) != version(ONE)
    assert version({**ONE, "metadata": {"a": 1}}) != version(ONE)
    labelled = {**ONE, "edges": [{"from": "a", "to": "END", "weight": 0, "id": "e"}]}
    assert small(labelled)["edges"] == [{"from": "a", "to": "END", "weight": 0, "id": "e"}]


def test_aliases_and_defaults_inside_rules_and_operations_change_no_digest() -> None:
    inner = {"not": {"all": [{"path": "a", "op": "not_equals", "value": 1, "ignore_case": False}]}}
    plain = {"not": {"all": [{"path": "a", "op": "ne", "value": 1}]}}
    for long, short in (
        (router("r", default=[], rules=[{**inner, "targets": ["END"], "label": ""}]),
         router("r", default=[], rules=[{**plain, "targets": ["END"]}])),
        (join("r", "", of=inner, mode="quorum"), join("r", "", of=plain, mode="quorum")),
        (transform("r", {"op": "merge_object", "path": "a", "value": {}, "replace": False}),
         transform("r", {"op": "merge", "path": "a", "value": {}})),
        (transform("r", {"op": "increment", "path": "a", "value": 1}),
         transform("r", {"op": "increment", "path": "a"})),
    ):  # fmt: skip
        assert version(spec([long], "r>END")) == version(spec([short], "r>END"))
        assert small(spec([long], "r>END")) == small(spec([short], "r>END"))
    assert codes(spec([loop("l", "a", "END", until={"all": "x"}), pass_("a")], "a>l")) != []
    assert codes(spec([router("r", default=[], rules=[{"all": ["x"], "op": 5, "targets": []}])], "r>END")) != []


def turned(value: Any) -> Any:
    """The same JSON with every object's keys the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(list(value))}
    return [turned(item) for item in value] if isinstance(value, list) else value


CASES = (
    spec([llm("a", "x", temperature=1, options={"num_ctx": 10}), join("j", "all", "a", "x")], "a>j>END",
         reducers={"x": "add"}),
    spec([router("r", ["a"], default=[]), pass_("a")], "a>END", input_schema={"type": "object"}, max_parallelism=3),
    spec([loop("l", "a", "g", 2), llm("a", "x"), gate("g", on_reject=["a"])], "a>l", "g>END"),
    spec([parallel("p", "j", "a", "b"), llm("a", "x"), llm("b", "y"), join("j", "z")], "START>p", "j>END"),
)  # fmt: skip


@pytest.mark.parametrize("raw", CASES)
def test_the_minimal_form_is_its_own_minimal_form_and_knows_no_key_order(raw: Any) -> None:
    assert small(small(raw)) == small(raw)
    assert version(small(raw)) == version(turned(raw)) == version(raw)
    again, first = compiled(small(raw)), compiled(raw)
    assert again.compiled == first.compiled
    assert again.graph is not None
    assert first.graph is not None
    assert again.graph.spec == first.graph.spec


@settings(max_examples=60)
@given(st.data())
def test_every_default_written_out_is_left_out_again(data: st.DataObject) -> None:
    from agent_graph.core.configs import config_defaults

    raw = data.draw(st.sampled_from(CASES))
    nodes = []
    for node in raw["nodes"]:
        defaults = config_defaults(node["type"])
        names = data.draw(st.lists(st.sampled_from(sorted(defaults)), unique=True, max_size=8))
        config = node.get("config", {})
        moved = {name for name in defaults if name in node}
        more = {name: defaults[name] for name in names if name not in config and name not in moved}
        nodes.append({**node, "config": {**more, **config}})
    assert version({**raw, "nodes": nodes}) == version(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
WORDS = st.sampled_from(
    ["name", "entry", "nodes", "edges", "id", "type", "config", "from", "to", "rules", "targets", "default", "branches",
     "join", "exit", "until", "operations", "op", "path", "prompt", "routes", "inputs", "reducers", "input_schema"]
)  # fmt: skip


def mutated(value: Any, data: st.DataObject, odds: int = 6) -> Any:
    """`value` with some of its parts replaced, renamed or left out."""
    if data.draw(st.integers(0, odds)) == 0:
        return data.draw(JSON)
    if isinstance(value, dict):
        kept = {key: mutated(item, data, odds * 2) for key, item in value.items() if data.draw(st.integers(0, 19))}
        return {**kept, data.draw(WORDS): data.draw(JSON)} if data.draw(st.integers(0, 9)) == 0 else kept
    return [mutated(item, data, odds * 2) for item in value] if isinstance(value, list) else value


@settings(max_examples=size(150, 5_000), deadline=None)
@given(st.data())
def test_no_json_value_makes_the_compiler_raise(data: st.DataObject) -> None:
    raw = data.draw(JSON) if data.draw(st.integers(0, 9)) == 0 else mutated(data.draw(st.sampled_from(CASES)), data)
    found = compile_graph(raw)
    assert (found.graph is None) == any(issue.severity == "error" for issue in found.issues)
    for issue in found.issues:
        assert issue.message
        assert issue.to_json()["code"] == issue.code


def test_the_published_schema_is_one_and_takes_what_the_parser_takes() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for raw in CASES:
        validator.validate(raw)
    validator.validate({**ONE, "recursion_limit": 5, "spec_version": "1"})
    for raw in ({}, {**ONE, "nmae": 1}, {**ONE, "nodes": [{"id": "a", "type": "lmm"}]}, {**ONE, "max_iterations": 0}):
        assert not validator.is_valid(raw)


def test_the_published_schema_describes_its_fields_and_is_a_copy() -> None:
    schema: Any = json_schema()
    assert schema["title"] == "agent-graph spec v2"
    assert schema["properties"]["output_key"]["description"] == "State path of the result."
    kinds = {node["title"]: node for node in schema["properties"]["nodes"]["items"]["oneOf"]}
    assert list(kinds) == list(NODE_TYPES)
    config = kinds["loop"]["properties"]["config"]
    assert config["properties"]["max_iterations"]["description"] == "How often the body runs at most."
    assert kinds["loop"]["required"] == ["id", "type", "config"]
    assert kinds["llm"]["required"] == ["id", "type"]
    assert config["properties"]["executor"]["description"].startswith("Only the default is taken: ")
    assert "prompt" in kinds["llm"]["properties"]
    assert "prompt" not in kinds["passthrough"]["properties"]
    schema.clear()
    assert json_schema()


def test_what_other_formats_write_is_told_by_our_names() -> None:
    raw = {**spec([pass_("a"), pass_("b")]), "edges": [{"source": "a", "target": "b"}, {"from": "b", "to": "End"}]}
    assert [row for row in said(raw) if row[0] == "UNKNOWN_FIELD"] == [
        ("UNKNOWN_FIELD", "/edges/0/source", 'there is no field "source" here; did you mean "from"?'),
        ("UNKNOWN_FIELD", "/edges/0/target", 'there is no field "target" here; did you mean "to"?'),
    ]
    (end,) = [issue for issue in compile_graph(raw).issues if issue.code == "UNKNOWN_NODE"]
    assert end.message == 'there is no node "End"; did you mean "END"?'
    rules = [{"path": "k", "op": "==", "value": 1, "targets": ["a"]}, {"path": "k", "op": "exsts", "targets": ["a"]}, 5]
    wrong = compile_graph(spec([{"id": "r", "type": "router", "config": {"rules": rules[:2]}}, pass_("a")])).issues
    assert [issue.message.partition(" There are ")[0] for issue in wrong if issue.code == "FIELD_INVALID"] == [
        "there is no op '=='; did you mean \"eq\"?",
        "there is no op 'exsts'; did you mean \"exists\"?",
    ]
    assert "There are eq, ne, lt" in wrong[0].message
    typed = compile_graph(spec([{"id": "r", "type": "router", "config": {"rules": rules[2:]}}, pass_("a")])).issues
    assert typed[0].message == "item 0 of `rules` must be an object"


def test_a_mode_that_does_not_exist_is_refused_and_the_others_are_named() -> None:
    wrong = spec([{"id": "j", "type": "join", "config": {"inputs": ["a"], "mode": "vot"}}])
    (row,) = [row for row in said(wrong) if row[0] == "FIELD_INVALID"]
    assert "'quorum'" in row[2]
    assert "'vote'" in row[2]
    assert '"vote"' in json.dumps(json_schema())


@pytest.mark.timeout(20)
def test_thousands_of_unknown_fields_are_all_told_in_time_that_grows_with_their_number() -> None:
    node = {"id": "a", "type": "llm"} | {f"promptt{number}": 1 for number in range(20_000)}
    assert len(issues({"name": "g", "entry": "a", "nodes": [node]}, "UNKNOWN_FIELD")) == 20_000


def test_a_schema_for_editors_is_no_part_of_the_graph() -> None:
    raw = spec([llm("a")], "a>END")
    noted = {"$schema": "https://example.org/spec-v2.json", **raw}
    assert codes(noted) == []
    assert compiled(noted).graph.version == compiled(raw).graph.version  # type: ignore[union-attr]  # it is a graph
    assert codes({"$schema": 5, **raw}) == [("UNKNOWN_FIELD", "/$schema")]
    assert not list(jsonschema.Draft202012Validator(json_schema()).iter_errors(noted))


@pytest.mark.parametrize(("node", "told"), [
    ({"id": "a", "kind": "llm"}, ["`type` is required", 'there is no field "kind" here; did you mean "type"?']),
    ({"id": "a", "foo": 1}, ["`type` is required", 'there is no field "foo" here']),
    ({"id": "a", "type": "parallel", "config": {"join": "a", "for_each": "items"}},
     ['`for_each` must be an object, such as {"path": "items"}']),
    ({"id": "a", "type": "http", "config": {"url": "x"}}, ["HTTP calls are not available yet"]),
    ({"id": "a", "type": "graphql"}, ["GraphQL calls are not available yet"]),
])  # fmt: skip
def test_a_node_is_told_what_it_lacks_and_no_more(node: dict[str, Any], told: list[str]) -> None:
    raw = {"name": "g", "entry": "a", "nodes": [node]}
    assert [issue.message for issue in compile_graph(raw).issues] == told


def test_a_word_that_is_nearly_one_of_a_few_is_told_which() -> None:
    raw = {"name": "g", "entry": "a", "nodes": [{"id": "a", "type": "join", "config": {"mode": "votes"}}]}
    (issue,) = compile_graph(raw).issues
    assert (issue.code, issue.message.endswith('; did you mean "vote"?')) == ("FIELD_INVALID", True)


def test_an_entry_is_a_node_and_only_nodes_are_proposed() -> None:
    (issue,) = compile_graph({"name": "g", "entry": "start", "nodes": [{"id": "a", "type": "passthrough"}]}).issues
    assert (issue.code, issue.message) == ("ENTRY_UNKNOWN", '`entry` names "start", and there is no such node')


def test_a_pair_of_routes_that_is_too_short_is_named() -> None:
    raw = {"name": "g", "entry": "a", "nodes": [{"id": "a", "type": "router", "config": {"routes": [[]]}}]}
    found = [(issue.code, issue.pointer, issue.message) for issue in compile_graph(raw).issues]
    assert ("FIELD_INVALID", "/nodes/0/config/routes/0", "item 0 of `routes` is too short") in found
