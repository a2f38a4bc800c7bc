"""What the clock has to do with runs that nobody drives: the next one to look at, and when; changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from agent_graph.store.columns import json_text

# the first moment at which a pending approval expires, or a waiting run wakes, less some runs
NEXT: Final = """
SELECT at_ms, run_id FROM (
    SELECT * FROM (
        SELECT a.expires_at_ms AS at_ms, r.run_id FROM approvals AS a JOIN runs AS r USING (run_no)
        WHERE a.status = 'pending' AND r.run_id NOT IN (SELECT value FROM json_each(:left_out))
        ORDER BY a.expires_at_ms, a.approval_no LIMIT 1)
    UNION ALL
    SELECT * FROM (
        SELECT wake_at_ms AS at_ms, run_id FROM runs
        WHERE wake_at_ms IS NOT NULL AND status = 'waiting'
          AND run_id NOT IN (SELECT value FROM json_each(:left_out))
        ORDER BY wake_at_ms, run_no LIMIT 1)
) ORDER BY at_ms LIMIT 1"""


def next_wake(passing_over: Sequence[str], connection: sqlite3.Connection) -> tuple[int, str] | None:
    """(when in milliseconds UTC, run_id) of the run to look at next."""
    found: tuple[int, str] | None = connection.execute(NEXT, {"left_out": json_text(list(passing_over))}).fetchone()
    return found
