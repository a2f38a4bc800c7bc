"""What asyncio's loop can do on some systems alone: hear signals, and watch standard input."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""What asks a program to stop in order; the last is Windows' own."""


@contextmanager
def on_signal(end: Callable[[str], None]) -> Iterator[None]:
    """Have `end` called on the loop with the signal's name when one of `SIGNALS` comes, until the block ends."""
    loop = asyncio.get_running_loop()
    if _can(loop, "add_signal_handler"):
        for number in SIGNALS:
            loop.add_signal_handler(number, end, f"signal {number.name}")
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
    else:
        with _handled(lambda name: loop.call_soon_threadsafe(end, name)):
            yield


@contextmanager
def _handled(end: Callable[[str], object]) -> Iterator[None]:
    def hear(number: int, frame: Any) -> None:
        end(f"signal {signal.Signals(number).name}")

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


async def typed(descriptor: int, most: int) -> bytes:
    """What is typed there next, at most so many bytes, b"" at its end. Cancelling leaves it to whoever asks next."""
    loop = asyncio.get_running_loop()
    if not _can(loop, "add_reader"):
        return await _by_thread(descriptor, most)
    came: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not came.done():
            came.set_result(os.read(descriptor, most))

    loop.add_reader(descriptor, read)
    try:
        return await came
    finally:
        loop.remove_reader(descriptor)


def _can(loop: asyncio.AbstractEventLoop, ability: str) -> bool:
    """Where a system lacks it, the method of the abstract loop is left, which only raises."""
    return getattr(type(loop), ability) is not getattr(asyncio.AbstractEventLoop, ability)


# -- a thread that reads, where nothing tells that there is something to be read ---------------------------------------

_Asked = tuple[asyncio.AbstractEventLoop, "asyncio.Future[bytes]"]
_readers: dict[int, _Reader] = {}


class _Reader:
    """Reads one descriptor, one piece whenever somebody asks. A read cannot be called back: what it brings after the
    question was is kept for the next."""

    def __init__(self, descriptor: int, most: int) -> None:
        self._descriptor = descriptor
        self._most = most
        self._lock = threading.Lock()
        self._reading = False
        self._asked: _Asked | None = None
        self._kept: bytes | None = None

    def ask(self, asked: _Asked) -> None:
        with self._lock:
            if self._kept is not None:
                _settle(asked[1], self._kept)
                self._kept = None
                return
            self._asked = asked
            if not self._reading:
                self._reading = True
                threading.Thread(target=self._read, name="typed", daemon=True).start()

    def _read(self) -> None:
        try:
            came = os.read(self._descriptor, self._most)
        except OSError:  # the console has gone
            came = b""
        with self._lock:
            self._reading = False
            asked, self._asked = self._asked, None
            if asked is None or asked[1].cancelled() or asked[0].is_closed():
                self._kept = came
            else:
                asked[0].call_soon_threadsafe(_settle, asked[1], came)


def _settle(waiting: asyncio.Future[bytes], came: bytes) -> None:
    if not waiting.done():
        waiting.set_result(came)


async def _by_thread(descriptor: int, most: int) -> bytes:
    reader = _readers.setdefault(descriptor, _Reader(descriptor, most))
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[bytes] = loop.create_future()
    reader.ask((loop, waiting))
    return await waiting
