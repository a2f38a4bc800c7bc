"""The contract of captured sources: kept once, seen by their principal, held by the runs that cite them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_graph.errors import WitnessNotFound
from agent_graph.store.base import WitnessRow
from agent_graph.store.sqlite import SqliteStore
from tests.store.rows import AT_MS, begin, start

ROW = WitnessRow("wit-1", "ann", "a page", "text/plain", "caller_supplied_unverified", AT_MS, AT_MS, "cli",
                 "sha256:0", "Größe\0".encode(), "hmac:1", "hmac-sha256:2")  # fmt: skip


async def test_a_source_is_read_back_as_it_was_captured_and_stays_so(store: SqliteStore) -> None:
    assert await store.witnesses.add(ROW)
    assert not await store.witnesses.add(replace(ROW, content=b"other"))
    assert await store.witnesses.get("wit-1") == ROW


async def test_what_another_has_captured_is_as_if_it_were_not_there(store: SqliteStore) -> None:
    await store.witnesses.add(ROW)
    assert await store.witnesses.get("wit-1", principal="ann") == ROW
    for principal, witness_id in (("bob", "wit-1"), ("ann", "wit-2")):
        with pytest.raises(WitnessNotFound, match=witness_id):
            await store.witnesses.get(witness_id, principal=principal)
    await begin(store, "run-1")
    assert await store.witnesses.cite(["wit-1"], run_id="run-1", principal="bob") == ()
    assert await store.witnesses.prune(["wit-1"]) == ("wit-1",)


async def test_a_run_holds_what_it_cites_until_its_record_goes(store: SqliteStore) -> None:
    await store.witnesses.add(ROW)
    await store.witnesses.add(replace(ROW, witness_id="wit-2", captured_at_ms=AT_MS + 5))
    await begin(store)
    await store.runs.commit(start("run-1", status="completed"))
    cited = await store.witnesses.cite(["wit-9", "wit-1"], run_id="run-1")
    assert cited == await store.witnesses.cite(["wit-1"], run_id="run-1") == (ROW,)
    assert await store.witnesses.idle(before_ms=AT_MS + 9) == ((("wit-2", 8),), 1)
    assert await store.witnesses.idle(before_ms=AT_MS + 5) == ((), 1)
    assert await store.witnesses.idle(before_ms=AT_MS + 5, going=["run-1"]) == ((("wit-1", 8),), 0)
    assert await store.witnesses.prune(["wit-1", "wit-2", "wit-3"]) == ("wit-2",)
    await store.retention.prune(["run-1"])
    assert await store.witnesses.prune(["wit-1"]) == ("wit-1",)


async def test_a_run_that_is_forgotten_lets_go_of_what_it_cites(store: SqliteStore) -> None:
    await store.witnesses.add(ROW)
    await begin(store)
    await store.runs.commit(start("run-1", status="completed"))
    await store.witnesses.cite(["wit-1"], run_id="run-1")
    await store.retention.prune(["run-1"], forget=True)
    assert await store.witnesses.prune(["wit-1"]) == ("wit-1",)
