"""Reducers: what they make of contributions, and that folding changes nothing it was given."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core.effects import MISSING, Write
from agent_graph.core.ops.reducers import REDUCERS, contribution, fold, fold_into, kind, plus
from agent_graph.errors import NodeFailure

KEYS = st.sampled_from("abc")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OPERANDS: dict[str, st.SearchStrategy[Any]] = {
    "last_write_wins": VALUES,
    "append": VALUES,
    "add": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "merge": st.dictionaries(KEYS, VALUES, max_size=3),
}
FOLDS = st.sampled_from(sorted(REDUCERS)).flatmap(
    lambda name: st.tuples(st.just(name), VALUES | st.just(MISSING), st.lists(OPERANDS[name], max_size=6))
)


@given(FOLDS)
def test_folding_in_place_gives_the_same_and_neither_changes_what_it_was_given(case: Any) -> None:
    name, start, operands = case
    before = copy.deepcopy((start if start is not MISSING else None, operands))
    plain: Any = start
    owned: Any = start
    for place, operand in enumerate(operands):
        plain = fold(name, plain, operand)
        owned = fold_into(name, owned, operand) if place else fold(name, owned, operand)
        assert owned == plain
    assert (start if start is not MISSING else None, operands) == before


@pytest.mark.parametrize(
    ("name", "current", "operand", "expected"),
    [
        ("last_write_wins", 1, None, None), ("last_write_wins", MISSING, [1], [1]),
        ("append", MISSING, 1, [1]), ("append", None, [1, 2], [1, 2]), ("append", ["x"], ["a"], ["x", "a"]),
        ("append", ["x"], [["a"]], ["x", ["a"]]), ("append", "x", "y", ["x", "y"]),
        ("append", {"a": 1}, [2], [{"a": 1}, 2]),
        ("append", [1], None, [1, None]),
        ("add", MISSING, 5, 5), ("add", None, 1.5, 1.5), ("add", 5, 3, 8), ("add", 10**400, 1, 10**400 + 1),
        ("add", 1, 0.5, 1.5),
        ("add", "text", 5, 5), ("add", True, 5, 5), ("add", 2**53 + 1, 1.0, 2**53 + 2), ("add", 0.5, 0.5, 1.0),
        ("merge", MISSING, {"a": 1}, {"a": 1}), ("merge", [1], {"a": 1}, {"a": 1}),
        ("merge", {"a": 1, "b": 2}, {"b": None}, {"a": 1, "b": None}),
        ("merge", {"a": {"x": 1, "l": [1]}}, {"a": {"y": 2, "l": [2]}}, {"a": {"x": 1, "y": 2, "l": [2]}}),
        ("merge", {"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}), ("merge", {"a": {"x": 1}}, {"a": 1}, {"a": 1}),
    ],
)  # fmt: skip
def test_a_reducer_folds_a_contribution(name: str, current: Any, operand: Any, expected: Any) -> None:
    for result in (fold(name, current, operand), fold_into(name, copy.deepcopy(current), operand)):
        assert result == expected
        assert type(result) is type(expected)


def test_contributions_are_folded_and_not_whole_values() -> None:
    value: Any = ["x"]
    for operand in ("a", "b"):
        value = fold("append", value, operand)
    assert value == ["x", "a", "b"]
    assert fold("add", fold("add", 5, 1), 2) == 8


@pytest.mark.parametrize(
    ("name", "operand", "says"),
    [
        ("add", "1", "takes a number, not a string"), ("add", True, "not a boolean"), ("add", None, "not null"),
        ("merge", [1], "takes an object, not an array"), ("merge", 1.5, "not a number"),
    ],
)  # fmt: skip
def test_an_operand_of_the_wrong_type_is_refused(name: str, operand: Any, says: str) -> None:
    current: Any = {"a": 1}
    for attempt in (fold, fold_into):
        with pytest.raises(NodeFailure, match=says) as caught:
            attempt(name, current, operand)
        assert caught.value.code == "TRANSFORM_INVALID"
    assert current == {"a": 1}


@pytest.mark.parametrize(
    ("current", "operand", "kept"),
    [
        (1e308, 1.5e308, 1.5e308), (1.5e308, 1e308, 1.5e308), (10**400, 0.5, 10**400), (0.5, 10**400, 10**400),
        (10**4300 - 1, 1, 10**4300 - 1), (-(10**4300) + 1, -5, -(10**4300) + 1),
    ],
)  # fmt: skip
def test_a_sum_that_json_cannot_carry_leaves_the_larger_term(current: Any, operand: Any, kept: Any) -> None:
    assert (fold("add", current, operand) == kept) is True
    with pytest.raises(NodeFailure, match="larger than a number may be") as caught:
        plus(current, operand)
    assert caught.value.code == "TRANSFORM_INVALID"


def test_gathering_costs_the_operand_and_not_what_was_gathered() -> None:
    gathered: Any = fold("append", MISSING, [0])
    merged: Any = fold("merge", MISSING, {"log": {}})
    log = merged["log"]
    for number in range(3):
        assert fold_into("append", gathered, number) is gathered
        assert fold_into("merge", merged, {"log": {str(number): number}}) is merged
    assert merged["log"] is log


def test_merging_deep_objects_does_not_exhaust_the_interpreter() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    assert fold("merge", fold("merge", MISSING, deep), deep)


@pytest.mark.parametrize(
    ("reducer", "place", "value", "write"),
    [
        ("", ("a", "b"), 1, Write("set", ("a", "b"), 1)), ("append", ("a",), 1, Write("operand", ("a",), 1)),
        ("add", ("a",), 2, Write("operand", ("a",), 2)), ("last_write_wins", ("a",), 1, Write("operand", ("a",), 1)),
        ("last_write_wins", ("a", "b"), 1, Write("set", ("a", "b"), 1)), ("merge", ("a",), {"x": 1}, Write("operand",
        ("a",), {"x": 1})),
        ("merge", ("a", "b", "c"), 1, Write("operand", ("a",), {"b": {"c": 1}})),
    ],
)  # fmt: skip
def test_every_write_on_a_key_with_a_reducer_is_an_operand(reducer: str, place: Any, value: Any, write: Write) -> None:
    assert contribution(reducer, place, value) == write


@pytest.mark.parametrize(
    ("reducer", "place", "value", "says"),
    [
        ("append", ("a", "0"), 1, "write to it, not below it"), ("add", ("a", "b"), 1, "gathered by the reducer add"),
        ("add", ("a",), "x", "takes a number"), ("merge", ("a",), [], "takes an object"),
    ],
)  # fmt: skip
def test_a_write_that_is_no_operand_is_refused(reducer: str, place: Any, value: Any, says: str) -> None:
    with pytest.raises(NodeFailure, match=says) as caught:
        contribution(reducer, place, value)
    assert caught.value.code == "TRANSFORM_INVALID"


def test_a_value_is_named_by_its_json_type() -> None:
    values: list[Any] = [None, MISSING, True, 1, 1.5, "", [], {}]
    named = [kind(value) for value in values]
    expected = ["null", "nothing", "a boolean", "a number", "a number", "a string", "an array", "an object"]
    assert named == expected
