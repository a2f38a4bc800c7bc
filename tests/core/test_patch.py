"""core.patch, with jsonpatch as the oracle."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from agent_graph.core.patch import PatchFailed, applied

VALUE: Any = {"a": [1, {"b": 2}, 3], "c/d": {"~": None}, "e": "x", "": {"": 1}}


@pytest.mark.parametrize("patch", [
    [{"op": "add", "path": "/a/1", "value": 9}],
    [{"op": "add", "path": "/a/-", "value": {"x": []}}],
    [{"op": "add", "path": "/a/3", "value": 4}],
    [{"op": "add", "path": "/new", "value": 1}, {"op": "replace", "path": "/new", "value": 2}],
    [{"op": "add", "path": "", "value": 1}],
    [{"op": "replace", "path": "", "value": [1]}],
    [{"op": "remove", "path": "/c~1d/~0"}],
    [{"op": "remove", "path": "/a/0"}, {"op": "remove", "path": "/a/0"}],
    [{"op": "replace", "path": "/a/1/b", "value": [1, 2]}],
    [{"op": "replace", "path": "//", "value": 2}],
    [{"op": "move", "from": "/a/1/b", "path": "/e"}],
    [{"op": "copy", "from": "/a", "path": "/a/-"}],
    [{"op": "test", "path": "/a/1", "value": {"b": 2}}],
])  # fmt: skip
def test_a_patch_does_what_rfc_6902_says_and_changes_nothing_it_was_given(patch: Any) -> None:
    before = deepcopy(VALUE)
    assert applied(VALUE, patch) == jsonpatch.apply_patch(deepcopy(VALUE), patch)
    assert before == VALUE


@pytest.mark.parametrize("step", [
    {"op": "add", "path": "/a/9", "value": 1}, {"op": "add", "path": "/a/01", "value": 1},
    {"op": "add", "path": "/a/x", "value": 1}, {"op": "add", "path": "/z/y", "value": 1},
    {"op": "add", "path": "a", "value": 1}, {"op": "add", "path": "/a"}, {"op": "add", "path": "/e/x", "value": 1},
    {"op": "remove", "path": "/nothing"}, {"op": "remove", "path": "/a/7"},
    {"op": "replace", "path": "/nothing", "value": 1}, {"op": "test", "path": "/e", "value": "y"},
    {"op": "move", "from": "/a", "path": "/a/0"}, {"op": "swap", "path": "/a"}, {"path": "/a"},
])  # fmt: skip
def test_a_step_that_does_not_fit_is_refused_and_changes_nothing(step: Any) -> None:
    before = deepcopy(VALUE)
    with pytest.raises(PatchFailed, match="does not fit"):
        applied(VALUE, [{"op": "remove", "path": "/c~1d"}, step])
    assert before == VALUE
