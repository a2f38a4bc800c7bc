"""What runs came to, counted by graph version in the transaction that ends each; judges nothing.

Counts outlive their runs: retention takes records and, where it is told to forget, rows; what they came to stays.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from operator import add
from typing import Any, Final

from agent_graph.store import row_seals
from agent_graph.store.base import Outcome, RunRow
from agent_graph.store.db import Database

_SEAL: Final = "outcomes.row_seal"
WHICH: Final = "graph_id = ? AND graph_version = ? AND status = ? AND code = ?"
# what was counted so far
COUNTED: Final = f"""
SELECT runs, llm_calls, tokens, token_runs, wall_clock_ms, first_at_ms, last_at_ms, row_seal
FROM outcomes WHERE {WHICH}"""
# counts the first run that ended so
FIRST: Final = """
INSERT INTO outcomes (runs, llm_calls, tokens, token_runs, wall_clock_ms, first_at_ms, last_at_ms, row_seal,
                      graph_id, graph_version, status, code) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# counts one more
MORE: Final = f"""
UPDATE outcomes SET runs = ?, llm_calls = ?, tokens = ?, token_runs = ?, wall_clock_ms = ?, first_at_ms = ?,
                    last_at_ms = ?, row_seal = ? WHERE {WHICH}"""
# whether some origin is not what was written: then nobody can say which counts belong to what
DAMAGED_ORIGIN: Final = (
    f"SELECT graph_id || ' ' || graph_version FROM origins WHERE NOT {row_seals.holds('origins')} LIMIT 1"
)
DAMAGED: Final = f"SELECT graph_id, graph_version FROM outcomes WHERE NOT {row_seals.holds('outcomes')}"
# says of which template a version was made; the last word holds
ORIGIN: Final = """
INSERT INTO origins (graph_id, graph_version, template_id, template_version, row_seal)
VALUES (?1, ?2, ?3, ?4, row_seal('origins.row_seal', ?1, ?2, ?3, ?4))
ON CONFLICT (graph_id, graph_version) DO UPDATE
SET template_id = excluded.template_id, template_version = excluded.template_version, row_seal = excluded.row_seal"""
COLUMNS: Final = f"""
graph_id, graph_version, status, code, runs, llm_calls, tokens, token_runs, wall_clock_ms, first_at_ms, last_at_ms,
{row_seals.holds("outcomes")}"""
# what came of the graphs made of a template
OF_TEMPLATE: Final = """
SELECT {columns}, template_version FROM origins JOIN outcomes USING (graph_id, graph_version)
WHERE template_id = ? ORDER BY template_version, graph_id, graph_version, status, code"""
# what came of the current versions of graphs that were made of none
OF_OWN: Final = """
SELECT {columns}, '' FROM graphs JOIN outcomes USING (graph_id, graph_version)
WHERE NOT hidden AND NOT EXISTS (
    SELECT 1 FROM origins AS o WHERE o.graph_id = graphs.graph_id AND o.graph_version = graphs.graph_version)
ORDER BY graph_id, status, code"""


class SqliteOutcomes:
    """`base.OutcomeStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_template(self, template_id: str) -> tuple[Outcome, ...]:
        return await self._database.read(partial(_of_template, template_id))

    async def of_own_graphs(self) -> tuple[Outcome, ...]:
        return await self._database.read(_own)


def _select(sql: str, values: tuple[Any, ...], connection: sqlite3.Connection) -> tuple[Outcome, ...]:
    damaged = connection.execute(DAMAGED_ORIGIN).fetchone()
    if damaged is not None:
        raise row_seals.damaged("origins", str(damaged[0]))
    return tuple(map(_outcome, connection.execute(sql.format(columns=COLUMNS), values)))


def _own(connection: sqlite3.Connection) -> tuple[Outcome, ...]:
    """With every count that is damaged, whatever graph it now seems to be of."""
    found = [one for one in _select(OF_OWN, (), connection) if not one.damaged]
    rows = connection.execute(DAMAGED).fetchall()
    return (*found, *(_outcome((graph_id, version, False, "")) for graph_id, version in rows))


def _of_template(template_id: str, connection: sqlite3.Connection) -> tuple[Outcome, ...]:
    rows = connection.execute(DAMAGED).fetchall()
    if rows:  # it may be one of this template's
        raise row_seals.damaged("outcomes", " ".join(map(str, rows[0])))
    return _select(OF_TEMPLATE, (template_id,), connection)


def _outcome(columns: tuple[Any, ...]) -> Outcome:
    *counted, holds, template_version = columns
    if holds:
        return Outcome(*[*counted, template_version])
    named = (str(counted[0]), str(counted[1]))
    return Outcome(*named, "failed", "", 0, 0, 0, 0, 0, 0, 0, template_version, damaged=True)


def count(run: RunRow, seals: row_seals.RowSeals, connection: sqlite3.Connection) -> None:
    """Count a run that ends with the write this is part of."""
    usage: Any = run.usage
    told = (usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))
    known = "unknown" not in told
    ended_ms = run.created_at_ms if run.finished_at_ms is None else run.finished_at_ms
    took_ms = 0 if run.started_at_ms is None else max(0, ended_ms - run.started_at_ms)
    code = str((run.error or {}).get("code", "")) if run.status == "failed" else ""
    which = (run.graph_id, run.graph_version, run.status, code)
    mine = (1, usage.get("llm_calls", 0), sum(told) if known else 0, int(known), took_ms)
    before = connection.execute(COUNTED, which).fetchone()
    if before is None:
        counted = (*mine, ended_ms, ended_ms)
        connection.execute(FIRST, (*counted, seals.make(_SEAL, *which, *counted), *which))
        return
    *sums, first_ms, last_ms, seal = before
    counted = (*map(add, sums, mine), min(first_ms, ended_ms), max(last_ms, ended_ms))
    if seals.holds(seal, _SEAL, *which, *before[:-1]):  # what was wrong before does not become right
        seal = seals.make(_SEAL, *which, *counted)
    connection.execute(MORE, (*counted, seal, *which))
