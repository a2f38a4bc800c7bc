"""What `open_store` makes of a path: fresh, ours, foreign, newer, damaged, unusable; refused files stay as they are."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_graph.errors import (
    AgentGraphError,
    InvalidArgument,
    StoreCorrupt,
    StoreForeign,
    StoreNewer,
    StoreUnusable,
)
from agent_graph.store import migrate
from agent_graph.store.sqlite import open_store
from tests.store.rows import begin, step


def content(path: Path) -> bytes:
    return path.read_bytes()


def change(path: Path, how: Callable[[bytes], bytes]) -> None:
    path.write_bytes(how(path.read_bytes()))


def link(path: Path, *, to: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(to)


def migrations_with(extra: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra.write_text(script)
    files = (*migrate._files(), extra)
    monkeypatch.setattr(migrate, "_files", lambda: files)


async def made(path: Path, *, steps: int = 1) -> None:
    async with await open_store(path) as store:
        await begin(store, "run-1")
        for number in range(steps):
            await store.runs.commit(step(1 + 2 * number, note="x" * 1_000))


async def refused(path: Path, kind: type[AgentGraphError]) -> AgentGraphError:
    """The error of opening; checks that it names the file and that no file of the folder was changed, made or lost."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(kind) as error:
        await open_store(path)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    assert str(path) in str(error.value)
    assert "another data folder" in str(error.value)
    return error.value


async def test_folder_and_files_are_private_whatever_the_umask(path: Path) -> None:
    for umask in (0o000, 0o077, 0o777):
        fresh = path.parent / f"{umask:o}" / "deeper" / path.name
        before = os.umask(0o022)
        fresh.parent.parent.mkdir(parents=True)
        os.umask(umask)
        try:
            async with await open_store(fresh) as store:
                await begin(store, "run-1")
                modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in fresh.parent.iterdir()}
        finally:
            os.umask(before)
        assert stat.S_IMODE(fresh.parent.stat().st_mode) == 0o700
        assert modes == dict.fromkeys((path.name, f"{path.name}-wal", f"{path.name}-shm"), 0o600)


async def test_what_was_written_is_there_after_opening_again(path: Path) -> None:
    await made(path)
    async with await open_store(path) as store:
        assert store.storage == "durable"
        assert (await store.runs.get("run-1")).seq == 3
        await store.runs.commit(step(3))
        assert await store.runs.verify_chain("run-1") is None


async def test_memory_is_volatile_and_each_opening_a_new_one() -> None:
    async with await open_store(":memory:") as first, await open_store(":memory:") as second:
        await begin(first, "run-1")
        assert (first.storage, second.storage) == ("volatile", "volatile")
        assert await second.runs.list() == ((), None)


async def test_an_empty_file_is_a_fresh_database(path: Path) -> None:
    path.parent.mkdir()
    os.close(os.open(path, os.O_CREAT))
    await made(path)


async def test_a_path_with_odd_signs_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "wh?at #1 %20 é" / "agent graph?mode=ro.db"
    await made(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE graphs (name TEXT PRIMARY KEY, spec_json TEXT)")
        other.execute("CREATE TABLE schema_migrations (version INTEGER)")
    other.close()
    error = await refused(path, StoreForeign)
    assert error.code == "STORE_FOREIGN"


@pytest.mark.parametrize("mark", ["PRAGMA application_id = 7", "PRAGMA user_version = 7"])
async def test_a_marked_database_without_tables_is_foreign_too(path: Path, mark: str) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute(mark)
    other.close()
    await refused(path, StoreForeign)


async def test_a_newer_schema_is_refused_with_both_versions(path: Path) -> None:
    await made(path)
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 999")
    newer.close()
    error = await refused(path, StoreNewer)
    assert (error.code, error.details["found"], error.details["known"]) == (
        "STORE_NEWER",
        999,
        migrate.schema_version(),
    )
    assert "999" in str(error)
    assert f"schema {migrate.schema_version()}" in str(error)


async def test_a_newer_schema_that_is_still_in_the_log_is_seen(path: Path) -> None:
    await made(path)
    newer = sqlite3.connect(path, isolation_level=None)
    newer.execute("PRAGMA user_version = 999")
    before = content(path)
    with pytest.raises(StoreNewer):
        await open_store(path)
    assert content(path) == before
    newer.close()


def _overwritten(data: bytes) -> bytes:
    return data[:4096] + b"\xa5" * 4096 + data[8192:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "garbage in the second page": _overwritten,
    "cut to 100 bytes": lambda data: data[:100],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "a text": lambda _: b"This is a text, and a longer one than the hundred bytes of a header." * 3,
    "a short text": lambda _: b"hello\n",
    "a damaged first page": lambda data: data[:100] + b"\xff" * 300 + data[400:],
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_named_and_left_alone(path: Path, damage: str) -> None:
    await made(path, steps=20)
    change(path, DAMAGES[damage])
    error = await refused(path, StoreCorrupt)
    assert error.code == "STORE_CORRUPT"
    assert error.details["check"]
    assert "put a copy of it back" in str(error)


async def test_damage_met_later_is_said_when_it_is_met(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path, steps=40)
    monkeypatch.setattr(migrate, "_FULL_CHECK_BYTES", 0)  # as for a large database, of which only the roots are read
    page = content(path).rindex(b"x" * 500) // 4096 * 4096
    change(path, lambda data: data[:page] + b"\xa5" * 4096 + data[page + 4096 :])
    async with await open_store(path) as store:
        with pytest.raises(StoreCorrupt):
            await store.runs.load("run-1")


async def test_a_root_page_is_read_even_of_a_large_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path)
    monkeypatch.setattr(migrate, "_FULL_CHECK_BYTES", 0)
    async with await open_store(path):
        pass
    roots = [page * 4096 for page in range(2, 5)]  # behind the header and the map of pages
    change(path, lambda data: data[: roots[0]] + b"\xa5" * 4096 * len(roots) + data[roots[-1] + 4096 :])
    await refused(path, StoreCorrupt)


async def test_a_symbolic_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    await made(tmp_path / "elsewhere" / "real.db")
    before = (tmp_path / "elsewhere" / "real.db").read_bytes()
    link(path, to=tmp_path / "elsewhere" / "real.db")
    with pytest.raises(StoreUnusable, match="symbolic link") as error:
        await open_store(path)
    assert error.value.code == "STORE_UNUSABLE"
    assert (tmp_path / "elsewhere" / "real.db").read_bytes() == before


async def test_a_dangling_link_makes_no_file(path: Path, tmp_path: Path) -> None:
    link(path, to=tmp_path / "planted.db")
    with pytest.raises(StoreUnusable):
        await open_store(path)
    assert not (tmp_path / "planted.db").exists()


async def test_a_folder_that_cannot_be_used_is_named(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/no-such-folder")):
        with pytest.raises(StoreUnusable, match=str(folder)) as error:
            await open_store(folder / "agent-graph.db")
        assert error.value.details["path"] == str(folder)
    (path / "a folder").parent.mkdir(parents=True)
    with pytest.raises(StoreUnusable, match="not an ordinary file"):
        await open_store(path)


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Root may write anywhere: where the tests are root, do it as somebody who may not."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def shut_folder() -> Iterator[Path]:
    """A folder nobody but root may write in, where everybody can get at it (unlike `tmp_path`)."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "data"
        folder.mkdir(mode=0o555)
        yield folder
        assert not any(folder.iterdir())


async def test_a_folder_without_rights_is_named(shut_folder: Path) -> None:
    with _as_nobody(), pytest.raises(StoreUnusable, match=str(shut_folder)):
        await open_store(shut_folder / "agent-graph.db")


async def test_synchronous_is_full_or_normal(path: Path) -> None:
    with pytest.raises(InvalidArgument):
        await open_store(path, synchronous="off")  # type: ignore[arg-type]
    assert not path.parent.exists()
    async with await open_store(path, synchronous="normal") as store:
        await begin(store, "run-1")


async def test_the_schema_is_in_the_file_before_the_log_is_merged(path: Path) -> None:
    store = await open_store(path)
    header = content(path)[:100]
    assert int.from_bytes(header[60:64], "big") == migrate.schema_version()
    assert int.from_bytes(header[68:72], "big") == migrate.APPLICATION_ID
    await store.aclose()


async def test_a_lost_log_loses_what_was_in_it_and_nothing_else(path: Path) -> None:
    store = await open_store(path)
    await begin(store, "run-1")
    unmerged = content(path)
    await store.aclose()
    change(path, lambda _: unmerged)  # as after a kill: the log not merged, and then removed
    async with await open_store(path) as again:
        assert await again.runs.list() == ((), None)
        await begin(again, "run-2")


async def test_a_migration_that_fails_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path)
    script = "CREATE TABLE extra (a);\nCREATE TABLE runs (a);\n"
    migrations_with(path.parent.parent / "0003_broken.sql", script, monkeypatch)
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        await open_store(path)
    monkeypatch.undo()
    async with await open_store(path) as store:
        tables = await store.database.read(lambda c: c.execute("SELECT name FROM sqlite_master").fetchall())
        assert ("extra",) not in tables
        assert (await store.runs.get("run-1")).seq == 3


async def test_a_later_schema_is_reached_from_the_one_before_and_keeps_the_rows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(path)
    script = "-- one more; with a semicolon\nALTER TABLE runs ADD COLUMN extra TEXT NOT NULL DEFAULT ';';\n"
    migrations_with(path.parent.parent / f"{migrate.schema_version() + 1:04}_more.sql", script, monkeypatch)
    async with await open_store(path) as store:
        assert await store.database.read(lambda c: c.execute("SELECT extra FROM runs").fetchall()) == [(";",)]
        assert await store.database.read(lambda c: c.execute("PRAGMA user_version").fetchone()) == (
            migrate.schema_version(),
        )
        assert (await store.runs.get("run-1")).seq == 3
    monkeypatch.undo()
    await refused(path, StoreNewer)


def test_a_program_that_forgets_to_close_ends_all_the_same(path: Path) -> None:
    program = textwrap.dedent(
        """
        import asyncio, sys
        from pathlib import Path
        from agent_graph.store.sqlite import open_store
        kept = []
        async def main():
            kept.append(await open_store(Path(sys.argv[1])))
        asyncio.run(main())
        """
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=10)


def test_opening_the_store_imports_nothing_heavy() -> None:
    program = "import sys, agent_graph.store.sqlite; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert not {"pydantic", "networkx", "mcp", "httpx2", "jsonschema"} & set(loaded)


async def test_two_stores_of_one_process_do_not_lose_each_others_locks(path: Path) -> None:
    async with await open_store(path) as first:
        await begin(first, "run-1", "run-2")
        async with await open_store(path) as second:
            steps = (store.runs.commit(step(1, run_id)) for store, run_id in ((first, "run-1"), (second, "run-2")))
            await asyncio.gather(*steps)
        await first.runs.commit(step(3, "run-1"))
        assert [row.seq for row in (await first.runs.list())[0]] == [3, 5]
