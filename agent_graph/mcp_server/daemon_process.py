"""`agent-graph daemon` as a process: from the folder's lock to its last client, and what it tells its starter."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_graph.errors import AgentGraphError, DaemonUnreachable, DataDirLocked, SettingInvalid
from agent_graph.mcp_server import hello
from agent_graph.mcp_server.daemon_log import log_to_file
from agent_graph.mcp_server.serve import end_soon, say
from agent_graph.settings import MEMORY, Settings, load
from agent_graph.system.event_loop import on_signal
from agent_graph.tools import socket_door
from agent_graph.tools.socket_address import connected

if TYPE_CHECKING:
    from agent_graph.mcp_server.daemon import Daemon
    from agent_graph.tools.deps import Deps

log = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""Seconds to wait for a folder that a command owns: most own it for a moment."""
STOP_S: Final = 10.0
BETWEEN_LOOKS_S: Final = 0.05


def start(flags: Mapping[str, str], *, detached: bool, socket_path: str = "") -> int:
    """Own the folder and serve it until a signal, `agent-graph daemon --stop` or idleness; returns the exit code.

    A detached one was started by a front: it tells that on standard output that it is ready, or why it is not, and says
    everything else in its log. One that a person started stays unless an idle time was asked for.
    """
    also = Path(socket_path).absolute() if socket_path else None
    try:
        settings = load(flags)
        folder = _folder(settings)
    except AgentGraphError as refusal:
        return _refuse(refusal, detached=detached)
    if not detached:
        logging.basicConfig(
            level=settings.log.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
    log.setLevel(min(logging.INFO, logging.getLevelNamesMapping()[settings.log.upper()]))
    try:
        return asyncio.run(_serve(settings, folder, detached=detached, also=also))
    except AgentGraphError as refusal:
        return _refuse(refusal, detached=detached)


def stop(settings: Settings) -> int:
    """Ask the folder's daemon to end; returns the exit code, 0 also when there is none."""
    try:
        folder = _folder(settings)
    except AgentGraphError as refusal:
        return _refuse(refusal, detached=False)
    try:
        with connected(folder / hello.SOCKET_NAME) as connection:
            connection.settimeout(STOP_S)
            connection.sendall(hello.line({"stop": True}))
            while connection.recv(hello.MOST_BYTES):
                pass
    except TimeoutError:
        say(f"{DaemonUnreachable.code}: the daemon of {folder} does not answer: it is stopped or stuck")
        return DaemonUnreachable.exit_code
    except OSError:
        say("no daemon serves this data folder")
        return 0
    say("the daemon ends; what it drove goes on with the next")
    return 0


def _folder(settings: Settings) -> Path:
    if settings.data_dir is None:
        raise SettingInvalid(f"A daemon keeps a data folder, and {MEMORY} is none.", setting="data_dir")
    return settings.data_dir


def _refuse(refusal: AgentGraphError, *, detached: bool) -> int:
    code = 5 if isinstance(refusal, DataDirLocked) else refusal.exit_code
    if detached:
        _tell({
            "ok": False, "error_code": refusal.code, "error": refusal.message, "exit": code,
            "retryable": refusal.retryable or isinstance(refusal, DataDirLocked),
        })  # fmt: skip
    else:
        say(f"{refusal.code}: {refusal.message}")
    return code


def _tell(body: dict[str, Any]) -> None:
    """One line to the front that started this; it may have gone already."""
    try:
        os.write(1, b"\n" + hello.line(body))
    except OSError:
        log.debug("the front that started this daemon has gone")


async def _serve(settings: Settings, folder: Path, *, detached: bool, also: Path | None) -> int:
    async with AsyncExitStack() as opened:
        deps = await _opened(settings, folder, opened)
        if deps is None:
            _tell({"ok": True, "another": True})
            return 0
        with ExitStack() as closed:
            doors = [_door(path, settings, closed) for path in (folder / hello.SOCKET_NAME, also) if path is not None]
            if detached:
                _tell({"ok": True})
                log_to_file(folder, level=settings.log)
                os.chdir(folder)  # it keeps no other folder from being moved or unmounted
            stays = not detached and not settings.named("daemon_idle_ms")
            daemon = _daemon(deps, settings, stays=stays)
            with on_signal(daemon.leave):
                log.info("serving %s (process %d)", folder, os.getpid())
                for door in doors:
                    await door.open(daemon.connected, limit=hello.MOST_BYTES)
                log.info("leaving: %s", await daemon.run(idle_ms=0 if stays else settings.daemon_idle_ms))
        end_soon()
        await daemon.aclose()  # nobody finds it any more: who comes now starts the next, which waits for the folder
    return 0


@asynccontextmanager
async def fronts(deps: Deps, settings: Settings, *, on_stop: Callable[[], None]) -> AsyncIterator[None]:
    """Let the fronts of assistants in, for another server that owns the folder; `on_stop` hears `daemon --stop`. In
    memory there is nothing to find it by."""
    if settings.data_dir is None:
        yield
        return
    with ExitStack() as closed:
        door = _door(settings.data_dir / hello.SOCKET_NAME, settings, closed)
        daemon = _daemon(deps, settings, stays=True)
        asked = asyncio.create_task(daemon.run())
        asked.add_done_callback(lambda _: on_stop())
        await door.open(daemon.connected, limit=hello.MOST_BYTES)
        yield
    await daemon.aclose()
    await asked


def _door(path: Path, settings: Settings, closed: ExitStack) -> socket_door.Door:
    """One that takes connections from here on, before anybody answers them; it is closed with the stack."""
    made = socket_door.door(path, loopback=settings.loopback)
    closed.callback(made.close)
    return made


def _daemon(deps: Deps, settings: Settings, *, stays: bool = False) -> Daemon:
    gc.disable()  # importing makes many objects and no garbage
    from agent_graph.mcp_server.daemon import Daemon

    gc.freeze()
    gc.enable()
    return Daemon(deps, settings, stays=stays)


async def _opened(settings: Settings, folder: Path, opened: AsyncExitStack) -> Deps | None:
    """The folder's `Deps`; None when another daemon serves it. Raises what `open_app` does, `DataDirLocked` after
    `PATIENCE_S`."""
    from agent_graph.app import open_app

    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    while True:
        try:
            return await opened.enter_async_context(open_app(settings, recover=True, remark=log.warning))
        except DataDirLocked:
            if _answers(folder):
                return None
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(BETWEEN_LOOKS_S)  # another process's lock: there is nothing to be woken by


def _answers(folder: Path) -> bool:
    """Another daemon listens."""
    try:
        connected(folder / hello.SOCKET_NAME).close()
    except OSError:
        return False
    return True
