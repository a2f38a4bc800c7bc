"""Tells from a database alone whether its folder had an integrity key: reads only, and holds no key itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_graph.store.connection import plain
from agent_graph.store.folder import DATABASE_NAME
from agent_graph.store.migrate import APPLICATION_ID
from agent_graph.store.row_seals import SEALED
from agent_graph.store.sqlite_errors import store_error

Begun: TypeAlias = Literal["keyed", "keyless", ""]

_COLUMNS: Final = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"
_BY_A_KEY: Final = "SELECT 1 FROM {table} WHERE {column} GLOB 'hmac:*' LIMIT 1"
_BY_NONE: Final = "SELECT 1 FROM {table} WHERE {column} GLOB 'sha256.*' LIMIT 1"
_WHOLE: Final = (
    ("runs", "seal", "SELECT 1 FROM runs WHERE seal IS NOT NULL LIMIT 1"),
    ("witnesses", "seal", "SELECT 1 FROM witnesses WHERE seal <> '' LIMIT 1"),
)
"""Seals that only a folder with a key has."""


def begun(folder: Path) -> Begun:
    """What the seals in the folder's database say: made with keys, without any, or "" where there are none.

    Asked only where the book of keys is missing, so it may take a look at every table. Raises `StoreCorrupt`,
    `StoreUnusable`.
    """
    path = folder / DATABASE_NAME
    if not path.is_file():
        return ""
    log = path.with_name(path.name + "-wal")
    try:
        with closing(plain(path, "ro" if log.exists() and log.stat().st_size else "immutable")) as connection:
            return _begun(connection)
    except sqlite3.Error as error:
        raise store_error(error, path) from error


def _begun(connection: sqlite3.Connection) -> Begun:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        return ""
    there = [one for one in SEALED if connection.execute(_COLUMNS, one).fetchone()]
    asked = [query for table, column, query in _WHOLE if connection.execute(_COLUMNS, (table, column)).fetchone()]
    asked += [_BY_A_KEY.format(table=table, column=column) for table, column in there]
    if any(connection.execute(query).fetchone() for query in asked):
        return "keyed"
    none = [_BY_NONE.format(table=table, column=column) for table, column in there]
    return "keyless" if any(connection.execute(query).fetchone() for query in none) else ""
