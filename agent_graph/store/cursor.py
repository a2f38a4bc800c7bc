"""Opaque page cursors: the key of the last row shown, so that rows added meanwhile move nothing; holds no policy."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from agent_graph.core.jsonvalue import JsonValue, canonical, parse_json
from agent_graph.errors import InvalidArgument, InvalidRequest

_CURSOR_BYTES: Final = 4_096
_LARGEST_NUMBER: Final = 2**63 - 1

BRIEF_ROWS: Final = 200
"""A page of so many is read in a moment."""


def encode_cursor(family: str, key: JsonValue) -> str:
    """The cursor behind the row with `key` in the list of `family` (graphs, runs, approvals)."""
    return base64.urlsafe_b64encode(canonical([family, key])).decode().rstrip("=")


def number_of(family: str, cursor: str) -> int:
    """The number in a cursor of `family`; raises `InvalidArgument` for anything else."""
    key = _decode(family, cursor)
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key <= _LARGEST_NUMBER:
        return key
    raise _malformed(cursor)


def text_of(family: str, cursor: str) -> str:
    """The text in a cursor of `family`; raises `InvalidArgument` for anything else."""
    key = _decode(family, cursor)
    if isinstance(key, str):
        return key
    raise _malformed(cursor)


def check_limit(limit: int) -> int:
    """`limit` if a page can have that many rows; raises `InvalidArgument`."""
    if limit < 1:
        raise InvalidArgument(f"limit must be at least 1, not {limit}.", argument="limit")
    return limit


def _decode(family: str, cursor: str) -> JsonValue:
    try:
        data = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        value = parse_json(data, max_bytes=_CURSOR_BYTES, max_depth=1)
    except (UnicodeEncodeError, binascii.Error, InvalidRequest):
        raise _malformed(cursor) from None
    if isinstance(value, list) and len(value) == 2 and value[0] == family:
        return value[1]
    raise _malformed(cursor)


def _malformed(cursor: str) -> InvalidArgument:
    return InvalidArgument(
        f"{cursor[:40]!r} is no cursor of this list; pass next_cursor of an earlier answer, or none.", argument="cursor"
    )
