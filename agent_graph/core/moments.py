"""Moments as RFC 3339 writes them, as milliseconds since 1970 UTC; knows no clock."""

from __future__ import annotations

import re
from typing import Final

_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAY_MS: Final = 86_400_000


def read_moment(text: str) -> int | None:
    """The milliseconds of ``2026-01-31T12:00:00Z`` and its like (RFC 3339, 5.6); None when `text` is no such moment.

    What is finer than a millisecond is cut off; a leap second is the second after it.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (month == 2 and _is_leap(year)):
        return None
    fraction, sign, hours, minutes = found.groups()[6:]
    offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1) if sign else 0
    of_day = ((hour * 60 + minute - offset) * 60 + second) * 1000 + int(f"{fraction or ''}000"[:3])
    return _days(year, month, day) * _DAY_MS + of_day


def looks_like_moment(text: str) -> bool:
    """Whether `text` is meant as a moment and not as a path: it starts as a date does."""
    return re.match(r"\d{4}-\d", text, re.ASCII) is not None


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar."""
    before = year - 1
    leaps = before // 4 - before // 100 + before // 400
    days = 365 * before + leaps + sum(_MONTH_DAYS[: month - 1]) + (month > 2 and _is_leap(year)) + day - 1
    return days - 719_162  # those of 0001-01-01 to 1970-01-01


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
