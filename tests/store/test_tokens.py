"""The contract of tokens: kept as they were written, found by id, taken back once; memory and file alike."""

from __future__ import annotations

from dataclasses import replace

from agent_graph.store.base import TokenRow
from agent_graph.store.sqlite import SqliteStore
from tests.store.rows import AT_MS

ROW = TokenRow("a1", "ann", "0" * 64, ("runs:read", "admin"), AT_MS, AT_MS + 1_000)


async def test_a_token_is_read_back_as_it_was_written(store: SqliteStore) -> None:
    assert await store.tokens.find("a1") is None
    await store.tokens.add(ROW)
    forever = replace(ROW, token_id="a2", created_at_ms=AT_MS + 1, expires_at_ms=None)
    await store.tokens.add(forever)
    assert await store.tokens.list() == (ROW, forever)
    assert await store.tokens.find("a1") == ROW
    assert await store.tokens.find("ann") is None


async def test_a_token_is_taken_back_once_by_its_id_or_with_all_of_its_principal(store: SqliteStore) -> None:
    for token_id, principal in (("a1", "ann"), ("a2", "ann"), ("b1", "bob")):
        await store.tokens.add(replace(ROW, token_id=token_id, principal=principal))
    assert [row.token_id for row in await store.tokens.revoke("a1", at_ms=AT_MS + 5)] == ["a1"]
    assert [row.token_id for row in await store.tokens.revoke("ann", at_ms=AT_MS + 6)] == ["a2"]
    assert await store.tokens.revoke("ann", at_ms=AT_MS + 7) == ()
    revoked = {row.token_id: row.revoked_at_ms for row in await store.tokens.list()}
    assert revoked == {"a1": AT_MS + 5, "a2": AT_MS + 6, "b1": None}
    found = await store.tokens.find("a1")
    assert found is not None
    assert found.revoked_at_ms == AT_MS + 5
