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


if __name__ == "__main__":
    point, nth, *arguments = sys.argv[1:]
    if point in STATEMENTS:
        watch_statements(STATEMENTS[point], Fate(int(nth)))
    elif point != "nowhere":
        watch_commits(Fate(int(nth)), before=point == "after the effect, before the commit")
    asyncio.run(main(*arguments))
