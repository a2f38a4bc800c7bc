"""The patch from one value to another makes the other, whatever the two are; one that would be too long is cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.difference import difference
from agent_graph.core.jsonvalue import json_equal
from agent_graph.core.patch import applied

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("a/~é", max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(VALUES, VALUES)
def test_the_patch_makes_the_other(before: Any, after: Any) -> None:
    patch, complete = difference(before, after, most=10_000, max_bytes=10**6)
    assert complete
    assert json_equal(applied(before, patch), after)
    assert bool(patch) != json_equal(before, after)


@pytest.mark.parametrize("bounds", [{"most": 2}, {"max_bytes": 90}])
def test_a_patch_that_would_be_too_long_is_cut_and_says_so(bounds: Any) -> None:
    patch, complete = difference({}, {str(n): n for n in range(9)}, **bounds)
    assert not complete
    assert len(patch) == 2
