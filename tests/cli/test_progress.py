"""What is told of a run, line by line, and that nothing in it moves a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.cli.output import one_line, plain, table
from agent_graph.cli.progress import ROWS, View, saying, told


def test_whatever_a_terminal_obeys_is_taken_out_but_newlines_and_tabs() -> None:
    every = "".join(map(chr, [*range(0x20), 0x7F, *range(0x80, 0xA0), 0x202E, 0x2066, 0x200F]))
    assert plain(f"a{every}b") == "a\t\nb"
    assert plain("\u00fcber\u2026 \U0001f600") == "\u00fcber\u2026 \U0001f600"
    assert plain("\udcff") == "?"


def test_a_line_is_one_line_and_fits() -> None:
    assert one_line(" a\n\tb \x1b[2J c ") == "a b [2J c"
    assert one_line("abcdefgh", 6) == "abc..."


def test_a_table_has_columns_and_none_without_rows() -> None:
    assert table([("a", 1), ("long\nname", 22)], head=("NAME", "N")) == "NAME       N\na          1\nlong name  22\n"
    assert table([], head=("NAME",)) == ""


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"type": "node_started", "firing": "a#1"}, "a  started"),
        ({"type": "node_started", "firing": "a#2", "attempt": 3}, "a (2)  started again (attempt 3)"),
        ({"type": "node_failed", "firing": "a#1", "error": {"code": "X", "message": "y\nz"}}, "a  failed, X: y z"),
        ({"type": "cache_hit", "firing": "a#1", "run_id": "run-1"}, "a  takes the answer of run-1"),
        ({"type": "tool_called", "firing": "a#1", "name": "f", "connection": "weather", "tool": "forecast"},
         "a  calls weather/forecast"),
        ({"type": "tool_called", "firing": "a#1", "name": "rm"}, "a  calls rm, which there is not"),
        ({"type": "tool_answered", "firing": "a#1", "text": "rain"}, "a  is told: rain"),
        ({"type": "tool_answered", "firing": "a#1", "text": "no", "failed": True, "code": "TOOL_FAILED"},
         "a  is told that the call failed (TOOL_FAILED): no"),
        ({"type": "route_taken", "firing": "r#1", "transition": "rules/0", "targets": ["b"]}, "r  goes rules/0 -> b"),
        ({"type": "loop_exhausted", "firing": "l#4", "count": 3}, "l (4)  has gone round 3 times, the most it may"),
        ({"type": "firing_cancelled", "firing": "a#1", "reason": "late"}, "a  cancelled: late"),
        ({"type": "approval_reminded", "firing": "g#1"}, "g  is not decided yet, and its time is nearly over"),
        ({"type": "approval_expired", "firing": "g#1"}, "g  was not decided in time"),
        ({"type": "approval_withdrawn", "firing": "g#1"}, "g  asks no longer"),
        ({"type": "write_conflict", "firing": "j#1", "key": "k", "winner": "a#1"}, "j  two branches wrote k; a#1 wins"),
        ({"type": "run_interrupted", "reason": "gone"}, "interrupted: gone"),
        ({"type": "run_resumed"}, "goes on"),
        ({"type": "warning", "firing": "a#1", "code": "C", "message": "\x1b[2Jm"}, "a  C: [2Jm"),
        ({"type": "run_accepted", "input": "x"}, ""),
        ({"type": "something_new"}, ""),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_an_event_is_told_in_one_line(item: Any, line: str) -> None:
    assert told(item) == line


def test_lines_carry_the_time_since_the_start_and_the_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    view = View()
    view.show({"type": "node_started", "seq": 2, "at_ms": 1_000, "firing": "a#1"})
    view.show({"type": "model_delta", "number": 1, "firing": "a#1", "kind": "text", "text": "hm"})
    view.show({"type": "model_answered", "seq": 3, "at_ms": 3_400, "firing": "a#1", "answer": {"completion_tokens": 7}})
    view.show({"type": "node_finished", "seq": 4, "at_ms": 3_500, "firing": "a#1"})
    assert capsys.readouterr().err == "    0.0 s  a  started\n    2.5 s  a  done after 2.5 s, 7 tokens\n"


def test_the_last_words_of_every_node_share_the_room() -> None:
    assert saying({"a#1": ""}, width=40) == "a: ..."
    assert saying({"a#1": "one\ntwo\n"}, width=40) == "a: one\n   two"
    many = saying({f"n{number}#1": "x\n" * 9 for number in range(20)}, width=40).splitlines()
    assert len(many) == ROWS
    long = saying({"a#1": "x" * 1_000}, width=43).splitlines()
    assert len(long) == ROWS
    assert {len(row) for row in long} == {43}
