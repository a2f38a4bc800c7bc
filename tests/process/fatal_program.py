"""The program that dies at a named point: as `chaos_program`, with SIGKILL to itself the n-th time it gets there.

``python fatal_program.py POINT NTH FOLDER OLLAMA_URL TAG...``. Most points are statements of the database, which tells
of each before it runs, in the middle of its transaction.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

from agent_graph.core import events as e
from agent_graph.store import sqlite
from agent_graph.store.base import Commit
from agent_graph.store.runs import SqliteRuns
from tests.process.chaos_program import main

STATEMENTS = {
    "inside a commit": "INSERT INTO events",
    "before its end": "COMMIT",
    "inside a snapshot": "INSERT OR REPLACE INTO snapshots",
    "inside the first migration": "CREATE TABLE events",
    "inside a later migration": "ALTER TABLE runs ADD COLUMN first_seq",
    "at the end of a migration": "PRAGMA user_version =",
}
ENDS = ("before the seal", "sealed, before the commit", "sealed and committed, nobody told")


class Fate:
    """Counts how often the point was reached."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def reached(self) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def watch_statements(text: str, fate: Fate) -> None:
    tune = sqlite.tune

    def tune_and_watch(synchronous: Any, connection: sqlite3.Connection) -> None:
        tune(synchronous, connection)
        connection.set_trace_callback(lambda said: fate.reached() if text in said else None)

    sqlite.tune = tune_and_watch


def watch_commits(fate: Fate, *, before: bool) -> None:
    """Die with an answer in hand that is not stored, or stored with nobody told."""
    commit: Callable[[SqliteRuns, Commit], Any] = SqliteRuns.commit

    async def fatal(runs: SqliteRuns, asked: Commit) -> int:
        answers = any(isinstance(event.fact, e.ModelAnswered) for event in asked.events)
        if before and answers:
            fate.reached()
        written: int = await commit(runs, asked)
        if not before and (answers or asked.create):
            fate.reached()
        return written

    SqliteRuns.commit = fatal  # type: ignore[method-assign]  # this is what the program is for


def watch_end(fate: Fate, point: str) -> None:
    """Die around the statement that ends a run and keeps its seal."""
    tune = sqlite.tune
    commit: Callable[[SqliteRuns, Commit], Any] = SqliteRuns.commit
    sealed = False

    def heard(said: str) -> None:
        nonlocal sealed
        sealed = sealed or "seal = '{" in said
        if sealed and (point == ENDS[0] or (point == ENDS[1] and said == "COMMIT")):
            fate.reached()

    def tune_and_watch(synchronous: Any, connection: sqlite3.Connection) -> None:
        tune(synchronous, connection)
        connection.set_trace_callback(heard)

    async def fatal(runs: SqliteRuns, asked: Commit) -> int:
        written: int = await commit(runs, asked)
        if point == ENDS[2] and asked.seal is not None:
            fate.reached()
        return written

    sqlite.tune = tune_and_watch
    SqliteRuns.commit = fatal  # type: ignore[method-assign]  # as above


if __name__ == "__main__":
    point, nth, *arguments = sys.argv[1:]
    if point in STATEMENTS:
        watch_statements(STATEMENTS[point], Fate(int(nth)))
    elif point in ENDS:
        watch_end(Fate(int(nth)), point)
    elif point != "nowhere":
        watch_commits(Fate(int(nth)), before=point == "after the effect, before the commit")
    asyncio.run(main(*arguments))
