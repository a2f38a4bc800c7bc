"""Who may come in over HTTP: tokens by their digest, and whose they are; checks none and makes none."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any, Final

from agent_graph.store import row_seals
from agent_graph.store.base import TokenRow
from agent_graph.store.columns import json_text, strings
from agent_graph.store.db import Database

# keeps a new one
ADD: Final = """
INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, row_seal('tokens.row_seal', ?1, ?2, ?3, ?4, ?5, ?6, ?7))"""
COLUMNS: Final = f"""
token_id, principal, digest, scopes, created_at_ms, expires_at_ms, revoked_at_ms, {row_seals.holds("tokens")}"""
# all of them, oldest first
LIST: Final = f"SELECT {COLUMNS} FROM tokens ORDER BY created_at_ms, token_id"
# those by that id or of that principal which are not revoked
LIVE: Final = f"SELECT {COLUMNS} FROM tokens WHERE (token_id = ?1 OR principal = ?1) AND revoked_at_ms IS NULL"
# takes one back
REVOKE: Final = f"""
UPDATE tokens SET revoked_at_ms = ?1, row_seal = {row_seals.resealing("tokens", {"revoked_at_ms": "?1"})}
WHERE token_id = ?2"""


class SqliteTokens:
    """`base.TokenStore` over a `Database`. It remembers all of them: the folder has one owner, so nobody else writes,
    and each request over HTTP asks for one."""

    __slots__ = ("_database", "_known")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, TokenRow] | None = None

    async def add(self, row: TokenRow) -> None:
        values = (
            row.token_id, row.principal, row.digest, json_text(list(row.scopes)), row.created_at_ms,
            row.expires_at_ms, row.revoked_at_ms,
        )  # fmt: skip
        await self._database.write(lambda connection: connection.execute(ADD, values))
        self._known = None

    async def find(self, token_id: str) -> TokenRow | None:
        if self._known is None:
            self._known = {row.token_id: row for row in await self.list() if not row.damaged}
        return self._known.get(token_id)

    async def list(self) -> tuple[TokenRow, ...]:
        return await self._database.read(lambda connection: tuple(map(_row, connection.execute(LIST))))

    async def revoke(self, name: str, *, at_ms: int) -> tuple[TokenRow, ...]:
        revoked = await self._database.write(lambda connection: _revoke(name, at_ms, connection))
        self._known = None
        return revoked


def _revoke(name: str, at_ms: int, connection: sqlite3.Connection) -> tuple[TokenRow, ...]:
    rows = tuple(map(_row, connection.execute(LIVE, (name,)).fetchall()))
    connection.executemany(REVOKE, [(at_ms, row.token_id) for row in rows])
    return tuple(replace(row, revoked_at_ms=at_ms) for row in rows)


def _row(columns: tuple[Any, ...]) -> TokenRow:
    token_id, principal, digest, scopes, *times, holds = columns
    if not holds:
        return TokenRow(str(token_id), "", "", (), 0, damaged=True)
    return TokenRow(token_id, principal, digest, strings(scopes), *times)
