"""Files that are taken away under a program, and databases that are not there any more: told, and never made anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_graph.errors import DataDirLocked, StoreCorrupt
from agent_graph.store import guard
from agent_graph.store.lock import LOCK_NAME, SILENT_MS, check_alive, had_database, lock_folder, owner_of
from agent_graph.store.sqlite import SqliteStore, open_store
from tests.store.rows import AT_MS, begin

NAME = "agent-graph.db"


async def opened(folder: Path) -> SqliteStore:
    lock = await lock_folder(folder, now_ms=AT_MS)
    return await open_store(folder / NAME, lock=lock)


def sizes(folder: Path) -> list[int]:
    """Of the database and what lies beside it."""
    return [path.stat().st_size for path in folder.glob(f"{NAME}*")]


@pytest.fixture(autouse=True)
def looks_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BETWEEN_LOOKS_S", 0.0)


@pytest.mark.parametrize("taken", [NAME, f"{NAME}-wal"])
async def test_a_database_removed_under_its_owner_takes_nothing_more_and_can_be_read(
    tmp_path: Path, taken: str
) -> None:
    store = await open_store(tmp_path / NAME)
    await begin(store, "run-1")
    (tmp_path / taken).unlink()
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match=f"{taken} was removed while") as refused:
            await begin(store, "run-2")
    assert refused.value.code == "STORE_CORRUPT"
    with pytest.raises(StoreCorrupt):
        store.check()
    with pytest.raises(StoreCorrupt):
        await store.retention.compact()
    assert [row.run_id for row in (await store.runs.list())[0]] == ["run-1"]
    assert len(await store.runs.events("run-1")) > 0
    await store.aclose()
    assert not (tmp_path / taken).exists(), "nothing was made in its place"


async def test_a_database_replaced_under_its_owner_is_left_alone(tmp_path: Path) -> None:
    store = await open_store(tmp_path / NAME)
    await begin(store, "run-1")
    async with await open_store(tmp_path / "other.db") as other:
        await begin(other, "run-of-another")
    (tmp_path / "other.db").replace(tmp_path / NAME)
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(StoreCorrupt, match="was replaced by another while"):
        await begin(store, "run-2")
    await store.aclose()
    assert (tmp_path / NAME).read_bytes() == before


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_an_owner_whose_lock_was_taken_away_writes_nothing_more(tmp_path: Path, how: str) -> None:
    async with await opened(tmp_path) as store:
        await begin(store, "run-1")
        (tmp_path / LOCK_NAME).unlink()
        if how == "replaced":
            async with await lock_folder(tmp_path, now_ms=AT_MS):
                pass
        with pytest.raises(DataDirLocked, match=how) as refused:
            await begin(store, "run-2")
        assert refused.value.code == "DATA_DIR_LOCKED"
        assert [row.run_id for row in (await store.runs.list())[0]] == ["run-1"]


@pytest.mark.parametrize("now", ["gone", "empty"])
async def test_a_database_that_was_there_is_not_made_anew(tmp_path: Path, now: str) -> None:
    for _ in range(2):  # also by an owner after the one that made it
        lock = await lock_folder(tmp_path, now_ms=AT_MS)
        async with await open_store(tmp_path / NAME, lock=lock):
            pass
        lock.release()
        assert had_database(tmp_path)
    (tmp_path / NAME).unlink()
    if now == "empty":
        (tmp_path / NAME).touch()
    for _ in range(2):
        lock = await lock_folder(tmp_path, now_ms=AT_MS)
        with pytest.raises(StoreCorrupt, match=f"{NAME} is {now}, and there was one") as refused:
            await open_store(tmp_path / NAME, lock=lock)
        assert refused.value.code == "STORE_CORRUPT"
        lock.release()
    assert sizes(tmp_path) == ([] if now == "gone" else [0])
    (tmp_path / LOCK_NAME).unlink()  # as the message says
    async with await opened(tmp_path) as store:
        assert await store.runs.counts() == {}


async def test_an_owner_that_made_no_database_leaves_no_word_of_one(tmp_path: Path) -> None:
    (await lock_folder(tmp_path, now_ms=AT_MS)).release()
    assert not had_database(tmp_path)
    async with await opened(tmp_path) as store:
        assert await store.runs.counts() == {}


async def test_an_owner_says_when_it_gave_its_latest_sign_of_life(tmp_path: Path) -> None:
    async with await lock_folder(tmp_path, now_ms=AT_MS) as lock:
        os.utime(lock.path, ns=(0, (AT_MS - 2_500) * 1_000_000))
        owner = await owner_of(tmp_path)
        assert owner is not None
        assert owner["alive_at_ms"] == AT_MS - 2_500
        with pytest.raises(DataDirLocked, match=f"process {os.getpid()}, last sign of life 2 s ago. Stop it"):
            await lock_folder(tmp_path, now_ms=AT_MS)
        await check_alive(tmp_path, now_ms=AT_MS)
        lock.beat()
        later = await owner_of(tmp_path)
        assert later is not None
        assert int(str(later["alive_at_ms"])) > AT_MS - 2_500


async def test_an_owner_that_gives_none_is_called_stopped(tmp_path: Path) -> None:
    async with await lock_folder(tmp_path, now_ms=AT_MS) as lock:
        os.utime(lock.path, ns=(0, (AT_MS - SILENT_MS - 1_000) * 1_000_000))
        for ask in (check_alive(tmp_path, now_ms=AT_MS), lock_folder(tmp_path, now_ms=AT_MS)):
            with pytest.raises(DataDirLocked, match=f"for 11 s.*kill -CONT {os.getpid()}") as refused:
                await ask
            assert refused.value.details["pid"] == os.getpid()
    await check_alive(tmp_path, now_ms=AT_MS)  # nobody owns it


async def test_a_lock_whose_file_went_away_before_it_was_held_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    flock, times = fcntl.flock, []

    def after_somebody_removed_it(descriptor: int, how: int) -> None:
        if not times:
            (tmp_path / LOCK_NAME).unlink()
        times.append(how)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", after_somebody_removed_it)
    async with await lock_folder(tmp_path, now_ms=AT_MS):
        assert len(times) == 2
        with pytest.raises(DataDirLocked):
            await lock_folder(tmp_path, now_ms=AT_MS)
