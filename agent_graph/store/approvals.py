"""Approvals as they are listed and asked for; written only with the commit of their run, and never decided here."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final, cast

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import ApprovalIntegrityFailure, ApprovalNotFound
from agent_graph.store.base import ApprovalRow
from agent_graph.store.columns import json_object, json_text, strings, where
from agent_graph.store.cursor import BRIEF_ROWS, check_limit, encode_cursor, number_of
from agent_graph.store.db import Database

# keeps an approval as it is now; its place in the list stays
KEEP: Final = """
INSERT INTO approvals (approval_id, run_no, status, created_at_ms, expires_at_ms, audience, body, row_seal)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, row_seal('approvals.row_seal', ?1, ?8, ?3, ?4, ?5, ?6, ?7))
ON CONFLICT (approval_id) DO UPDATE
SET status = excluded.status, expires_at_ms = excluded.expires_at_ms, body = excluded.body,
    row_seal = excluded.row_seal"""
# approvals with the status they have at :now_ms, oldest first
LIST: Final = """
SELECT *, row_holds(row_seal, 'approvals.row_seal', approval_id, run_id, stored_status, created_at_ms, expires_at_ms,
                    audience, body)
FROM (
    SELECT a.approval_no, a.approval_id, r.run_id, a.created_at_ms, a.expires_at_ms, a.audience, a.body,
        CASE WHEN a.status = 'pending' AND a.expires_at_ms <= :now_ms THEN 'expired' ELSE a.status END AS status,
        a.status AS stored_status, r.principal, r.graph_id, a.row_seal
    FROM approvals AS a LEFT JOIN runs AS r USING (run_no)
) {where} ORDER BY approval_no LIMIT :fetched"""
IS: Final = "approval_id = :approval_id"
OF_RUN: Final = "run_id = :run_id"
OF_GRAPH: Final = "graph_id = :graph_id"
HAS_STATUS: Final = "status IN (SELECT value FROM json_each(:statuses))"
STORED_PENDING: Final = "stored_status = 'pending'"  # lets the index of pending ones be used
FOR_AUDIENCE: Final = "EXISTS (SELECT 1 FROM json_each(audience) WHERE value = :audience)"
OF_PRINCIPAL: Final = "principal = :principal"
AFTER: Final = "approval_no > :after"

_COLUMNS: Final = ("approval_id", "run_id", "status", "created_at_ms", "expires_at_ms", "audience")
_LISTS: Final = ("allowed_decisions", "channels", "votes")
_MARK: Final = ("damaged",)
_BODY: Final = tuple(one.name for one in fields(ApprovalRow) if one.name not in (*_COLUMNS, *_MARK))
_BEFORE_ALL_TIME_MS: Final = -1


class SqliteApprovals:
    """`base.ApprovalStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, approval_id: str, *, principal: str = "", now_ms: int | None = None) -> ApprovalRow:
        values = {"approval_id": approval_id, "principal": principal, "now_ms": _now(now_ms), "fetched": 1}
        wanted = [IS, OF_PRINCIPAL] if principal else [IS]
        rows = await self._database.read(partial(_select, wanted, values), brief=True)
        if not rows:
            raise ApprovalNotFound(f"There is no approval {approval_id}.", approval_id=approval_id)
        if rows[0][1].damaged:
            raise _damaged(approval_id)
        return rows[0][1]

    async def list(
        self,
        *,
        run_id: str = "",
        graph_id: str = "",
        statuses: Sequence[str] = (),
        audience: str = "",
        principal: str = "",
        now_ms: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[tuple[ApprovalRow, ...], str | None]:
        values: dict[str, Any] = {"now_ms": _now(now_ms), "fetched": check_limit(limit) + 1, "run_id": run_id}
        values.update(statuses=json_text(list(statuses)), audience=audience, principal=principal, graph_id=graph_id)
        if cursor is not None:
            values["after"] = number_of("approvals", cursor)
        wanted = (
            (OF_RUN, run_id),
            (OF_GRAPH, graph_id),
            (HAS_STATUS, statuses),
            (STORED_PENDING, set(statuses) == {"pending"}),
            (FOR_AUDIENCE, audience),
            (OF_PRINCIPAL, principal),
            (AFTER, cursor is not None),
        )
        conditions = [condition for condition, given in wanted if given]
        rows = await self._database.read(partial(_select, conditions, values), brief=limit <= BRIEF_ROWS)
        approvals = tuple(row for _, row in rows[:limit])
        return approvals, encode_cursor("approvals", rows[limit - 1][0]) if len(rows) > limit else None


def keep(row: ApprovalRow, run_no: int, connection: sqlite3.Connection) -> None:
    """Write `row` within the commit of the run `run_no`."""
    body: JsonObject = {name: getattr(row, name) for name in _BODY}
    body.update({name: list(getattr(row, name)) for name in _LISTS})
    connection.execute(
        KEEP,
        (
            row.approval_id,
            run_no,
            row.status,
            row.created_at_ms,
            row.expires_at_ms,
            json_text(list(row.audience)),
            json_text(body),
            row.run_id,
        ),
    )


def _damaged(approval_id: str) -> ApprovalIntegrityFailure:
    return ApprovalIntegrityFailure(
        f"The row of approval {approval_id} is not what this program wrote: something else has changed the database. "
        "Nothing of it is told, and it cannot be decided: put a copy of the database back, or cancel its run.",
        approval_id=approval_id,
    )


def _now(now_ms: int | None) -> int:
    return _BEFORE_ALL_TIME_MS if now_ms is None else now_ms


def _select(
    conditions: Sequence[str], values: Mapping[str, Any], connection: sqlite3.Connection
) -> list[tuple[int, ApprovalRow]]:
    rows = connection.execute(LIST.format(where=where(conditions)), values)
    return [(row[0], _row(row[1:8]) if row[-1] else _unreadable(str(row[1]), str(row[2] or ""))) for row in rows]


def _unreadable(approval_id: str, run_id: str) -> ApprovalRow:
    return ApprovalRow(
        approval_id, run_id, "", "", "", "", 1, (), "", None, "", (), 1, (), "pending", 0, 0, damaged=True
    )


def _row(columns: tuple[Any, ...]) -> ApprovalRow:
    approval_id, run_id, created_at_ms, expires_at_ms, audience, body, status = columns
    found = cast("dict[str, Any]", json_object(body))
    found.update({name: tuple(found[name]) for name in _LISTS})
    return ApprovalRow(
        approval_id=approval_id,
        run_id=run_id,
        status=status,
        created_at_ms=created_at_ms,
        expires_at_ms=expires_at_ms,
        audience=strings(audience),
        **found,
    )
