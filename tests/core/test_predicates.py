"""Predicates: what each op holds for, what is missing, what is refused when a rule is checked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core import statepath
from agent_graph.core.effects import MISSING
from agent_graph.core.ops.predicates import ALIASES, MAX_NESTING, OPS, TESTS, check, prepare, reads

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
)
NEGATED = [
    ("eq", "ne"),
    ("in", "not_in"),
    ("contains", "not_contains"),
    ("exists", "not_exists"),
    ("empty", "not_empty"),
]


def holds(rule: dict[str, Any], state: Any) -> bool:
    return prepare(rule)(lambda path: statepath.read(state, path) if path else state)


def ask(op: str, value: Any, operand: Any, **more: Any) -> bool:
    rule = {"path": "", "op": op, **more}
    if op not in ("exists", "not_exists", "empty", "not_empty"):
        rule["value"] = operand
    return prepare(rule)(lambda path: value)


@pytest.mark.parametrize(
    ("op", "value", "operand"),
    [
        ("eq", 3, 3.0), ("equals", {"a": [1]}, {"a": [1.0]}), ("eq", None, None), ("ne", True, 1),
        ("not_equals", "a", "A"),
        ("lt", 1, 2), ("lt", -1.5, 10**400), ("lt", 1e308, 10**400), ("lt", 2**53, 2**53 + 1), ("lt", "a", "b"),
        ("lt", "Z", "a"),
        ("lte", 2, 2.0), ("gt", 2**53 + 1, float(2**53)), ("gte", "b", "b"), ("gte", 10**400, 1e300),
        ("in", 3.0, [1, 2, 3]), ("in", [1], [[1]]), ("not_in", True, [1, 0]), ("in", "b", ["a", "b"]),
        ("contains", "a deep dive", "deep"), ("contains", "score: 5", 5), ("contains", "it is true", True),
        ("contains", [1, {"a": 2}], {"a": 2.0}),
        ("contains", {"key": 1}, "key"), ("contains", "x", ""), ("not_contains", [True], 1),
        ("not_contains", {"k": "v"}, "v"),
        ("not_contains", 123, 2), ("not_contains", None, "x"), ("not_contains", '{"a": 1}', {"a": 1}),
        ("not_contains", "null", None),
        ("starts_with", "abc", "ab"), ("ends_with", "abc", "bc"), ("exists", 0, None), ("exists", "", None),
        ("exists", False, None),
        ("empty", "", None), ("empty", [], None), ("empty", {}, None), ("empty", None, None), ("not_empty", 0, None),
        ("not_empty", False, None),
        ("not_empty", " ", None), ("regex", "order 66", r"\d+$"), ("regex", "größe", "^gr.ße$"),
        ("regex", "a\nb", "(?m)^b"),
        ("is_type", 1, "integer"), ("is_type", 1.0, "integer"), ("is_type", 10**400, "integer"),
        ("is_type", 1.5, "number"), ("is_type", True, "boolean"),
        ("is_type", None, "null"), ("is_type", "x", ["array", "string"]), ("is_type", [], "array"),
        ("is_type", {}, "object"),
    ],
)  # fmt: skip
def test_an_op_holds(op: str, value: Any, operand: Any) -> None:
    assert ask(op, value, operand)


@pytest.mark.parametrize(
    ("op", "value", "operand"),
    [
        ("eq", 1, True), ("eq", "3", 3), ("lt", "1", 2), ("lt", None, 1), ("gte", True, 0), ("lte", [1], [2]),
        ("gt", 2, 2),
        ("in", "a", "abc"[:0]), ("in", 1, None), ("in", "x", []), ("contains", 5, 5), ("contains", {"1": 0}, 1),
        ("starts_with", ["a"], "a"),
        ("starts_with", "1", 1), ("ends_with", None, ""), ("ends_with", "a", None), ("regex", 5, r"\d"),
        ("regex", None, ".*"),
        ("regex", "abc", "^b"), ("is_type", True, "number"), ("is_type", True, "integer"),
        ("is_type", 1.5, "integer"), ("is_type", "1", "number"),
        ("exists", None, None), ("empty", 0, None), ("empty", [None], None),
    ],
)  # fmt: skip
def test_an_op_does_not_hold(op: str, value: Any, operand: Any) -> None:
    assert not ask(op, value, operand)


@given(st.sampled_from(sorted(TESTS)), VALUES, VALUES)
def test_no_op_fails_on_any_value(op: str, value: Any, operand: Any) -> None:
    assert TESTS[op](value, operand) in (True, False)


@given(st.sampled_from(NEGATED), VALUES, VALUES)
def test_a_negated_op_holds_exactly_when_its_op_does_not(pair: tuple[str, str], value: Any, operand: Any) -> None:
    assert TESTS[pair[0]](value, operand) != TESTS[pair[1]](value, operand)


@given(VALUES, VALUES)
def test_comparisons_agree_with_each_other(value: Any, operand: Any) -> None:
    assert TESTS["lt"](value, operand) == TESTS["gt"](operand, value)
    if TESTS["lte"](value, operand) and TESTS["gte"](value, operand):
        assert TESTS["eq"](value, operand)
    assert not (TESTS["lt"](value, operand) and TESTS["eq"](value, operand))


def test_a_path_that_holds_nothing_reads_as_null() -> None:
    state = {"there": None, "one": 1}
    for path in ("there", "nowhere", "nowhere.at.all", "one.below"):
        assert holds({"path": path, "op": "eq", "value": None}, state)
        assert holds({"path": path, "op": "ne", "value": 1}, state)
        assert holds({"path": path, "op": "not_exists"}, state)
        assert holds({"path": path, "op": "empty"}, state)
        assert holds({"path": path, "op": "is_type", "value": "null"}, state)
        assert holds({"path": path, "op": "not_in", "value": [1]}, state)
        assert holds({"path": path, "op": "not_contains", "value": "x"}, state)
        assert not any(
            holds({"path": path, "op": op, "value": 0}, state) for op in ("lt", "lte", "gt", "gte", "contains")
        )


def test_nested_paths_are_read() -> None:
    assert holds({"path": "validation.valid", "op": "eq", "value": False}, {"validation": {"valid": False}})
    assert holds({"path": "/items/0/t", "op": "eq", "value": "x"}, {"items": [{"t": "x"}]})


def test_a_value_can_come_from_another_path() -> None:
    state = {"a": 3, "b": 3.0, "c": 4, "xs": [3], "text": "hello", "word": "ell"}
    assert holds({"path": "a", "op": "eq", "value_path": "b"}, state)
    assert holds({"path": "a", "op": "lt", "value_path": "c"}, state)
    assert holds({"path": "a", "op": "in", "value_path": "xs"}, state)
    assert holds({"path": "word", "op": "in", "value_path": "text"}, state)
    assert not holds({"path": "a", "op": "eq", "value_path": "nowhere"}, state)
    assert holds({"path": "no", "op": "eq", "value_path": "nowhere"}, state)
    assert not holds({"path": "text", "op": "contains", "value_path": "nowhere"}, state)


@pytest.mark.parametrize(
    ("op", "value", "operand"),
    [
        ("eq", "STRASSE", "straße"), ("in", "A", ["b", "a", 1]), ("contains", "A Deep Dive", "dEEP"),
        ("contains", ["X", 1], "x"),
        ("contains", {"Key": 1}, "kEY"), ("starts_with", "Yes, it", "yes"), ("ends_with", "IT", "it"),
        ("regex", "APPROVE", "approve"),
        ("eq", 3, 3.0), ("contains", ["X", 1], 1),
    ],
)  # fmt: skip
def test_case_can_be_ignored(op: str, value: Any, operand: Any) -> None:
    assert ask(op, value, operand, ignore_case=True)


def test_case_matters_unless_it_is_ignored() -> None:
    assert not ask("contains", "DEEP", "deep")
    assert not ask("eq", "A", "a")
    assert not ask("regex", "APPROVE", "approve", ignore_case=False)
    assert ask("not_contains", "abc", "X", ignore_case=True)
    assert not ask("not_in", "A", ["a"], ignore_case=True)


def test_a_pattern_cannot_freeze_the_server() -> None:
    assert not ask("regex", "a" * 200_000 + "!", "(a+)+$")


def test_rules_nest() -> None:
    rule: Any = {
        "all": [
            {"any": [{"path": "a", "op": "eq", "value": 1}, {"path": "b", "op": "exists"}]},
            {"not": {"path": "c", "op": "exists"}},
        ]
    }
    assert check(rule, "") == []
    assert holds(rule, {"a": 1})
    assert holds(rule, {"b": 1})
    assert not holds(rule, {"a": 2})
    assert not holds(rule, {"a": 1, "c": 0})
    assert reads(rule) == ["a", "b", "c"]


def test_what_a_rule_reads_is_told_once_and_in_order() -> None:
    first: Any = {"path": "a", "op": "eq", "value_path": "b"}
    assert reads({"any": [first, {"not": {"path": "", "op": "exists"}}, {"path": "a", "op": "exists"}]}) == ["a", "b"]
    assert reads({"path": 1, "all": "x"}) == []


def nested(levels: int) -> Any:
    rule: Any = {"path": "a", "op": "exists"}
    for _ in range(levels):
        rule = {"not": rule}
    return rule


def test_nesting_is_bounded() -> None:
    assert check(nested(MAX_NESTING), "/rules/0") == []
    [issue] = check(nested(MAX_NESTING + 1), "/rules/0")
    assert issue.code == "FIELD_INVALID"
    assert issue.pointer == "/rules/0" + "/not" * (MAX_NESTING + 1)
    assert len(check(nested(5_000), "")) == 1


@pytest.mark.parametrize("op", sorted({*OPS} - {"exists", "not_exists", "empty", "not_empty"}))
def test_every_op_with_a_fitting_value_passes_the_check(op: str) -> None:
    values: dict[str, Any] = {"in": ["a"], "not_in": [], "is_type": "string"}
    rule: Any = {"path": "a", "op": op, "value": values.get(op, "a")}
    assert check(rule, "") == []
    assert prepare(rule)(lambda path: MISSING) in (True, False)
    assert ALIASES.get(op, op) in (*TESTS, "regex")


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("x", [("FIELD_INVALID", "")]), ({}, [("FIELD_REQUIRED", ""), ("FIELD_REQUIRED", "")]),
        ({"path": "a"}, [("FIELD_REQUIRED", "")]),
        ({"op": "exists"}, [("FIELD_REQUIRED", "")]), ({"path": 1, "op": "exists"}, [("FIELD_INVALID", "/path")]),
        ({"path": "a..b", "op": "exists"}, [("STATE_PATH_INVALID", "/path")]),
        ({"path": "a", "op": "equal", "value": 1}, [("FIELD_INVALID", "/op")]),
        ({"path": "a", "op": ["eq"], "value": 1}, [("FIELD_INVALID", "/op")]),
        ({"path": "a", "op": "eq"}, [("FIELD_REQUIRED", "")]),
        ({"path": "a", "op": "eq", "value": 1, "value_path": "b"}, [("FIELD_CONFLICT", "")]),
        ({"path": "a", "op": "eq", "value_path": "/~"}, [("STATE_PATH_INVALID", "/value_path")]),
        ({"path": "a", "op": "exists", "value": 1}, [("FIELD_CONFLICT", "/value")]),
        ({"path": "a", "op": "exists", "value": None}, []),
        ({"path": "a", "op": "regex", "value_path": "b"}, [("FIELD_CONFLICT", "/value_path")]),
        ({"path": "a", "op": "is_type"}, [("FIELD_REQUIRED", "")]),
        ({"path": "a", "op": "regex", "value": "("}, [("REGEX_INVALID", "/value")]),
        ({"path": "a", "op": "regex", "value": r"(a)\1"}, [("REGEX_INVALID", "/value")]),
        ({"path": "a", "op": "regex", "value": 1}, [("REGEX_INVALID", "/value")]),
        ({"path": "a", "op": "regex", "value": "x" * 1001}, [("REGEX_INVALID", "/value")]),
        ({"path": "a", "op": "is_type", "value": "int"}, [("FIELD_INVALID", "/value")]),
        ({"path": "a", "op": "is_type", "value": ["string", 1]}, [("FIELD_INVALID", "/value")]),
        ({"path": "a", "op": "is_type", "value": []}, [("FIELD_INVALID", "/value")]),
        ({"path": "a", "op": "in", "value": "abc"}, [("FIELD_INVALID", "/value")]),
        ({"path": "a", "op": "lt", "value": True}, [("FIELD_INVALID", "/value")]),
        ({"path": "a", "op": "starts_with", "value": 1}, [("FIELD_INVALID", "/value")]),
        ({"path": "a", "op": "eq", "value": 1, "valeu": 2}, [("UNKNOWN_FIELD", "/valeu")]),
        ({"path": "a", "op": "eq", "value": "x", "ignore_case": 1}, [("FIELD_INVALID", "/ignore_case")]),
        ({"path": "a", "op": "lt", "value": 1, "ignore_case": True}, [("FIELD_CONFLICT", "/ignore_case")]),
        ({"path": "a", "op": "lt", "value": 1, "ignore_case": False}, []),
        ({"all": []}, [("FIELD_INVALID", "/all")]), ({"any": {}}, [("FIELD_INVALID", "/any")]),
        ({"not": []}, [("FIELD_INVALID", "/not")]),
        ({"all": [1], "op": "eq"}, [("FIELD_CONFLICT", ""), ("FIELD_INVALID", "/all/0")]),
        ({"path": "", "op": "exists"}, []),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_told_with_its_place(rule: Any, found: list[tuple[str, str]]) -> None:
    issues = check(rule, "/rules/0")
    assert [(issue.code, issue.pointer) for issue in issues] == [(code, "/rules/0" + place) for code, place in found]


def test_an_unknown_op_and_field_come_with_a_suggestion() -> None:
    assert 'did you mean "not_contains"' in check({"path": "a", "op": "not_contain", "value": 1}, "")[0].message
    assert 'did you mean "value_path"' in check({"path": "a", "op": "eq", "value": 1, "valuepath": 2}, "")[0].message


def test_a_wrong_pattern_says_why() -> None:
    [issue] = check({"path": "a", "op": "regex", "value": "(ab"}, "")
    assert issue.message == "not a pattern of RE2: missing ): (ab"
