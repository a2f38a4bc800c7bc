"""Where answers are recorded that may be used again: found by their key, for as long as their run is kept."""

from __future__ import annotations

import pytest

from agent_graph.store import answers
from agent_graph.store.sqlite import SqliteStore
from tests.store.rows import begin, start, step


async def test_an_answer_is_found_where_it_was_remembered_last(store: SqliteStore) -> None:
    await begin(store)
    await store.runs.commit(start())
    await store.runs.commit(start("run-2"))
    assert await store.answers.find("k") is None
    await store.answers.remember("k", "run-1", 3)
    assert await store.answers.find("k") == ("run-1", 3)
    await store.answers.remember("k", "run-2", 5)
    assert await store.answers.find("k") == ("run-2", 5)


async def test_of_a_run_that_is_not_stored_nothing_is_remembered(store: SqliteStore) -> None:
    await begin(store)
    await store.answers.remember("k", "run-9", 3)
    assert await store.answers.find("k") is None


@pytest.mark.parametrize("forget", [False, True])
async def test_pruning_a_run_forgets_its_answers(store: SqliteStore, forget: bool) -> None:
    await begin(store)
    await store.runs.commit(start())
    await store.runs.commit(step(1, status="completed"))
    await store.answers.remember("k", "run-1", 1)
    assert await store.retention.prune(["run-1"], forget=forget) == ("run-1",)
    assert await store.answers.find("k") is None


async def test_the_oldest_are_forgotten_beyond_the_bound(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_ANSWERS", 3)
    await begin(store)
    await store.runs.commit(start())
    for number in range(5):
        await store.answers.remember(f"k{number}", "run-1", number)
    assert [await store.answers.find(f"k{number}") is not None for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
