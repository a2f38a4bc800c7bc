"""RFC 3339 moments as milliseconds, checked against the standard library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core.moments import looks_like_moment, read_moment

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.datetimes(), st.integers(-1439, 1439))
def test_it_is_the_same_moment_for_the_standard_library(naive: datetime, minutes: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert read_moment(moment.isoformat()) == (moment - EPOCH) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00.0019z", 1),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1969-12-31T23:59:59-00:01", 59_000),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("2024-02-29T12:00:00Z", 1_709_208_000_000),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
    ],
)
def test_forms_of_the_rfc(text: str, at_ms: int) -> None:
    assert read_moment(text) == at_ms


@pytest.mark.parametrize(
    "text",
    [
        "", "soon", "2026-01-31", "2026-01-31T12:00:00", "2026-1-31T12:00:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-04-31T00:00:00Z", "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:61Z",
        "2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00+01", "2026-01-31T12:00:00.Z", " 2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00Z\n", "\u0662026-01-31T12:00:00Z",
    ],
)  # fmt: skip
def test_what_is_no_moment(text: str) -> None:
    assert read_moment(text) is None


def test_a_date_is_told_from_a_path() -> None:
    assert looks_like_moment("2026-01")
    assert not any(map(looks_like_moment, ("due", "plan.2026-01", "2026", "/2026-01-31", "20260131")))
