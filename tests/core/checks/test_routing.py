"""core.checks.routing: rules that never decide, and routers that may have nothing to choose."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.checks import reasoning
from agent_graph.core.checks.samples import Sample
from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import MISSING
from tests.core.specs import gate, issues, join, llm, pass_, put, spec

Rule = dict[str, Any]


def rule(path: str, op: str, value: Any = None, **more: Any) -> Rule:
    return {"path": path, "op": op, "targets": ["END"], **({} if value is None else {"value": value}), **more}


def routed(*rules: Rule, before: Any = None, default: Any = None, **config: Any) -> Any:
    router = {"id": "r", "type": "router", "config": {"rules": list(rules), **config}}
    if default is not None:
        router["config"]["default"] = default
    return spec([before or llm("s", "score"), router], f"{(before or {'id': 's'})['id']}>r", output_key="__input__")


def told(raw: Any) -> list[tuple[str, str]]:
    found = [issue for issue in compile_graph(raw).issues if issue.code.startswith("RULE_")]
    return [(issue.code, issue.pointer.removeprefix("/nodes/1/config")) for issue in found]


def test_forty_rules_with_three_shadowed_ones_and_an_impossible_join_give_exactly_these_four() -> None:
    rules = [rule("score", "eq", number, targets=["a" if number % 2 else "b"]) for number in range(37)]
    rules.insert(10, rule("score", "in", [1, 4], targets=["a"]))
    rules.insert(20, {"all": [rule("score", "gte", 2), rule("score", "lt", 2.5)], "targets": ["b"]})
    rules.insert(30, rule("score", "eq", 3.0, targets=["a"]))
    for inner in rules[20]["all"]:
        del inner["targets"]
    nodes = [llm("s", "score"), {"id": "r", "type": "router", "config": {"rules": rules, "default": ["c"]}},
             put("a", "ra"), put("b", "rb"), put("c", "rc"),
             join("j", "o", "ra", "rb", mode="quorum", required=2)]  # fmt: skip
    raw = spec(nodes, "s>r", "a>j", "b>j", "c>j", "j>END")
    assert len(rules) == 40
    rules[20]["all"][1]["value"] = 2.5
    found = [(issue.code, issue.pointer) for issue in compile_graph(raw).issues]
    assert found == [
        ("RULE_SHADOWED", "/nodes/1/config/rules/10"), ("RULE_SHADOWED", "/nodes/1/config/rules/30"),
        ("JOIN_QUORUM_IMPOSSIBLE", "/nodes/5/config/required"),
    ]  # fmt: skip
    rules[20]["all"][1] = {"path": "score", "op": "is_type", "value": "integer"}
    rules[20]["all"].append({"path": "score", "op": "lt", "value": 7})
    found = [(issue.code, issue.pointer) for issue in compile_graph(raw).issues]
    assert found == [
        ("RULE_SHADOWED", "/nodes/1/config/rules/10"), ("RULE_SHADOWED", "/nodes/1/config/rules/20"),
        ("RULE_SHADOWED", "/nodes/1/config/rules/30"), ("JOIN_QUORUM_IMPOSSIBLE", "/nodes/5/config/required"),
    ]  # fmt: skip


def test_a_shadowed_rule_names_what_holds_before_it_and_its_repair_is_to_go() -> None:
    raw = routed(rule("score", "gt", 3), rule("score", "gte", 5), default=[])
    (issue,) = issues(raw, "RULE_SHADOWED")
    assert issue.severity == "warning"
    assert issue.message == (
        'the rule `score >= 5` of "r" never decides: whenever it holds, `score > 3` has held before it'
    )
    assert issue.related == ("/nodes/1/config/rules/0",)
    assert issue.fix == ({"op": "remove", "path": "/nodes/1/config/rules/1"},)
    many = [rule("score", "eq", number) for number in range(5)]
    (issue,) = issues(routed(*many, rule("score", "in", [0, 1, 2, 3, 4]), default=[]), "RULE_SHADOWED")
    assert issue.message.endswith("`score == 0` or `score == 1` or `score == 2` or another has held before it")


@pytest.mark.parametrize("rules", [
    [rule("s", "eq", 1), rule("s", "eq", 1.0)],
    [rule("s", "regex", "^ok"), rule("s", "eq", "okay")],
    [rule("s", "regex", "^ok$"), rule("s", "eq", "ok")],
    [rule("s", "regex", "o+k"), rule("s", "eq", "ook")],
    [rule("s", "starts_with", "a"), rule("s", "starts_with", "ab")],
    [rule("s", "ends_with", "a"), rule("s", "ends_with", "ba")],
    [rule("s", "contains", "a"), {"all": [rule("s", "starts_with", "ab"), rule("s", "is_type", "string")]}],
    [rule("s", "exists"), rule("s", "gt", 5)],
    [rule("s", "not_contains", "a"), rule("s", "not_contains", "a")],
    [{"any": [rule("s", "eq", 1), rule("t", "eq", 2)]}, {"all": [rule("t", "eq", 2), rule("s", "gt", 9)]}],
    [{"not": rule("s", "eq", 1)}, rule("s", "eq", 2)],
    [rule("s", "eq", "Yes", ignore_case=True), rule("s", "eq", "yes")],
    [rule("s", "eq", value_path="t"), rule("s", "eq", value_path="t")],
])  # fmt: skip
def test_the_second_rule_is_shadowed(rules: list[Rule]) -> None:
    assert told(routed(*map(bare, rules), default=[])) == [("RULE_SHADOWED", "/rules/1")]


def bare(body: Any) -> Any:
    """A rule whose parts have no targets, and itself has."""
    return {**stripped(body), "targets": ["END"]}


def stripped(body: Any) -> Any:
    if isinstance(body, list):
        return [stripped(part) for part in body]
    if not isinstance(body, dict):
        return body
    return {name: value if name == "value" else stripped(value) for name, value in body.items() if name != "targets"}


@pytest.mark.parametrize("rules", [
    [rule("s", "eq", 1), rule("s", "eq", 2)],
    [rule("s", "eq", 1), rule("t", "eq", 1)],
    [rule("s", "gt", 3), rule("s", "gt", 2)],
    [rule("s", "contains", "ab"), rule("s", "contains", "a")],
    [rule("s", "regex", "a"), rule("s", "contains", "a")],
    [rule("s", "starts_with", "a"), rule("s", "starts_with", "A", ignore_case=True)],
    [rule("s", "eq", value_path="t"), rule("s", "eq", 1)],
    [rule("s", "contains", f"a{n}") for n in range(3)] + [{"any": [rule("s", "contains", f"b{n}") for n in range(9)]}],
    [{"any": [rule(f"p{n}", "in", [0, 1, 2]) for n in range(6)]}, {"all": [rule(f"p{n}", "eq", 0) for n in range(6)]}],
])  # fmt: skip
def test_no_rule_is_called_shadowed_that_may_decide(rules: list[Rule]) -> None:
    assert told(routed(*map(bare, rules), default=[])) == []


@pytest.mark.parametrize("body", [
    {"all": [rule("s", "eq", 1), rule("s", "eq", 2)]},
    {"all": [rule("s", "gt", 3), rule("s", "lt", 3)]},
    {"all": [rule("s", "gt", 3), rule("s", "lt", 4), rule("s", "is_type", "integer")]},
    {"all": [rule("s", "starts_with", "ab"), {"not": rule("s", "starts_with", "a")}]},
    {"all": [rule("s", "exists"), rule("s", "not_exists")]},
    rule("s", "in", []),
    {"not": {"any": [rule("s", "empty"), rule("s", "not_empty")]}},
])  # fmt: skip
def test_a_rule_that_can_never_hold_is_told(body: Rule) -> None:
    raw = routed(bare(body), default=["END"])
    (issue,) = issues(raw, "RULE_UNSATISFIABLE")
    assert (issue.severity, issue.pointer) == ("warning", "/nodes/1/config/rules/0")
    assert issue.fix == ({"op": "remove", "path": "/nodes/1/config/rules/0"},)
    assert issue.message.endswith("can never hold: no value fits what it asks for")


def test_where_all_rules_that_hold_are_taken_none_shadows_another() -> None:
    raw = routed(rule("s", "gt", 3), rule("s", "gt", 5), mode="all", default=[])
    assert told(raw) == []


def test_the_older_routes_are_asked_too() -> None:
    raw = routed(default=["END"], routes={"a": "END", "ab": "END"})
    assert told(raw) == [("RULE_SHADOWED", "/routes/ab")]
    raw = routed(default=["END"], routes=[["ab", "END"], ["a", "END"], ["xab", "END"]])
    assert told(raw) == [("RULE_SHADOWED", "/routes/2")]


def without_default(raw: Any) -> str:
    return "".join(issue.message for issue in issues(raw, "NO_DEFAULT_ROUTE"))


def test_a_router_without_default_is_shown_what_it_has_no_rule_for() -> None:
    assert (
        "none of its rules holds, as when `score` is not there the run fails"
        in without_default(routed(rule("score", "eq", 1), rule("score", "ne", 1), rule("score", "exists")))
        or without_default(routed(rule("score", "eq", 1), rule("score", "ne", 1))) == ""
    )
    assert "as when `score` is not there" in without_default(routed(rule("score", "gte", 5), rule("score", "lt", 5)))
    assert "holds, as for true the run" in without_default(
        routed(rule("score", "gte", 5), rule("score", "lt", 5), rule("score", "not_exists"))
    )
    assert "holds the run fails" in without_default(routed(rule("score", "eq", 1), rule("other", "eq", 1)))
    assert "as when `the input` is not there" in without_default(routed(rule("", "eq", 1)))


@pytest.mark.parametrize("rules", [
    [rule("s", "eq", 1), rule("s", "ne", 1)],
    [rule("s", "in", [1, 2]), rule("s", "not_in", [2])],
    [rule("s", "gte", 5), rule("s", "lt", 5), {"not": rule("s", "is_type", "number")}],
    [rule("s", "contains", "a"), rule("s", "not_contains", "a")],
    [rule("s", "regex", "x"), {"not": rule("s", "regex", "x")}],
])  # fmt: skip
def test_rules_that_leave_nothing_open_need_no_default(rules: list[Rule]) -> None:
    assert without_default(routed(*map(bare, rules))) == ""


def test_what_is_open_in_too_many_ways_is_not_called_complete() -> None:
    rules = [rule("s", "contains", f"a{n}") for n in range(9)]
    assert without_default(routed(bare({"not": rule("s", "is_type", ["string", "array", "object"])}), *rules)) != ""
    assert (
        without_default(routed(rule("s", "eq", 2**60), rule("s", "contains", "ab"), rule("s", "contains", "b"))) != ""
    )
    found = issues(spec([llm("s", "x"), {"id": "r", "type": "router", "config": {}, "routes": {"a": "END"}}], "s>r"),
                   "NO_DEFAULT_ROUTE")  # fmt: skip
    assert found[0].fix == ({"op": "add", "path": "/nodes/1/config", "value": {"default": []}},)


SCHEMA = {
    "type": "object", "required": ["ok", "kind", "more"],
    "properties": {"ok": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}, "more": {}, "free": {"type": "string"},
                   "fixed": {"const": 1}},
}  # fmt: skip


def judged(key: str = "verdict", **config: Any) -> Any:
    return {**llm("s", key, output_schema={**SCHEMA, **config.pop("schema", {})}), "prompt": "x"} | {}


def test_what_a_model_must_answer_is_taken_into_account() -> None:
    both = [rule("verdict.ok", "eq", True), rule("verdict.ok", "eq", False)]
    assert without_default(routed(*both, before=judged())) == ""
    kinds = [rule("verdict.kind", "eq", "a"), rule("verdict.kind", "eq", "b")]
    assert without_default(routed(*kinds, before=judged())) == ""
    assert told(routed(*kinds, rule("verdict.kind", "eq", "c"), before=judged())) == [
        ("RULE_UNSATISFIABLE", "/rules/2")
    ]
    fixed = {"required": ["fixed"]}
    assert without_default(routed(rule("verdict.fixed", "eq", 1), before=judged(schema=fixed))) == ""


@pytest.mark.parametrize("before", [
    judged(schema={"required": []}),
    judged(schema={"type": ["object", "null"]}),
    judged(schema={"properties": {"ok": True}}),
    {**judged(), "config": {**judged()["config"], "on_error": "continue"}},
    judged("verdict.ok.deeper"),
    judged("other"),
    put("s", "verdict"),
])  # fmt: skip
def test_what_a_model_may_leave_out_is_not(before: Any) -> None:
    both = [rule("verdict.ok", "eq", True), rule("verdict.ok", "eq", False)]
    assert without_default(routed(*both, before=before)) != ""


def test_a_writer_that_may_not_have_run_or_is_not_the_only_one_proves_nothing() -> None:
    both = [rule("verdict.ok", "eq", True), rule("verdict.ok", "eq", False)]
    raw = routed(*both, before=judged())
    raw["nodes"].append(put("z", "verdict"))
    raw["edges"] = [{"from": "z", "to": "s"}, *raw["edges"]]
    raw["entry"] = "z"
    assert without_default(raw) != ""
    fork = routed(*both, before=judged())
    fork["nodes"] += [pass_("f"), {"id": "c", "type": "router", "config": {"rules": [rule("x", "eq", 1, targets=["s"])],
                                                                         "default": ["f"]}}]  # fmt: skip
    fork["edges"].append({"from": "f", "to": "r"})
    fork["entry"] = "c"
    assert without_default(fork) != ""
    assert without_default({**routed(*both, before=judged()), "reducers": {"verdict": "merge"}}) != ""
    outputs = [rule("outputs.s.ok", "eq", True), rule("outputs.s.ok", "eq", False)]
    assert without_default(routed(*outputs, before=judged())) != ""


def test_a_gates_decisions_are_known() -> None:
    ask = gate("g", on_reject="continue", on_request_changes="continue")
    decisions = [rule("g.decision", "eq", name) for name in ("approve", "reject", "request_changes")]
    assert without_default(routed(*decisions, before=ask)) == ""
    assert without_default(routed(*decisions[:2], before=ask)) != ""
    assert told(routed(*decisions, rule("g.decision", "eq", "approved"), before=ask)) == [
        ("RULE_UNSATISFIABLE", "/rules/3")
    ]


def test_a_router_that_is_too_large_to_tell_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = routed(*(rule("s", "gte", number) for number in range(20)))
    assert len(told(raw)) == 19
    monkeypatch.setattr("agent_graph.core.checks.routing.STEPS", 30)
    assert told(raw) == []
    assert without_default(raw) != ""
    assert reasoning.STEPS > 30


class Anything:
    """Nothing is known of the values."""

    def values(self, path: str) -> list[Any]:
        return []

    def fits(self, path: str, sample: Sample) -> bool:
        return True


@pytest.mark.parametrize(("bodies", "shadowed"), [
    ([rule("s", "starts_with", "b"), rule("s", "contains", "a"), rule("s", "starts_with", "ab")], [2]),
    ([rule("s", "contains", "ab"), rule("s", "contains", "b"), rule("s", "not_contains", "a")], []),
    ([rule("s", "not_contains", "a"), rule("s", "not_contains", "ab")], []),
    ([{"not": rule("s", "ends_with", "b")}, {"not": rule("s", "ends_with", "ab")}, rule("s", "ends_with", "b")], []),
    ([{"not": rule("s", "starts_with", "ab")}, {"not": rule("s", "starts_with", "a")}], [1]),
    ([rule("s", "exists"), {"any": [rule("s", "ends_with", f"a{n}") for n in range(9)]}], []),
    ([rule("s", "contains", "a"), rule("s", "contains", 5), rule("s", "contains", [1])], []),
    ([rule("s", "regex", "(a)"), rule("s", "ends_with", "a"), rule("s", "starts_with", "a", ignore_case=True)], []),
    ([rule("s", "eq", 2**60), rule("s", "lt", 2**60), rule("s", "eq", 2**60 - 1)], [2]),
])  # fmt: skip
def test_one_rule_may_imply_another(bodies: list[Rule], shadowed: list[int]) -> None:
    asked = reasoning.Reasoning([reasoning.rule(stripped(body)) for body in bodies], Anything())
    assert [place for place, _ in asked.run()] == shadowed


def test_what_is_left_open_in_too_many_ways_covers_nothing() -> None:
    others = {"not": {"path": "s", "op": "is_type", "value": "string"}}
    empty = {"path": "s", "op": "eq", "value": ""}
    bodies = [others, empty, *({"path": "s", "op": "ends_with", "value": f"a{n}"} for n in range(9))]
    asked = reasoning.Reasoning([reasoning.rule(body) for body in bodies], Anything())
    assert list(asked.run()) == []
    assert not asked.exhaustive()


def test_where_some_rule_may_hold_for_everything_no_example_is_shown() -> None:
    found = reasoning.Reasoning([reasoning.rule({"path": "s", "op": "eq", "value_path": "s"})], Anything())
    list(found.run())
    assert found.uncovered() is MISSING
