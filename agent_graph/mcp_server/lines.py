"""A client's two streams of bytes as lines: standard input and output, on descriptors nothing else can reach.

Reading and writing happen on daemon threads over bare descriptors: a client that neither writes nor reads cannot keep
the process from ending. The reader also notices a client that closed its end of our standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from queue import SimpleQueue
from typing import Any, Final, Protocol

from agent_graph.system.modules import optional

CHUNK: Final = 64 * 1024
END_OF_INPUT: Final = "end of input"
STANDARD: Final = 3
LINE_BYTES: Final = 96 * 1024 * 1024
"""What one line may hold: more than any argument may, so that a refusal can say which limit was passed."""

TooLong: Final = b""
"""Stands for a line of more than `LINE_BYTES`, which was not kept; a real line is never empty."""


_poll: Any = getattr(select, "poll", None)
_POLLIN: Final[int] = getattr(select, "POLLIN", 1)
_windows: Any = optional("msvcrt")


class Lines(Protocol):
    """What a session needs of its client."""

    def start(self, *, on_line: Callable[[bytes], Awaitable[None]], on_end: Callable[[str], None]) -> None:
        """Hand over each line, one after another, on the event loop; then say once why there will be no more."""
        ...

    async def write(self, line: bytes) -> None:
        """In the system's hands when this returns. Raises ConnectionError when nobody reads."""
        ...


class Splitter:
    """Cuts what comes in at its line ends. A line of more than `LINE_BYTES` becomes `TooLong`, an empty one nothing."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that are whole now."""
        first, *others = chunk.split(b"\n")
        self._rest += first
        for other in others:
            yield from self.rest()
            self._rest += other
        if len(self._rest) > LINE_BYTES:
            self._skipping = True
        if self._skipping:
            self._rest.clear()

    def rest(self) -> Iterator[bytes]:
        """What stands after the last line end, as a line."""
        line, skipped = bytes(self._rest), self._skipping
        self._rest, self._skipping = bytearray(), False
        if skipped or len(line) > LINE_BYTES:
            yield TooLong
        elif line.strip():
            yield line


class StdioLines:
    """A client on a pair of descriptors."""

    def __init__(self, descriptors: tuple[int, int]) -> None:
        self._descriptors = descriptors
        self._writer = Writer(descriptors[1])

    def start(self, *, on_line: Callable[[bytes], Awaitable[None]], on_end: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()

        async def take(line: bytes) -> None:
            await on_line(line)

        def hand_over(line: bytes) -> None:
            """Returns when the line was taken, so that a fast client waits for a slow server."""
            taking = take(line)
            try:
                taken = asyncio.run_coroutine_threadsafe(taking, loop)
            except RuntimeError:  # the loop is closed
                taking.close()
                raise
            taken.result()

        def end(why: str) -> None:
            loop.call_soon_threadsafe(on_end, why)

        self._writer.start()
        Reader(*self._descriptors, on_line=hand_over, on_end=end).start()

    async def write(self, line: bytes) -> None:
        await self._writer.write(line)


def take_descriptors() -> tuple[int, int]:
    """Keep standard input and output for the protocol, for the rest of the process's life.

    Whoever prints from now on, here or in a child, prints to standard error; whoever reads finds nothing. Raises
    `OSError` when they are closed.
    """
    reading, writing = _copy(0), _copy(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing


def _copy(descriptor: int) -> int:
    """A second descriptor of the same file that no child inherits and that is none of the three standard ones."""
    low, made = [], os.dup(descriptor)
    while made < STANDARD:  # some are closed
        low.append(made)
        made = os.dup(descriptor)
    for each in low:
        os.close(each)
    if _windows is not None:
        _windows.setmode(made, getattr(os, "O_BINARY", 0))
    return made


class Reader:
    """Hands over each line; then says once why there will be no more: ``end of input`` or ``nobody reads``."""

    def __init__(
        self, reading: int, writing: int, *, on_line: Callable[[bytes], None], on_end: Callable[[str], None]
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._on_line = on_line
        self._on_end = on_end
        self._splitter = Splitter()

    def start(self) -> None:
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(RuntimeError, CancelledError):  # the loop is closed: nobody listens any more
            self._on_end(self._read())

    def _read(self) -> str:
        while self._has_come():
            chunk = self._chunk()
            for line in self._splitter.feed(chunk) if chunk else self._splitter.rest():
                self._on_line(line)
            if not chunk:
                return END_OF_INPUT
        return "nobody reads"

    def _has_come(self) -> bool:
        """Wait for more input; False when nobody reads any more. Where nothing can be polled it is read at once, and
        that nobody reads is noticed by writing."""
        if _poll is None:
            return True
        watch = _poll()
        watch.register(self._reading, _POLLIN)
        watch.register(self._writing, 0)
        return self._reading in dict(watch.poll())

    def _chunk(self) -> bytes:
        try:
            return os.read(self._reading, CHUNK)
        except OSError:  # a terminal that hung up, a connection that was reset
            return b""


class Writer:
    """Writes lines one after another. Once a write failed nobody reads, and `write` raises `BrokenPipeError`."""

    def __init__(self, writing: int) -> None:
        self._writing = writing
        self._queue: SimpleQueue[tuple[bytes, asyncio.AbstractEventLoop, asyncio.Future[None]]] = SimpleQueue()

    def start(self) -> None:
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Durable in the pipe when this returns."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._queue.put((line, loop, written))
        await written

    def _run(self) -> None:
        broken = False
        while True:
            line, loop, written = self._queue.get()
            if not broken:
                broken = not self._put(line)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, written, broken)

    def _put(self, line: bytes) -> bool:
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._writing, view) :]
        except OSError:
            return False
        return True


def _settle(written: asyncio.Future[None], broken: bool) -> None:
    if written.done():
        return
    if broken:
        written.set_exception(BrokenPipeError("nobody reads"))
    else:
        written.set_result(None)
