"""What SQLite's errors mean to us; opens and reads no database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from agent_graph.errors import StoreBusy, StoreCorrupt, StoreFull, StoreUnusable
from agent_graph.store.folder import is_full

BUSY_MS: Final = 5_000
"""How long another program that holds the database is waited for."""
_WRITES: Final = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_SHMSIZE)
"""How SQLite tells of a quota or a limit on a file's size, and of a real fault of the disk: only for ``ENOSPC`` does it
say that it is full."""


def corrupt(path: Path | None, check: str) -> StoreCorrupt:
    """The error for a damaged database: the file, the check that failed and what to do."""
    return StoreCorrupt(
        f"The database {path or 'in memory'} is damaged ({check}). It was left as it is: move it away and put a copy "
        "of it back, or start with another data folder.",
        path=str(path or ""),
        check=check,
    )


def store_error(error: sqlite3.Error, path: Path | None) -> Exception:
    """Our error for one of SQLite's, by its primary result code; one that is a bug of ours stays as it is."""
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    where = str(path or "in memory")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return corrupt(path, str(error))
    if code == sqlite3.SQLITE_FULL or (extended in _WRITES and path is not None and is_full(path)):
        return StoreFull(f"No space is left for the database {where}; nothing was written. Make room and try again.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"The database {where} was held by another program for {BUSY_MS // 1000} s; nothing was written. Try again."
        )
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreUnusable(f"The database {where} cannot be used: {error}. Check the disk and the file's owner.")
    return error


def is_busy(error: BaseException) -> bool:
    """Another program holds the database."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )
