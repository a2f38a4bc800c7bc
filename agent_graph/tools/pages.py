"""A page of a list: at most so many rows, and no more than fit into an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from agent_graph.core.jsonvalue import JsonObject, JsonValue, size
from agent_graph.core.limits import Limits

SPARE_BYTES: Final = 4_096
"""Bytes of an answer around its rows, and for what is said of cuts."""

Row = TypeVar("Row")


async def page(
    fetch: Callable[[int], Awaitable[tuple[Sequence[Row], str | None]]],
    view: Callable[[Row], JsonObject],
    *,
    limit: int,
    limits: Limits,
) -> tuple[list[JsonValue], str | None]:
    """Up to `limit` rows as `view` shows them, and the cursor behind the last; at least one row where there is one."""
    found, cursor = await fetch(min(limit, limits.page))
    rows: list[JsonValue] = [view(row) for row in found]
    room = limits.result_bytes - SPARE_BYTES
    fit = 0
    for row in rows:
        room -= size(row) + 1
        if room < 0:
            break
        fit += 1
    if fit == len(rows):
        return rows, cursor
    found, cursor = await fetch(max(1, fit))
    return [view(row) for row in found], cursor
