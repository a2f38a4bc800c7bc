"""core.reply: thinking kept apart, and one JSON value found without a guess."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from agent_graph.core.reply import all_thinking, is_closed, leading_thinking, read_json
from agent_graph.errors import InputInvalid, InvalidRequest


@pytest.mark.parametrize(
    ("text", "content", "thinking"),
    [
        ("plain", "plain", ""),
        ("  plain ", "  plain ", ""),
        ("<think>a</think>b", "b", "a"),
        ("\n<think>a</think>\n\n<think>b</think>\nc", "c", "a\nb"),
        ("<think>never closed", "", "never closed"),
        ("a</think>\nb", "b", "a"),
        ("b <think>a</think>", "b <think>a</think>", ""),
        ('{"a":"</think>"}', '{"a":"</think>"}', ""),
        ("<think>a</think>b</think>", "b</think>", "a"),
    ],
)
def test_leading_thinking_is_taken_off(text: str, content: str, thinking: str) -> None:
    assert leading_thinking(text) == (content, thinking)


@pytest.mark.parametrize(
    ("text", "content", "thinking"),
    [
        ("<think>a</think>b <think>c</think>d", "b d", "a\nc"),
        ("b <think>c</think>d", "b d", "c"),
        ("the tag <think> opens it", "the tag <think> opens it", ""),
        ("b<think>c</think> and <think> again", "b and <think> again", "c"),
    ],
)
def test_all_closed_blocks_are_taken_out(text: str, content: str, thinking: str) -> None:
    assert all_thinking(text) == (content, thinking)


def test_a_hundred_thousand_tags_take_no_time() -> None:
    start = time.perf_counter()
    all_thinking("x" + "<think>" * 100_000)
    all_thinking("<think></think>" * 100_000)
    all_thinking("x" + "<think></think>" * 100_000)
    all_thinking("<think>" * 100_000 + "</think>" * 100_000)
    read_json_fails("[" * 100_000)
    read_json_fails('["' + '\\"' * 100_000)
    assert time.perf_counter() - start < 2


def read_json_fails(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_json(text, inside=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no bracket",
        '{"a":1} {"a":2}',
        "{\n{\n1}",
        "{ unclosed",
        'so } {"a":1}',
        '{"a":}',
        '{"a":1} or [2]',
        '"{"'[:-1],
    ],
)
def test_what_is_not_exactly_one_value_is_refused(text: str) -> None:
    read_json_fails(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('Here: {"a":"}{"} done', {"a": "}{"}),
        ('```\n[1, {"b": "\\"]"}]\n```', [1, {"b": '"]'}]),
    ],
)
def test_brackets_in_strings_do_not_count(text: str, value: object) -> None:
    assert read_json(text, inside=True) == value
    with pytest.raises(InputInvalid):
        read_json(text, inside=False)


def test_a_text_full_of_escapes_is_looked_at_in_bounded_memory() -> None:
    text = 'so: {"a":"' + "\\" * 1_000_000
    tracemalloc.start()
    try:
        read_json_fails(text)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    finally:
        tracemalloc.stop()


def test_only_values_that_show_their_end_are_closed() -> None:
    assert [is_closed(value) for value in ({}, [], "", 1, 1.5, True, None)] == [True] * 3 + [False] * 4
