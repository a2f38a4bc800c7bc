"""core.schema: schemas are checked with exact pointers, and applied with a bound on the work."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent_graph.core.limits import DEFAULTS
from agent_graph.core.schema import SCHEMA_DEPTH, check, unbounded, violations


def nested(depth: int, key: str) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {key: value}
    return value


DOUBLING = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)} | {"d30": {"type": "string"}},
}
TREE = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "additionalProperties": {"$ref": "#/$defs/n"}}}}


@pytest.mark.parametrize(
    ("schema", "issues"),
    [
        ({}, []),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, [("SCHEMA_INVALID", "/s/properties/a/type")]),
        ({"minLength": -1, "maxItems": "x"}, [("SCHEMA_INVALID", "/s/minLength"), ("SCHEMA_INVALID", "/s/maxItems")]),
        ({"$ref": "https://example.org/s"}, [("SCHEMA_INVALID", "/s/$ref")]),
        ({"items": {"$ref": "#/$defs/gone"}}, [("SCHEMA_INVALID", "/s/items/$ref")]),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": True}}, []),
        ({"$ref": "#here", "$defs": {"x": {"$anchor": "here"}}}, []),
        ({"$dynamicRef": "#gone"}, [("SCHEMA_INVALID", "/s/$dynamicRef")]),
        ({"$id": "urn:a:b", "properties": {"x": {"$id": "urn:c:d"}}}, [("SCHEMA_INVALID", "/s/properties/x/$id")]),
        ({"$ref": "#"}, [("SCHEMA_INVALID", "/s")]),
        ({"items": {"$ref": "#"}}, []),
        (DOUBLING, [("SCHEMA_INVALID", "/s")]),
        (nested(SCHEMA_DEPTH, "not"), [("SCHEMA_INVALID", "/s")]),
        ({"pattern": "(?=a)"}, [("REGEX_INVALID", "/s/pattern")]),
        ({"pattern": "\\p{L}+"}, []),
        ({"pattern": "a" * (DEFAULTS.regex_chars + 1)}, [("REGEX_INVALID", "/s/pattern")]),
        ({"allOf": [{"patternProperties": {"[": {}}}]}, [("REGEX_INVALID", "/s/allOf/0/patternProperties/[")]),
        (
            {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
            [("SCHEMA_INVALID", "/s/unevaluatedProperties")],
        ),
    ],
)
def test_what_is_wrong_with_a_schema_is_found_at_its_place(
    schema: dict[str, Any], issues: list[tuple[str, str]]
) -> None:
    found = check(schema, "/s", node_id="n")
    assert [(issue.code, issue.pointer) for issue in found] == issues
    assert all(issue.node_id == "n" for issue in found)


def test_strings_and_arrays_without_a_bound_are_told_of() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["array", "null"], "items": {"type": "string", "maxLength": 9}},
            "c": {"enum": ["x"], "type": "string"},
            "d": {"type": "integer"},
        },
    }
    found = unbounded(schema, "/s", node_id="n")
    assert [(issue.code, issue.severity, issue.pointer) for issue in found] == [
        ("SCHEMA_UNBOUNDED", "info", "/s/properties/a"), ("SCHEMA_UNBOUNDED", "info", "/s/properties/b"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, 3, "3"),
        ({"type": "integer"}, 10**30, True),
        ({"pattern": "b"}, "abc", "ac"),
        ({"pattern": "b"}, 3, "x"),
        ({"patternProperties": {"^n_": {"type": "integer"}}}, {"n_a": 1, "x": "y"}, {"n_a": "1"}),
        ({"patternProperties": {"a": False}}, [], {"ba": 1}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
        ({"additionalProperties": {"type": "null"}}, {"a": None}, {"a": 1}),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, {"ba": 1}),
        ({"additionalProperties": False}, [], {"x": 1}),
        ({"uniqueItems": True}, [1, True, "1", [1]], [1, 1.0]),
        ({"uniqueItems": False}, [1, 1], None),
        ({"uniqueItems": True}, "aa", [{}, {}]),
        ({"multipleOf": 0.1}, 0.3, 0.35),
        ({"multipleOf": 3}, "x", 10**400 + 1),
    ],
)
def test_values_fit_or_do_not(schema: dict[str, Any], good: object, bad: object) -> None:
    assert check(schema, "") == []
    assert violations(good, schema) == []
    assert bad is None or len(violations(bad, schema)) == 1


def test_a_violation_says_where_and_is_short() -> None:
    schema = {"properties": {"a": {"items": {"maxLength": 3}}}}
    (sentence,) = violations({"a": ["x" * 10_000]}, schema)
    assert sentence.startswith("at /a/0: 'xxx")
    assert len(sentence) < 400
    assert violations(1, {"type": "string"}) == ["at the top: 1 is not of type 'string'"]


def test_at_most_five_violations_are_told() -> None:
    assert len(violations(["x"] * 100, {"items": {"type": "null"}})) == 5


def test_no_pattern_and_no_schema_can_freeze_the_server() -> None:
    start = time.perf_counter()
    assert violations("a" * 200_000 + "b", {"pattern": "^(a+)+$"})
    assert violations(3, DOUBLING) == ["the schema takes too many steps for this value"]
    assert violations(nested(150, "k"), TREE) == ["the schema takes too many steps for this value"]
    assert violations(nested(30, "k"), TREE) == []
    assert violations([[i] for i in range(20_000)], {"uniqueItems": True}) == []
    assert time.perf_counter() - start < 10


def test_applying_a_schema_reads_no_file_and_no_network() -> None:
    assert [issue.code for issue in check({"$ref": "file:///etc/passwd"}, "")] == ["SCHEMA_INVALID"]


def test_a_type_that_is_none_is_told_which_there_are() -> None:
    (issue,) = check({"properties": {"a": {"type": "strng"}}}, "/output_schema")
    assert (issue.code, issue.pointer) == ("SCHEMA_INVALID", "/output_schema/properties/a/type")
    assert issue.message == (
        "'strng' is no type; did you mean \"string\"? There are string, number, integer, boolean, array, object, null"
    )
