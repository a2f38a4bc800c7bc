"""What somebody typed, as a patch that makes exactly that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.console.edits import LINES, STEPS, compared, patch_between, value_of
from agent_graph.core.jsonvalue import json_equal
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.patch import applied

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text("a/~é"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("a/~", max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(before=VALUES, after=VALUES)
def test_a_patch_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    patch = patch_between(before, after)
    assert json_equal(applied(before, patch), after)
    assert bool(patch) is not json_equal(before, after)


def test_an_edit_of_more_steps_than_a_patch_may_have_replaces_the_whole() -> None:
    before, after = list(range(STEPS + 1)), list(range(1, STEPS + 2))
    assert patch_between(before, after) == [{"op": "replace", "path": "", "value": after}]


def test_a_comparison_leaves_equal_lines_out_and_ends_where_it_would_take_too_long() -> None:
    before = "\n".join(map(str, range(40)))
    lines = compared(before, before.replace("\n20\n", "\ntwenty\n"))
    assert lines is not None
    assert [(line.kind, line.text) for line in lines if line.kind != "same"] == [
        ("gap", ""), ("removed", "20"), ("added", "twenty"),
    ]  # fmt: skip
    assert len([line for line in lines if line.kind == "same"]) == 6
    assert compared("x\n" * LINES, "y") is None


@pytest.mark.parametrize(("like", "typed", "value"), [
    ("text", '{"a": 1}', '{"a": 1}'), ({}, '{"a": 1}', {"a": 1}), (1, "2", 2), ("a\r\nb", "a\nc", "a\r\nc"),
    ("a\r\nb\nc", "a\nc", "a\nc"),
])  # fmt: skip
def test_a_text_stays_a_text_and_anything_else_is_json(like: Any, typed: str, value: Any) -> None:
    assert value_of(typed, like=like, limits=DEFAULTS) == value
