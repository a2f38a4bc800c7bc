"""Where answers of models are recorded that may be used again; holds no answer, only which event does."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Final

from agent_graph.store import row_seals
from agent_graph.store.db import Database

MOST_ANSWERS: Final = 10_000

# which event holds the answer
FIND: Final = f"""
SELECT runs.run_id, answers.seq, {row_seals.holds("answers")} FROM answers JOIN runs USING (run_no) WHERE key = ?"""
# remembers one, as the newest
REMEMBER: Final = """
INSERT OR REPLACE INTO answers (answer_no, key, run_no, seq, row_seal)
SELECT (SELECT coalesce(max(answer_no), 0) + 1 FROM answers), ?1, run_no, ?2, row_seal('answers.row_seal', ?1, ?3, ?2)
FROM runs WHERE run_id = ?3"""
# forgets those that are too many, oldest first
FORGET: Final = "DELETE FROM answers WHERE answer_no <= (SELECT max(answer_no) FROM answers) - ?"


class SqliteAnswers:
    """`base.AnswerStore` over a `Database`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: str) -> tuple[str, int] | None:
        return await self._database.read(partial(_find, key))

    async def remember(self, key: str, run_id: str, seq: int) -> None:
        await self._database.write(partial(_remember, key, run_id, seq))


def _find(key: str, connection: sqlite3.Connection) -> tuple[str, int] | None:
    found = connection.execute(FIND, (key,)).fetchone()
    if found is None:
        return None
    run_id, seq, holds = found
    if not holds:
        raise row_seals.damaged("answers", key)
    return str(run_id), int(seq)


def _remember(key: str, run_id: str, seq: int, connection: sqlite3.Connection) -> None:
    connection.execute(REMEMBER, (key, seq, run_id))
    connection.execute(FORGET, (MOST_ANSWERS,))
