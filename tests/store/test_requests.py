"""The contract of idempotency: a key is taken in the transaction of what it answers for; memory and file alike."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent_graph.errors import GraphVersionConflict, IdempotencyConflict, RunNotFound, SequenceConflict
from agent_graph.store.base import AlreadyAnswered
from agent_graph.store.sqlite import SqliteStore
from tests.store.rows import GRAPH, answered, begin, graph, start, step


async def test_the_key_is_taken_with_the_run_it_made(store: SqliteStore) -> None:
    await begin(store)
    assert await store.requests.get("key-1") is None
    record = answered(run_id="run-1")
    await store.runs.commit(start(answered=record))
    assert await store.requests.get("key-1") == record


async def test_the_same_request_again_gives_the_stored_answer_and_makes_nothing(store: SqliteStore) -> None:
    await begin(store)
    await store.runs.commit(start(answered=answered(run_id="run-1")))
    with pytest.raises(AlreadyAnswered) as signal:
        await store.runs.commit(start("run-2", answered=answered(run_id="run-2")))
    assert signal.value.answered == answered(run_id="run-1")
    with pytest.raises(RunNotFound):
        await store.runs.get("run-2")


async def test_another_request_under_the_key_is_a_conflict_and_makes_nothing(store: SqliteStore) -> None:
    await begin(store)
    await store.runs.commit(start(answered=answered(run_id="run-1")))
    with pytest.raises(IdempotencyConflict) as refused:
        await store.runs.commit(start("run-2", answered=answered(digest="sha256:other", run_id="run-2")))
    assert refused.value.code == "IDEMPOTENCY_CONFLICT"
    with pytest.raises(RunNotFound):
        await store.runs.get("run-2")


async def test_racing_starts_with_one_key_give_one_run(store: SqliteStore) -> None:
    await begin(store)

    async def attempt(number: int) -> str:
        run_id = f"run-{number}"
        try:
            await store.runs.commit(start(run_id, answered=answered(run_id=run_id)))
        except AlreadyAnswered as signal:
            return signal.answered.run_id
        return run_id

    winners = set(await asyncio.gather(*(attempt(number) for number in range(20))))
    rows, _ = await store.runs.list()
    assert [row.run_id for row in rows] == list(winners)


async def test_a_refused_write_does_not_take_its_key(store: SqliteStore) -> None:
    await begin(store, "run-1")
    with pytest.raises(SequenceConflict):
        await store.runs.commit(replace(step(7), answered=answered()))
    assert await store.requests.get("key-1") is None
    await store.runs.commit(replace(step(1), answered=answered()))
    assert await store.requests.get("key-1") == answered()


async def test_graphs_take_keys_too(store: SqliteStore) -> None:
    await store.graphs.put(GRAPH, overwrite=False, expected_version=None, answered=answered())
    with pytest.raises(AlreadyAnswered):
        await store.graphs.put(graph("v2"), overwrite=True, expected_version=None, answered=answered())
    with pytest.raises(IdempotencyConflict):
        await store.graphs.delete("council", answered(digest="sha256:other"))
    with pytest.raises(GraphVersionConflict):
        await store.graphs.put(graph("v2"), overwrite=False, expected_version=None, answered=answered("key-2"))
    assert await store.requests.get("key-2") is None
    assert await store.graphs.get("council") == GRAPH
    await store.graphs.delete("council", answered("key-3"))
    assert await store.requests.get("key-3") == answered("key-3")
