"""Runs as rows: one by its id, or a page of a list; reads only, and no event."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import RunNotFound, StoreCorrupt
from agent_graph.store import row_seals
from agent_graph.store.base import RunRow
from agent_graph.store.columns import json_object, json_text, json_value, where
from agent_graph.store.cursor import encode_cursor, number_of

# runs as lists show them, newest first
LIST: Final = f"""
SELECT run_no, run_id, graph_id, graph_version, thread_id, status, seq, created_at_ms, started_at_ms, finished_at_ms,
       wake_at_ms, pinned, first_seq, principal, forked_from, error, final_state, usage, budget,
       {row_seals.holds("runs", "made_seal")} AND {row_seals.holds("runs")}
FROM runs {{where}} ORDER BY run_no DESC LIMIT :fetched"""
IS: Final = "run_id = :run_id"
HAS_STATUS: Final = "status IN (SELECT value FROM json_each(:statuses))"
OF_GRAPH: Final = "graph_id = :graph_id"
OF_THREAD: Final = "thread_id = :thread_id AND thread_id <> ''"
OF_PRINCIPAL: Final = "principal = :principal"
BEFORE: Final = "run_no < :before"


def find_row(run_id: str, connection: sqlite3.Connection, *, principal: str = "") -> RunRow:
    """The row of a run; raises `RunNotFound`, with `principal` also where another has started it, and `StoreCorrupt`
    for one that is not what was written."""
    wanted = [IS, OF_PRINCIPAL] if principal else [IS]
    rows = _select(wanted, {"run_id": run_id, "principal": principal, "fetched": 1}, connection)
    if not rows:
        raise not_found(run_id)
    if rows[0][1].damaged:
        raise row_seals.damaged("runs", run_id)
    return rows[0][1]


def list_rows(
    connection: sqlite3.Connection, *, statuses: Sequence[str], graph_id: str, thread_id: str, principal: str,
    limit: int, cursor: str | None,
) -> tuple[list[RunRow], str | None]:  # fmt: skip
    """Up to `limit` rows, and the cursor behind the last where there are more; "" and () filter nothing."""
    values: dict[str, Any] = {"statuses": json_text(list(statuses)), "graph_id": graph_id, "thread_id": thread_id}
    values |= {"principal": principal, "fetched": limit + 1}
    if cursor is not None:
        values["before"] = number_of("runs", cursor)
    wanted = (
        (HAS_STATUS, statuses), (OF_GRAPH, graph_id), (OF_THREAD, thread_id), (OF_PRINCIPAL, principal),
        (BEFORE, cursor is not None),
    )  # fmt: skip
    rows = _select([condition for condition, given in wanted if given], values, connection)
    following = encode_cursor("runs", rows[limit - 1][0]) if len(rows) > limit else None
    return [row for _, row in rows[:limit]], following


def _select(
    conditions: Sequence[str], values: Mapping[str, Any], connection: sqlite3.Connection
) -> list[tuple[int, RunRow]]:
    rows = connection.execute(LIST.format(where=where(conditions)), values)
    return [(row[0], _row(row[1:])) for row in rows]


def _row(columns: tuple[Any, ...]) -> RunRow:
    *plain, wake_at_ms, pinned, first_seq, principal, forked, error, final_state, usage, budget, holds = columns
    if not holds:
        run_id = str(plain[0])
        said: JsonObject = {"code": StoreCorrupt.code, "message": row_seals.damaged("runs", run_id).message}
        return RunRow(run_id, "", "", "", "interrupted", 0, 0, error=said, damaged=True)
    return replace(
        RunRow(*plain),
        pinned=bool(pinned),
        first_seq=first_seq,
        error=None if error is None else json_object(error),
        final_state=() if final_state is None else (json_value(final_state),),
        usage=json_object(usage),
        budget={} if budget is None else json_object(budget),
        wake_at_ms=wake_at_ms,
        principal=principal,
        forked_from={} if forked is None else json_object(forked),
    )


def not_found(run_id: str) -> RunNotFound:
    return RunNotFound(f"There is no run {run_id}.", run_id=run_id)
