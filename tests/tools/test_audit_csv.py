"""The log as CSV holds nothing a spreadsheet would calculate with, whichever sign it separates cells by."""

from __future__ import annotations

import csv
import io
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.tools.audit import COLUMNS, as_csv
from tests.sizes import size

BEGINS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
"""What a formula can begin with: the four signs, in full width and small form too."""


def cells(text: str) -> list[str]:
    """All cells as spreadsheets find them: by each separator, with quotes heeded and without."""
    found = []
    for sign in (",", ";", "\t"):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign):
            found += row
    for sign in (";", "\t"):
        for line in text.splitlines():
            found += [cell.strip().strip('"').strip() if cell.strip()[:1] == '"' else cell for cell in line.split(sign)]
    return found


def note_of(text: str) -> str:
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    return row["note"]


@pytest.mark.parametrize(("note", "kept"), [
    ("=1+1", "'=1+1"), ("\uff1dcmd|' /C calc'!A0", "'\uff1dcmd|' /C calc'!A0"), ("+1", "'+1"),
    ("\uff20SUM(A1)", "'\uff20SUM(A1)"),
    ('x;=HYPERLINK("http://evil")', "x;'=HYPERLINK(\"http://evil\")"), ('x;"=1"', "x;\"'=1\""), ("x; \t=1", "x; \t'=1"),
    ("a\n=1", "a\n'=1"), ("\t1", "'\t1"), (" =1", " '=1"),
    ("a-b = c; d", "a-b = c; d"), ("well, -5 degrees", "well, -5 degrees"),
    ("fine", "fine"), ("", ""),
])  # fmt: skip
def test_what_would_be_calculated_has_an_apostrophe_in_front(note: str, kept: str) -> None:
    assert note_of(as_csv([{"note": note}])) == kept


texts = st.text(alphabet=[*BEGINS, ";", ",", '"', "'", " ", "\t", "\n", "\r", "\u2028", "a", "1", "|"], max_size=12)


@given(texts, texts)
@settings(max_examples=size(300, 20_000), deadline=None)
def test_no_cell_of_any_reading_begins_a_formula(note: str, by: str) -> None:
    rows: list[Any] = [{"note": note, "by": by, "at": "2026-01-31T12:00:00Z"}]
    for cell in cells(as_csv(rows)):
        assert not cell.strip().startswith(tuple(BEGINS)), (note, by, cell)


@given(texts)
@settings(max_examples=size(100, 5_000), deadline=None)
def test_a_table_has_its_columns_whatever_stands_in_it(note: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv([{"note": note}]), newline="")))
    assert [len(row) for row in rows] == [len(COLUMNS)] * 2


def test_a_long_note_takes_no_longer_than_it_should() -> None:
    began = time.process_time()
    for note in ("\n" * 200_000, "; " * 100_000, '"' * 200_000, "\n-" * 100_000):
        as_csv([{"note": note}])
    assert time.process_time() - began < 5
