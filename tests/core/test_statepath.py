"""Dotted paths and JSON Pointers: reading, resolving, writing without changing what was given."""

from __future__ import annotations

import copy
from typing import Any

import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core.effects import MISSING
from agent_graph.core.statepath import pointer_get, put, read, remove, resolve, split
from agent_graph.errors import NodeFailure, StatePathInvalid, StatePathNotFound

ODD: Any = {"a/b": 1, "m~n": 2, "~1": 3, "": 4, " ": 5, "k": {"": {"x": 6}}, "nums~": [7]}
KEYS = st.sampled_from(["a", "b", "a.b", "0", "1", "", "x/y", "m~n", "-"])
VALUES = st.recursive(
    st.none() | st.integers(0, 3), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
SEGMENTS = st.lists(KEYS, min_size=1, max_size=4).map(tuple)


def pointer_of(segments: Any) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in segments)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/a~1b", 1), ("/m~0n", 2), ("/~01", 3), ("/", 4), ("/ ", 5), ("/k//x", 6), ("", ODD), ("/nums~0/0", 7),
    ],
)  # fmt: skip
def test_a_pointer_finds_keys_with_slashes_tildes_and_no_characters(pointer: str, value: Any) -> None:
    assert pointer_get(ODD, pointer) == value


@pytest.mark.parametrize("pointer", ["a", "/m~", "/m~2n", "#/a~1b", "/nums~/0", "~0", "a.b"])
def test_what_is_no_pointer_is_invalid_rather_than_not_found(pointer: str) -> None:
    with pytest.raises(StatePathInvalid) as caught:
        pointer_get(ODD, pointer)
    assert caught.value.code == "STATE_PATH_INVALID"
    assert caught.value.details == {"path": pointer}


@pytest.mark.parametrize(
    "pointer", ["/nope", "/nums~0/1", "/nums~0/-", "/nums~0/00", "/nums~0/-1", "/nums~0/0/x", "/k/x"]
)
def test_a_pointer_to_nothing_is_not_found(pointer: str) -> None:
    with pytest.raises(StatePathNotFound) as caught:
        pointer_get(ODD, pointer)
    assert caught.value.code == "STATE_PATH_NOT_FOUND"
    assert caught.value.details["path"] == pointer


def test_a_pointer_to_nothing_says_how_far_it_came_and_what_is_there() -> None:
    with pytest.raises(StatePathNotFound, match=r"at /k there is no 'x', only ''$") as caught:
        pointer_get(ODD, "/k/x")
    assert caught.value.details == {"path": "/k/x", "found": "/k", "keys": [""]}
    with pytest.raises(StatePathNotFound, match=r"only .* \.\.\.$") as caught:
        pointer_get({str(number): 0 for number in range(30)}, "/x")
    assert len(caught.value.details["keys"]) == 20


@given(VALUES, SEGMENTS)
def test_a_pointer_finds_what_the_reference_library_finds(value: Any, segments: tuple[str, ...]) -> None:
    pointer = pointer_of(segments)
    ours: Any
    try:
        ours = pointer_get(value, pointer)
    except StatePathNotFound:
        ours = MISSING
    theirs: Any = jsonpointer.JsonPointer(pointer).resolve(value, MISSING)
    if isinstance(theirs, jsonpointer.EndOfList):
        theirs = MISSING
    assert ours == theirs
    assert read(value, pointer) == theirs


def test_a_path_is_split_at_dots_or_is_a_pointer() -> None:
    assert split("a.b.0") == ("a", "b", "0")
    assert split("/a.b/0/") == ("a.b", "0", "")
    assert split("/~01") == ("~1",)


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "/a~", "/~2"])
def test_a_malformed_path_is_a_value_error(path: str) -> None:
    with pytest.raises(ValueError, match=r"path|Pointer"):
        split(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", 1), ("/a/b", 2), ("a.c", 3), ("items.1.t", "y"), ("x.y.z", 4), ("x.y.q.r", 5), ("n", None),
        ("s.0", MISSING),
        ("items.2", MISSING), ("items.01", MISSING), ("items.-", MISSING), ("nope.a.b", MISSING), ("n.a", MISSING),
    ],
)  # fmt: skip
def test_reading_finds_a_flat_key_with_dots_first(path: str, value: Any) -> None:
    state: Any = {
        "a.b": 1, "a": {"b": 2, "c": 3}, "items": [{"t": "x"}, {"t": "y"}], "x.y": {"z": 4, "q.r": 5},
        "x": {"y": {"z": 0}},
        "n": None, "s": "text",
    }  # fmt: skip
    assert read(state, path) == value


def test_a_write_goes_to_the_flat_key_that_exists() -> None:
    state: Any = {"a.b": 1, "a": {}, "x": {"c.d": 2}}
    assert resolve(state, "a.b") == ("a.b",)
    assert resolve(state, "/a/b") == ("a", "b")
    assert resolve(state, "a.b.c") == ("a.b", "c")
    assert resolve(state, "x.c.d") == ("x", "c.d")
    assert resolve(state, "x.c.e") == ("x", "c", "e")
    assert resolve(state, "new.key") == ("new", "key")
    assert resolve([{"a.b": 1}], "0.a.b") == ("0", "a.b")


@given(VALUES, SEGMENTS, st.integers())
def test_what_was_put_is_read_back_and_nothing_given_changes(value: Any, segments: Any, new: int) -> None:
    before = copy.deepcopy(value)
    try:
        made = put(value, segments, [new])
    except NodeFailure:
        made = put(value, segments, [new], force=True)
    if "-" not in segments:
        assert pointer_get(made, pointer_of(segments)) == [new]
    assert value == before


@given(VALUES, SEGMENTS)
def test_what_was_removed_is_gone_and_nothing_given_changes(value: Any, segments: Any) -> None:
    before = copy.deepcopy(value)
    try:
        pointer_get(value, pointer_of(segments))
    except StatePathNotFound:
        assert remove(value, segments) is value
    else:
        made = remove(value, segments)
        expected = copy.deepcopy(value)
        parent = pointer_get(expected, pointer_of(segments[:-1]))
        del parent[int(segments[-1]) if isinstance(parent, list) else segments[-1]]  # type: ignore[arg-type,union-attr]
        assert made == expected
    assert value == before


def test_removing_takes_a_member_or_an_element_out() -> None:
    state: Any = {"a": {"b": 1, "c": 2}, "xs": [1, [2, 3]]}
    assert remove(state, ("a", "b")) == {"a": {"c": 2}, "xs": [1, [2, 3]]}
    assert remove(state, ("xs", "0")) == {"a": {"b": 1, "c": 2}, "xs": [[2, 3]]}
    assert remove(state, ("xs", "1", "1")) == {"a": {"b": 1, "c": 2}, "xs": [1, [2]]}
    assert remove(state, ("xs", "-")) is remove(state, ("a", "b", "x")) is state


def test_putting_makes_the_objects_on_the_way() -> None:
    assert put({}, ("a", "b", "0"), 1) == {"a": {"b": {"0": 1}}}
    assert put({"a": None}, ("a", "b"), 1) == {"a": {"b": 1}}
    assert put(None, ("a",), 1) == {"a": 1}
    assert put({"a": 1}, (), 2) == 2


def test_putting_into_a_list_goes_by_index_or_at_its_end() -> None:
    state: Any = {"xs": [1, {"a": 2}]}
    assert put(state, ("xs", "0"), 9) == {"xs": [9, {"a": 2}]}
    assert put(state, ("xs", "1", "a"), 9) == {"xs": [1, {"a": 9}]}
    assert put(state, ("xs", "2"), 9) == put(state, ("xs", "-"), 9) == {"xs": [1, {"a": 2}, 9]}
    assert put(state, ("xs", "-", "b"), 9) == {"xs": [1, {"a": 2}, {"b": 9}]}


@pytest.mark.parametrize(
    ("segments", "says"),
    [
        (("xs", "2"), "at /xs a list has no such index"), (("xs", "x"), "a list has no such index"),
        (("s", "a"), "at /s neither"),
        (("s", "a", "b"), "cannot write /s/a/b"), (("xs", "01"), "no such index"),
        (("xs", "0", "a"), "at /xs/0 neither"),
    ],
)  # fmt: skip
def test_a_segment_that_cannot_be_applied_fails_the_write(segments: tuple[str, ...], says: str) -> None:
    state: Any = {"xs": [1], "s": "text"}
    with pytest.raises(NodeFailure, match=says) as caught:
        put(state, segments, 1)
    assert caught.value.code == "TRANSFORM_INVALID"
    assert state == {"xs": [1], "s": "text"}


def test_a_forced_write_stands_wherever_it_goes() -> None:
    state: Any = {"xs": [1], "s": "text"}
    assert put(state, ("s", "a", "b"), 1, force=True) == {"xs": [1], "s": {"a": {"b": 1}}}
    assert put(state, ("xs", "7"), 1, force=True) == {"xs": {"7": 1}, "s": "text"}
    assert put(state, ("xs", "0"), 2, force=True) == {"xs": [2], "s": "text"}


def test_a_write_into_a_bare_scalar_fails_at_the_top() -> None:
    with pytest.raises(NodeFailure, match="at the top neither"):
        put("text", ("a",), 1)


def test_what_lies_beside_the_path_is_shared() -> None:
    state: Any = {"big": [1, 2], "a": {"b": 1, "c": {}}}
    made: Any = put(state, ("a", "b"), 2)
    assert made["big"] is state["big"]
    assert made["a"]["c"] is state["a"]["c"]
