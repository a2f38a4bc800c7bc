"""Graphs by id and immutable version; reads no spec, only keeps it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import partial
from typing import Any, Final

from agent_graph.errors import GraphInUse, GraphNotFound, GraphVersionConflict, GraphVersionNotFound
from agent_graph.store import row_seals
from agent_graph.store.base import TERMINAL, Answered, GraphRow
from agent_graph.store.columns import json_object, json_text, where
from agent_graph.store.cursor import check_limit, encode_cursor, text_of
from agent_graph.store.db import Database
from agent_graph.store.outcomes import ORIGIN
from agent_graph.store.requests import check_new, reserve

# which version a name stands for, and whether it is hidden
CURRENT: Final = f"SELECT graph_version, hidden, {row_seals.holds('graphs')} FROM graphs WHERE graph_id = ?"
# keeps a version; one that is there already stays untouched
KEEP_VERSION: Final = """
INSERT INTO graph_versions (graph_id, graph_version, description, node_count, edge_count, stored_at_ms, content, spec,
                            compiled, row_seal)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, row_seal('graph_versions.row_seal', ?1, ?2, ?3, ?4, ?5, ?6, ?7))
ON CONFLICT (graph_id, graph_version) DO NOTHING"""
# makes a version the current one of its id, and shows the graph again
POINT: Final = """
INSERT INTO graphs (graph_id, graph_version, updated_at_ms, hidden, row_seal)
VALUES (?1, ?2, ?3, 0, row_seal('graphs.row_seal', ?1, ?2, ?3, 0))
ON CONFLICT (graph_id) DO UPDATE
SET graph_version = excluded.graph_version, updated_at_ms = excluded.updated_at_ms, hidden = 0,
    row_seal = excluded.row_seal"""
# hides a graph; its versions stay
HIDE: Final = f"""
UPDATE graphs SET hidden = 1, row_seal = {row_seals.resealing("graphs", {"hidden": "1"})} WHERE graph_id = ?"""
# runs of a graph that have not ended
LIVE_RUNS: Final = """
SELECT run_id FROM runs WHERE graph_id = ? AND status NOT IN (SELECT value FROM json_each(?)) ORDER BY run_no"""
# the current version of a graph that is not hidden, whole
READ_CURRENT: Final = f"""
SELECT graph_versions.graph_id, graph_versions.graph_version, description, node_count, edge_count, updated_at_ms, spec,
    compiled, content, {row_seals.holds("graphs")} AND {row_seals.holds("graph_versions")}
FROM graphs LEFT JOIN graph_versions USING (graph_id, graph_version)
WHERE graphs.graph_id = ? AND (NOT hidden OR NOT {row_seals.holds("graphs")})"""
# one version, whole, whether its graph is hidden or not
READ_VERSION: Final = f"""
SELECT graph_id, graph_version, description, node_count, edge_count, stored_at_ms, spec, compiled, content,
    {row_seals.holds("graph_versions")}
FROM graph_versions WHERE graph_id = ? AND graph_version = ?"""
# whether a version is there; whether it is what was written is seen by whoever reads it
IS_STORED: Final = "SELECT 1 FROM graph_versions WHERE graph_id = ? AND graph_version = ?"
# whether any version of the id was ever stored
KNOWN: Final = "SELECT 1 FROM graphs WHERE graph_id = ?"
# all versions of an id, the one stored last first
VERSIONS: Final = f"""
SELECT graph_id, graph_version, description, node_count, edge_count, stored_at_ms, {row_seals.holds("graph_versions")}
FROM graph_versions WHERE graph_id = ? ORDER BY version_no DESC"""
# current versions by id, a page at a time
LIST: Final = f"""
SELECT graphs.graph_id, graphs.graph_version, description, node_count, edge_count, updated_at_ms,
    {row_seals.holds("graphs")} AND {row_seals.holds("graph_versions")}
FROM graphs LEFT JOIN graph_versions USING (graph_id, graph_version) {{where}}
ORDER BY graphs.graph_id LIMIT :fetched"""
SHOWN: Final = f"(NOT hidden OR NOT {row_seals.holds('graphs')})"
AFTER: Final = "graphs.graph_id > :after"
MATCHES: Final = "(instr(lower(graphs.graph_id), lower(:query)) OR instr(lower(description), lower(:query)))"


class SqliteGraphs:
    """`base.GraphStore` over a `Database`. `updated_at_ms` of a named version is when it was first stored."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(
        self, row: GraphRow, *, overwrite: bool, expected_version: str | None, answered: Answered | None = None
    ) -> bool:
        return await self._database.write(partial(_put, row, overwrite, expected_version, answered))

    async def get(self, graph_id: str, graph_version: str | None = None) -> GraphRow:
        return await self._database.read(partial(_get, graph_id, graph_version), brief=True)

    async def versions(self, graph_id: str) -> tuple[GraphRow, ...]:
        rows = await self._database.read(lambda connection: connection.execute(VERSIONS, (graph_id,)).fetchall())
        if not rows:
            raise _not_found(graph_id)
        return tuple(map(_listed, rows))

    async def list(
        self, *, query: str = "", limit: int = 50, cursor: str | None = None
    ) -> tuple[tuple[GraphRow, ...], str | None]:
        values: dict[str, Any] = {"query": query, "fetched": check_limit(limit) + 1}
        conditions = [SHOWN]
        if query:
            conditions.append(MATCHES)
        if cursor is not None:
            conditions.append(AFTER)
            values["after"] = text_of("graphs", cursor)
        sql = LIST.format(where=where(conditions))
        rows = await self._database.read(lambda connection: connection.execute(sql, values).fetchall())
        graphs = tuple(map(_listed, rows[:limit]))
        return graphs, encode_cursor("graphs", graphs[-1].graph_id) if len(rows) > limit else None

    async def delete(self, graph_id: str, answered: Answered | None = None) -> None:
        await self._database.write(partial(_delete, graph_id, answered))


def _put(
    row: GraphRow,
    overwrite: bool,
    expected_version: str | None,
    answered: Answered | None,
    connection: sqlite3.Connection,
) -> bool:
    check_new(answered, connection)
    found = connection.execute(CURRENT, (row.graph_id,)).fetchone()
    if found and not found[2]:
        raise row_seals.damaged("graphs", row.graph_id)
    current = found[0] if found and not found[1] else None
    changed = bool(current != row.graph_version)
    if changed:
        if expected_version is not None and expected_version != current:
            raise _conflict(row.graph_id, current, f"not {expected_version}")
        if current is not None and expected_version is None and not overwrite:
            raise _conflict(row.graph_id, current, "say overwrite to replace it")
        _keep(row, connection)
        connection.execute(POINT, (row.graph_id, row.graph_version, row.updated_at_ms))
    if row.origin is not None:
        connection.execute(ORIGIN, (row.graph_id, row.graph_version, *row.origin))
    reserve(answered, connection)
    return changed


def _keep(row: GraphRow, connection: sqlite3.Connection) -> None:
    columns = (row.description, row.node_count, row.edge_count, row.updated_at_ms)
    texts = (json_text(row.spec), json_text(row.compiled))
    connection.execute(KEEP_VERSION, (row.graph_id, row.graph_version, *columns, row_seals.content(*texts), *texts))


def _get(graph_id: str, graph_version: str | None, connection: sqlite3.Connection) -> GraphRow:
    if graph_version is None:
        found = connection.execute(READ_CURRENT, (graph_id,)).fetchone()
    else:
        found = connection.execute(READ_VERSION, (graph_id, graph_version)).fetchone()
    if found is None:
        if graph_version is None or connection.execute(KNOWN, (graph_id,)).fetchone() is None:
            raise _not_found(graph_id)
        raise version_not_found(graph_id, graph_version)
    *columns, spec, compiled, content, holds = found
    if not holds or content != row_seals.content(spec, compiled):
        raise row_seals.damaged(
            "graph_versions", f"{graph_id} {columns[1] if graph_version is None else graph_version}"
        )
    return replace(GraphRow(*columns), spec=json_object(spec), compiled=json_object(compiled))


def _listed(columns: tuple[Any, ...]) -> GraphRow:
    *plain, holds = columns
    return GraphRow(*plain) if holds else GraphRow(str(plain[0]), str(plain[1]), "", 0, 0, 0, damaged=True)


def _delete(graph_id: str, answered: Answered | None, connection: sqlite3.Connection) -> None:
    check_new(answered, connection)
    found = connection.execute(CURRENT, (graph_id,)).fetchone()
    if found is not None and not found[2]:
        raise row_seals.damaged("graphs", graph_id)
    if found is None or found[1]:
        raise _not_found(graph_id)
    live = [str(run_id) for (run_id,) in connection.execute(LIVE_RUNS, (graph_id, json_text([*TERMINAL])))]
    if live:
        raise GraphInUse(
            f"{len(live)} runs of graph {graph_id} have not ended, {live[0]} among them. Cancel them or let them end.",
            graph_id=graph_id,
            run_ids=live[:10],
        )
    connection.execute(HIDE, (graph_id,))
    reserve(answered, connection)


def version_not_found(graph_id: str, graph_version: str) -> GraphVersionNotFound:
    return GraphVersionNotFound(
        f"Graph {graph_id} has no version {graph_version}.", graph_id=graph_id, graph_version=graph_version
    )


def _not_found(graph_id: str) -> GraphNotFound:
    return GraphNotFound(f"There is no graph {graph_id}.", graph_id=graph_id)


def _conflict(graph_id: str, current: str | None, why: str) -> GraphVersionConflict:
    holds = f"holds version {current}" if current else "holds no version"
    return GraphVersionConflict(f"Graph {graph_id} {holds}: {why}.", graph_id=graph_id, current_version=current)
