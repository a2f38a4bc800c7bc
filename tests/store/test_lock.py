"""One owner of a data folder at a time, whatever happens to the one before."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agent_graph.errors import DataDirLocked, StoreUnusable
from agent_graph.store.lock import LOCK_NAME, lock_folder
from tests.store.rows import AT_MS

OWNER = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from agent_graph.errors import DataDirLocked
    from agent_graph.store.lock import lock_folder
    from agent_graph.store.sqlite import open_store

    async def main(folder):
        try:
            async with await lock_folder(folder, now_ms=1), await open_store(folder / "agent-graph.db") as store:
                print("owner", await store.runs.counts(), flush=True)
                sys.stdin.read()
        except DataDirLocked as error:
            print(error.code, error.details.get("pid"), error, flush=True)
            sys.exit(error.exit_code)

    asyncio.run(main(Path(sys.argv[1])))
    """
)


def start_owner(folder: Path) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], text=True, **pipes)


async def test_the_owner_is_written_down_for_others_to_find(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with await lock_folder(folder, now_ms=AT_MS, reach="agent-graph.sock"):
        note = json.loads((folder / LOCK_NAME).read_bytes())
        assert note == {
            "pid": os.getpid(),
            "host": platform.node(),
            "started_at_ms": AT_MS,
            "reach": "agent-graph.sock",
        }
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / LOCK_NAME).stat().st_mode) == 0o600


async def test_a_second_owner_is_told_who_the_first_is_and_how_to_reach_it(tmp_path: Path) -> None:
    async with await lock_folder(tmp_path, now_ms=AT_MS, reach=str(tmp_path / "agent-graph.sock")):
        with pytest.raises(DataDirLocked) as refused:
            await lock_folder(tmp_path, now_ms=AT_MS + 1)
        assert refused.value.code == "DATA_DIR_LOCKED"
        assert refused.value.details["pid"] == os.getpid()
        assert refused.value.details["started_at_ms"] == AT_MS
        assert f"process {os.getpid()}" in str(refused.value)
        assert f"Talk to it through {tmp_path}/agent-graph.sock" in str(refused.value)


async def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    for now_ms in (1, 2):
        lock = await lock_folder(tmp_path, now_ms=now_ms)
        lock.release()
        lock.release()
    assert (tmp_path / LOCK_NAME).read_bytes() == b""


@pytest.mark.parametrize("left", [b'{"pid":1,"started_at_ms":1}', b"", b"garbage \xff", b"[1]"])
async def test_a_note_left_behind_blocks_nobody(tmp_path: Path, left: bytes) -> None:
    (tmp_path / LOCK_NAME).write_bytes(left)
    async with await lock_folder(tmp_path, now_ms=AT_MS):
        assert json.loads((tmp_path / LOCK_NAME).read_bytes())["pid"] == os.getpid()


async def test_an_owner_without_a_note_still_owns(tmp_path: Path) -> None:
    async with await lock_folder(tmp_path, now_ms=AT_MS):
        (tmp_path / LOCK_NAME).write_bytes(b"")
        with pytest.raises(DataDirLocked, match="in use by another process"):
            await lock_folder(tmp_path, now_ms=AT_MS)


async def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / LOCK_NAME).symlink_to(tmp_path / "planted")
    with pytest.raises(StoreUnusable) as refused:
        await lock_folder(tmp_path / "data", now_ms=AT_MS)
    assert refused.value.code == "STORE_UNUSABLE"
    assert not (tmp_path / "planted").exists()


async def test_the_loop_goes_on_while_a_lock_is_refused(tmp_path: Path) -> None:
    async with await lock_folder(tmp_path, now_ms=AT_MS):
        (tmp_path / LOCK_NAME).write_bytes(b"")
        attempt = asyncio.create_task(lock_folder(tmp_path, now_ms=AT_MS))
        turns = 0
        while not attempt.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > 1
        with pytest.raises(DataDirLocked):
            attempt.result()


@pytest.mark.process
async def test_a_killed_owner_blocks_nobody(tmp_path: Path) -> None:
    owner = start_owner(tmp_path)
    assert owner.stdout is not None
    assert owner.stdout.readline().startswith("owner")
    with pytest.raises(DataDirLocked) as refused:
        await lock_folder(tmp_path, now_ms=AT_MS)
    assert refused.value.details["pid"] == owner.pid
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    async with await lock_folder(tmp_path, now_ms=AT_MS):
        pass


@pytest.mark.process
def test_of_eight_that_open_a_fresh_folder_at_once_one_is_the_owner(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    processes = [start_owner(folder) for _ in range(8)]
    lines = [process.stdout.readline() for process in processes if process.stdout is not None]
    ended = [process.communicate("")[1] for process in processes]
    owners = [process for process, line in zip(processes, lines, strict=True) if line.startswith("owner")]
    assert ended == [""] * 8
    assert len(owners) == 1
    for process, line in zip(processes, lines, strict=True):
        if process is not owners[0]:
            assert line.startswith(f"DATA_DIR_LOCKED {owners[0].pid} The data folder {folder} is in use by process")
            assert process.returncode == DataDirLocked.exit_code
