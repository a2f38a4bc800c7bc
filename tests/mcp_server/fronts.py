"""Fronts and the daemon behind them, as processes; every daemon that a test leaves is ended with the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from agent_graph.mcp_server import hello
from agent_graph.store.lock import LOCK_NAME
from agent_graph.tools.socket_address import connected
from tests.mcp_server.process import FRONT, Lines, environment, started

IDLE_MS = 60_000
"""A daemon that a broken test leaves behind goes by itself."""
END_S = 10.0
UP_S = 20.0


def owner(folder: Path) -> int:
    """The process that owns the folder, 0 for none."""
    try:
        note = json.loads((folder / LOCK_NAME).read_bytes() or b"{}")
    except (FileNotFoundError, ValueError):
        return 0
    return int(note.get("pid", 0))


def end(folder: Path, number: signal.Signals = signal.SIGTERM) -> None:
    """End the folder's daemon, if there is one, and wait until it has."""
    pid = owner(folder)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            os.kill(pid, number)
            gone(handle)


def gone(handle: int) -> None:
    """Wait for the end of the process behind a pidfd."""
    import select

    assert select.select([handle], [], [], END_S)[0], "it is still there"
    os.close(handle)


@asynccontextmanager
async def fronts(script: Path, folder: Path, more: Mapping[str, str] | None = None) -> AsyncIterator[Fronts]:
    """Clients of one folder; its daemon is ended with the block."""
    made = Fronts(script, folder, dict(more or {}))
    try:
        yield made
    finally:
        await asyncio.to_thread(end, folder)


class Fronts:
    """Starts clients on one folder."""

    def __init__(self, script: Path, folder: Path, more: dict[str, str]) -> None:
        self.script = script
        self.folder = folder
        self.env = {"AGENT_GRAPH_DAEMON_IDLE_MS": str(IDLE_MS), **more}

    def __call__(self, *flags: str, **options: Any) -> AbstractAsyncContextManager[Lines]:
        """A client's front; a context manager as `started`."""
        env = {**self.env, **options.pop("env", {})}
        options.setdefault("command", (*FRONT, *flags))
        return started(self.script, self.folder, env=env, **options)

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return owner(self.folder)

    @property
    def log(self) -> str:
        return (self.folder / hello.LOG_NAME).read_text(encoding="utf-8")


@contextmanager
def daemon(script: Path, folder: Path, more: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """`agent-graph daemon` in the foreground, ready to be connected to."""
    command = (sys.executable, "-m", "agent_graph", "daemon", "--data-dir", str(folder))
    with folder.with_name(f"{folder.name}.txt").open("wb") as said:  # no pipe, which nobody would empty
        process = subprocess.Popen(command, env=environment(script, more), stderr=said)
    try:
        until_up(folder)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=END_S)


def until_up(folder: Path) -> None:
    """Wait for a daemon that another process starts."""
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        try:
            connected(folder / hello.SOCKET_NAME).close()
            return
        except OSError:
            time.sleep(0.01)  # another process: there is nothing to be woken by
    raise AssertionError("no daemon came up")
