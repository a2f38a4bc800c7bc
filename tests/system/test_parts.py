"""The parts that stand in for what a system lacks, each by itself, here where it could be had."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_graph.mcp_server.daemon_log import set_aside
from agent_graph.mcp_server.proxy_client import AwaitedClient
from agent_graph.system import event_loop, files


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


async def test_a_question_that_was_taken_back_leaves_the_line_to_the_next(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    first = asyncio.create_task(event_loop._by_thread(reading, 100))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(event_loop._by_thread(reading, 100))
    await asyncio.sleep(0)
    os.write(writing, b"yes\n")
    assert await second == b"yes\n"
    third = asyncio.create_task(event_loop._by_thread(reading, 100))
    await asyncio.sleep(0)
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    os.write(writing, b"typed while nobody asked\n")
    assert await event_loop._by_thread(reading, 100) == b"typed while nobody asked\n"


async def test_signals_are_heard_without_the_loops_help_and_given_back() -> None:
    before = {number: signal.getsignal(number) for number in event_loop.SIGNALS}
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[str] = loop.create_future()
    with event_loop._handled(lambda name: loop.call_soon_threadsafe(heard.set_result, name)):
        os.kill(os.getpid(), signal.SIGTERM)
        assert await heard == "signal SIGTERM"
    assert {number: signal.getsignal(number) for number in event_loop.SIGNALS} == before


def test_a_client_waits_while_there_is_no_room(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    room = threading.Event()
    stdin = os.dup(0)
    os.dup2(reading, 0)
    try:
        client = AwaitedClient(room=room.is_set)
        got: list[bytes] = []
        taking = threading.Thread(target=lambda: got.extend(client.chunks()))
        taking.start()
        os.write(writing, b"one")
        assert not got
        room.set()
        while not got:
            pass
        client.stop()
        taking.join()
        os.write(writing, b"\n")  # lets the thread that reads go
        assert got == [b"one"]
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)


def test_a_log_that_cannot_be_moved_is_copied_and_emptied(tmp_path: Path) -> None:
    def held(path: str, older: str) -> None:
        raise PermissionError

    log, older = tmp_path / "daemon.log", tmp_path / "daemon.log.1"
    with log.open("ab", buffering=0) as also_open:
        also_open.write(b"before\n")
        set_aside(str(log), str(older), move=held)
        also_open.write(b"after\n")
    assert older.read_bytes() == b"before\n"
    assert log.read_bytes() == b"after\n"


def test_a_file_that_somebody_reads_is_replaced_once_it_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, path = tmp_path / "new", tmp_path / "path"
    new.write_bytes(b"new")
    really, tries = Path.replace, []

    def busy(one: Path, other: Path) -> Path:
        tries.append(other)
        if len(tries) < 3:
            raise PermissionError
        return really(one, other)

    monkeypatch.setattr(Path, "replace", busy)
    files.replace(new, path, tries=5)
    assert path.read_bytes() == b"new"
    tries.clear()
    new.write_bytes(b"newer")
    with pytest.raises(PermissionError):
        files.replace(new, path, tries=0)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(("mode", "open_"), [(0o600, False), (0o100600, False), (0o640, True), (0o604, True)])
def test_a_mode_says_whether_others_may(mode: int, open_: bool) -> None:
    assert files.others_may_use(mode) is open_
