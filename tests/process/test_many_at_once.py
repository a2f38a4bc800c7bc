"""SQ02, SQ04: many programs that start at once on one folder, and a log that is lost between two of them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from agent_graph.engine.keys import keys_of, open_keys
from agent_graph.store import migrate
from agent_graph.store.sqlite import open_store
from tests.cli.terminal import environment
from tests.process.test_fatal_points import copied
from tests.store.rows import GRAPH, begin

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]

PROGRAMS = 8


async def ends(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and words of one command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent_graph", *arguments, env=environment(folder), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, (out + err).decode()


@pytest.mark.parametrize("folder_is", ["fresh", "of the version before"])
async def test_SQ02_of_programs_that_start_at_once_each_works_or_says_who_owns_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder_is: str
) -> None:
    path = tmp_path / "data" / "agent-graph.db"
    if folder_is != "fresh":
        files = migrate._files()
        now = tmp_path / "now" / "agent-graph.db"
        async with await open_store(now) as store:
            await store.graphs.put(GRAPH, overwrite=False, expected_version=None)
        with monkeypatch.context() as earlier:
            earlier.setattr(migrate, "_files", lambda: files[:1])
            async with await open_store(path):
                pass
        copied(now, path)
    found = await asyncio.gather(*(ends(path.parent, "graphs", "--json") for _ in range(PROGRAMS)))
    for code, said in found:
        assert "Traceback" not in said
        assert code == 0 or (code == 5 and "DATA_DIR_LOCKED" in said), said
    assert 0 in [code for code, _ in found]
    async with await open_store(path, ring=keys_of(path.parent)) as opened:
        version = await opened.database.read(lambda connection: connection.execute("PRAGMA user_version").fetchone())
        assert version == (migrate.schema_version(),)


async def test_SQ04_a_log_that_is_lost_after_a_kill_loses_no_more_than_what_was_in_it(tmp_path: Path) -> None:
    path = tmp_path / "data" / "agent-graph.db"
    path.parent.mkdir(mode=0o700)
    open_keys(path.parent, now_ms=0)
    async with await open_store(path, ring=keys_of(path.parent)) as store:
        await begin(store, "run-1")
    store = await open_store(path, ring=keys_of(path.parent))
    await begin(store, "run-2")
    merged = path.read_bytes()
    await store.aclose()
    path.write_bytes(merged)  # as after a kill, the log not merged, and then removed
    for name in ("-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    code, said = await ends(path.parent, "doctor")
    assert "unsound" not in said
    assert code in (0, 4)
    async with await open_store(path, ring=keys_of(path.parent)) as store:
        assert [row.run_id for row in (await store.runs.list())[0]] == ["run-1"]


async def test_SQ04_a_file_without_bytes_is_a_fresh_database(tmp_path: Path) -> None:
    path = tmp_path / "agent-graph.db"
    path.touch()
    assert "unsound" not in (await ends(tmp_path, "doctor"))[1]
    assert (await ends(tmp_path, "runs"))[0] == 0
