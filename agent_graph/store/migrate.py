"""What a database file is and how it gets to this program's schema: forwards only, all or nothing; never repairs.

Migrations are the files ``migrations/NNNN_name.sql``, numbered from 1 without a gap; ``user_version`` is the number
of the last one applied.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from agent_graph.errors import StoreForeign, StoreNewer
from agent_graph.store import row_seals
from agent_graph.store.db import BEGIN_WRITE, COMMIT, ROLLBACK
from agent_graph.store.sqlite_errors import corrupt

log = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x41475248
"""Written into the header of every database of ours (the letters AGRH)."""

SEALED_SINCE: Final = 12
"""The migration with which rows began to be sealed."""
_CONTENT: Final = "UPDATE graph_versions SET content = ? WHERE version_no = ?"
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_FULL_CHECK_BYTES: Final = 64 * 2**20
_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"  # every table there is
_FIRST_ROW = 'SELECT 1 FROM "{}" NOT INDEXED LIMIT 1'  # reads the root page of a table


def schema_version() -> int:
    """The schema this program writes."""
    return len(_files())


def inspect(path: Path | None, connection: sqlite3.Connection) -> int:
    """The schema number found, 0 for an empty database; reads only.

    Raises `StoreForeign`, `StoreNewer`, `StoreCorrupt` and sqlite3.Error.
    """
    application = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    if not application and not version and not _tables(connection):
        return 0
    if application != APPLICATION_ID:
        raise StoreForeign(
            f"{path} belongs to another program (application id {application}, not {APPLICATION_ID}). It was left as "
            "it is: choose another data folder.",
            path=str(path),
        )
    _check_not_newer(path, version)
    check_whole(path, connection)
    return version


def is_at_rest(path: Path) -> bool:
    """Whether the file by itself is all there is, and is a database of ours that this program knows; reads its header
    only. Such a one can be opened and then be checked: nothing is rolled back or moved into it by that."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  (a third of what pathlib takes)
            header = file.read(_HEADER_BYTES)
    except OSError:
        return False  # SQLite says why
    version = int.from_bytes(header[60:64], "big")
    ours = header.startswith(_MAGIC) and int.from_bytes(header[68:72], "big") == APPLICATION_ID
    return ours and 0 < version <= schema_version() and not any(map(_has_content, (f"{path}-wal", f"{path}-journal")))


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0  # noqa: PTH116  (a third of what pathlib takes)
    except FileNotFoundError:
        return False


def migrate(path: Path | None, connection: sqlite3.Connection) -> bool:
    """Bring the database to `schema_version()` in one transaction; False when it already was.

    The number is read again inside the transaction: of two that start at once, one does it and the other finds it
    done. Raises `StoreNewer` and sqlite3.Error.
    """
    connection.execute(BEGIN_WRITE)
    try:
        version = _pragma(connection, "user_version")
        _check_not_newer(path, version)
        for number, file in enumerate(_files(), start=1):
            if number > version:
                for statement in _statements(file.read_text(encoding="utf-8")):
                    connection.execute(statement)
        if 0 < version < SEALED_SINCE:
            _seal(connection)
        if version < schema_version():  # else nothing is written: a full disk can still be opened
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {schema_version()}")
        connection.execute(COMMIT)
    finally:
        if connection.in_transaction:
            connection.execute(ROLLBACK)
    return version < schema_version()


def settle_schema(connection: sqlite3.Connection) -> None:
    """Move a new schema from the write-ahead log into the file: losing the log must not lose whose file it is."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _seal(connection: sqlite3.Connection) -> None:
    """What was there before there were seals is taken for what was written: nothing says otherwise."""
    for row_no, spec, compiled in connection.execute(
        "SELECT version_no, spec, compiled FROM graph_versions"
    ).fetchall():
        connection.execute(_CONTENT, (row_seals.content(spec, compiled), row_no))
    count = row_seals.seal_all(connection)
    log.warning("the database was made before rows were sealed: its %d seals are over what was found in it", count)


@cache
def _files() -> tuple[Path, ...]:
    there = (file for file in _MIGRATIONS.iterdir() if file.name[:4].isdigit() and file.suffix == ".sql")
    files = tuple(sorted(there, key=lambda file: file.name))
    numbers = [int(file.name[:4]) for file in files]
    if not files or numbers != list(range(1, len(files) + 1)):
        raise RuntimeError(f"the migrations are not numbered 1 to {len(files)}: {numbers}")
    return files


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: sqlite3's own ``executescript`` would commit before it starts."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _check_not_newer(path: Path | None, version: int) -> None:
    if version > schema_version():
        raise StoreNewer(
            f"{path} has schema {version}, written by a newer version; this program knows schema {schema_version()}. "
            "It was left as it is: update the program, or choose another data folder.",
            path=str(path),
            found=version,
            known=schema_version(),
        )


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [str(name) for (name,) in connection.execute(_TABLES)]


def check_whole(path: Path | None, connection: sqlite3.Connection) -> None:
    """SQLite's quick check, which reads the whole file; of a large one only where
    each table starts. Raises `StoreCorrupt`."""
    if _pragma(connection, "page_count") * _pragma(connection, "page_size") > _FULL_CHECK_BYTES:
        for table in _tables(connection):
            connection.execute(_FIRST_ROW.format(table)).fetchone()
        return
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise corrupt(path, f"quick_check: {' '.join(str(found).split())}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
