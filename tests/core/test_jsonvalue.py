"""Strict reading, canonical bytes and equality of JSON values."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core import jsonvalue
from agent_graph.core.jsonvalue import canonical, compact, digest, equality_key, json_equal, parse_json, size
from agent_graph.errors import AgentGraphError, InputInvalid, InputTooDeep, InputTooLarge

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SAFE_INTEGERS = st.integers(-(2**53) + 1, 2**53 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def values(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | numbers | TEXTS
    return st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))


def parse(text: str | bytes, max_bytes: int = 10**6, max_depth: int = 200) -> Any:
    return parse_json(text, max_bytes=max_bytes, max_depth=max_depth)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@given(values(SAFE_INTEGERS | FLOATS))
def test_canonical_bytes_are_those_of_rfc_8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(values(SAFE_INTEGERS))
def test_the_short_way_and_the_careful_way_write_the_same(value: Any) -> None:
    assert canonical(value) == jsonvalue._canonical_carefully(value).encode()


@given(values(st.integers() | FLOATS))
def test_what_is_written_canonically_reads_back_equal(value: Any) -> None:
    back = parse(canonical(value))
    assert canonical(back) == canonical(value)
    assert json_equal(parse(compact(value)), value)


def test_keys_are_in_utf_16_order() -> None:
    value: Any = {"\ufb33": 1, "\U0001f600": 2, "a": 3}
    assert canonical(value) == '{"a":3,"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (2**53 + 1, "9007199254740993"), (18446744073709551616, "18446744073709551616"), (10**400, "1" + "0" * 400),
        (-0.0, "0"), (1e-7, "1e-7"), (1.0, "1"), (1e21, "1e+21"), (0.1, "0.1"), (-5e-324, "-5e-324"), (True, "true"),
        ("v1.5", '"v1.5"'), ("é", '"é"'), ("\x01\n\x7f", '"\\u0001\\n\x7f"'), ([], "[]"), ({}, "{}"),
    ],
)  # fmt: skip
def test_numbers_and_texts_have_one_canonical_form(value: Any, written: str) -> None:
    assert canonical(value) == written.encode()


def test_a_digest_names_its_algorithm_and_ignores_key_order() -> None:
    assert digest({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert digest({"a": 1, "b": 2.0}) == digest({"b": 2, "a": 1.0})


@pytest.mark.parametrize("levels", [500, 20_000])
def test_depth_never_exhausts_the_interpreter(levels: int) -> None:
    value = nested(levels)
    written = canonical(value)
    assert len(written) == 1 + 2 * (levels // 2) + 6 * (levels // 2)
    assert compact(value).encode() == written
    assert size(value) == len(written)
    assert json_equal(value, nested(levels))
    assert equality_key(value).encode() == written


def test_compact_keeps_key_order_and_text_as_it_is() -> None:
    assert compact({"b": [1, 3.0, None], "a": "ü\U0001f600"}) == '{"b":[1,3.0,null],"a":"ü\U0001f600"}'
    assert size("ü") == 4
    assert jsonvalue.text_of('say "hi"') == 'say "hi"'
    assert jsonvalue.text_of(["x"]) == '["x"]'


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", {"\udc00\U0001f600": 1}, [10**5000]])
def test_what_is_no_json_value_has_no_canonical_bytes(value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical(value)


def test_integers_are_read_exactly_up_to_the_bound_and_refused_beyond() -> None:
    for text in ("9007199254740993", "1" + "0" * 400, "-" + "7" * 4300, "18446744073709551616"):
        assert str(parse(text)) == text
        assert canonical(parse(text)).decode() == text
    assert parse("-0") == 0
    assert isinstance(parse("-0"), int)
    with pytest.raises(InputInvalid, match="4300 digits"):
        parse("7" * 4301)


def test_floats_are_read_as_they_are_and_an_overflow_is_refused() -> None:
    assert parse("1e-7") == 1e-7
    assert parse("[1E2]") == [100.0]
    with pytest.raises(InputInvalid, match="1E400 is too large"):
        parse("[1E400]")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1, column 1"), ("{", "not JSON"), ("[1,]", "not JSON"), ("[1] x", "Extra data"),
        ("NaN", "NaN is not JSON"),
        ('{"a":-Infinity}', "-Infinity is not JSON"), ('{"a":1,"b":2,"a":3}', 'key "a" is given twice'),
        ('"\\ud800"', "surrogate"),
        ('{"x":{"\\uDC00":1}}', "surrogate"), ('"\ud800"', "surrogate"), (b'"\xff"', "not UTF-8 at byte 1"),
        ("'a'", "not JSON"),
        ('"\t"', "not JSON"), ("01", "not JSON"), ('"abc', "not JSON"), ("\ufeff1", "not JSON"),
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused_with_its_reason(text: str | bytes, says: str) -> None:
    with pytest.raises(InputInvalid, match=says) as caught:
        parse(text)
    assert caught.value.code == "INPUT_INVALID"


def test_a_byte_order_mark_before_bytes_is_no_content() -> None:
    assert parse(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


def test_an_escaped_pair_of_surrogates_is_one_character() -> None:
    assert parse('"\\ud83d\\ude00"') == "\U0001f600"
    assert parse('"é \U0001f600"'.encode()) == "é \U0001f600"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000, "[" * 201 + "]" * 201]
)
def test_deep_nesting_is_refused_before_it_is_followed(text: str) -> None:
    with pytest.raises(InputTooDeep) as caught:
        parse(text)
    assert caught.value.code == "INPUT_TOO_DEEP"
    assert caught.value.details == {"limit": 200}


def test_brackets_in_texts_and_side_by_side_are_no_depth() -> None:
    assert parse(json.dumps("[" * 500 + '"' + "{" * 500)) == "[" * 500 + '"' + "{" * 500
    assert parse("[" + ",".join(["[]"] * 500) + "]") == [[]] * 500
    assert parse("[" * 200 + "]" * 200)


def test_a_limit_above_what_the_parser_can_follow_still_ends_in_a_refusal() -> None:
    with pytest.raises(InputTooDeep):
        parse("[" * 200_000 + "]" * 200_000, max_depth=10**6)


@pytest.mark.parametrize("text", ['"' + "a" * 9 + '"', b'"' + b"a" * 9 + b'"', '"' + "é" * 5 + '"'])
def test_a_text_above_the_limit_is_refused(text: str | bytes) -> None:
    assert parse(text, max_bytes=12)
    with pytest.raises(InputTooLarge) as caught:
        parse(text, max_bytes=10)
    assert caught.value.code == "INPUT_TOO_LARGE"


def check(value: Any, max_depth: int = 5, max_bytes: int | None = None) -> None:
    jsonvalue.check_value(value, max_depth=max_depth, max_bytes=max_bytes)


@given(values(st.integers() | FLOATS))
def test_every_json_value_passes_the_check(value: Any) -> None:
    check(value, max_depth=100, max_bytes=10**6)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, "nan"), ([math.inf], "inf"), ([10**4300], "4300 digits"), ("\ud800", "surrogate"),
        ({"\udc00": 1}, "surrogate"),
        ({1: 2}, "key is a int"), ((1,), "tuple is not a JSON value"), ({"a": [b"x"]}, "bytes is not"),
    ],
)  # fmt: skip
def test_a_parsed_value_is_held_to_the_same_rules(value: Any, says: str) -> None:
    with pytest.raises(InputInvalid, match=says):
        check(value)


def test_a_parsed_value_is_bounded_in_depth_and_size() -> None:
    check(nested(5), max_bytes=100)
    with pytest.raises(InputTooDeep):
        check(nested(6))
    with pytest.raises(InputTooDeep):
        check(nested(100_000))
    with pytest.raises(InputTooLarge):
        check("éé", max_bytes=5)
    check("éé", max_bytes=6)


def test_a_value_that_contains_itself_is_too_deep() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InputTooDeep):
        check(loop)


@pytest.mark.parametrize(
    ("left", "right"),
    [(3, 3.0), (0, -0.0), (10**400, 10**400), ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}), (None, None), (True, True)],
)
def test_equal_values_are_equal(left: Any, right: Any) -> None:
    assert json_equal(left, right)
    assert json_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1), (False, 0), (0.0, False), (1, "1"), (None, False), ([1], [1, 2]), ([1], {"0": 1}), ({"a": 1}, [1]),
        ({"a": 1}, {"b": 1}), (2**53 + 1, float(2**53)), (10**400, 1e308), ("é", "e\u0301"), ([[1]], [[True]]),
        ([], None),
    ],
)  # fmt: skip
def test_different_values_are_different(left: Any, right: Any) -> None:
    assert not json_equal(left, right)
    assert not json_equal(right, left)


NEAR = values(st.sampled_from([0, 1, -0.0, 1.0, 10**21, 1e21, 2**53 + 1, float(2**53)]))


@given(NEAR, NEAR, NEAR)
def test_equality_is_an_equivalence_and_the_key_tells_the_same(a: Any, b: Any, c: Any) -> None:
    assert json_equal(a, a)
    assert json_equal(a, b) == json_equal(b, a)
    if json_equal(a, b) and json_equal(b, c):
        assert json_equal(a, c)
    assert (equality_key(a) == equality_key(b)) == json_equal(a, b)


def test_a_bool_is_no_number_and_a_number_must_fit() -> None:
    assert [jsonvalue.is_number(value) for value in (1, 1.5, True, "1", None)] == [True, True, False, False, False]
    fitting = (10**4300 - 1, -(10**4300) + 1, 1e308, 10**4300, -(10**4300), math.inf, math.nan)
    assert [jsonvalue.fits(value) for value in fitting] == [True, True, True, False, False, False, False]


def test_the_depth_of_a_text_full_of_escapes_is_found_in_bounded_memory() -> None:
    text = '["' + "\\" * 1_000_000 + "[" * 300
    tracemalloc.start()
    try:
        with pytest.raises(InputInvalid):
            parse(text, max_bytes=10**7)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    finally:
        tracemalloc.stop()


def test_every_refusal_is_one_of_ours() -> None:
    for text in ("[" * 10_000, "nul", "9" * 5_000, "-", "1e999", '{"a"', "\x00", "[1 2]"):
        with pytest.raises(AgentGraphError):
            parse(text)


def test_without_the_encoder_of_cpython_the_bytes_are_the_same() -> None:
    value = {"b": [1, 2.5, None, True, 'say "ü"'], "a": {"z": {}, "y": []}}
    for sort_keys in (True, False):
        with pytest.MonkeyPatch.context() as python:
            python.setattr(json.encoder, "c_make_encoder", None)
            slow = jsonvalue._encode(sort_keys=sort_keys)(value)
        assert jsonvalue._encode(sort_keys=sort_keys)(value) == slow
