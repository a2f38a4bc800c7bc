"""The client of a front: what it says on standard input, and whether it is still there; the standard library alone."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

CHUNK = 256 * 1024
LOOK_S = 1.0
"""Seconds between two looks at whether whoever started us is still there."""
FULL_S = 0.02
"""Seconds between two looks at whether there is room again for what the client says."""
_poll: Any = getattr(select, "poll", None)
_POLLIN: int = getattr(select, "POLLIN", 1)


class PolledClient:
    """Looks at both of the client's streams at once, where they can be polled."""

    def __init__(self, *, room: Callable[[], bool]) -> None:
        """`room` says whether there is room for more."""
        self._room = room
        self._over = False
        self._wake = os.pipe()

    def chunks(self) -> Iterator[bytes]:
        """What it says, b"" at the end of it; ends early when nobody is there any more, or `stop` was called."""
        watch, parent = _poll(), os.getppid()
        watch.register(1, 0)
        watch.register(self._wake[0], _POLLIN)
        while not self._over:
            room = self._room()
            if room:
                watch.register(0, _POLLIN)
            else:
                watch.unregister(0)
            ready = dict(watch.poll((LOOK_S if room else FULL_S) * 1000))
            if 0 in ready:
                yield _chunk()
            elif 1 in ready or os.getppid() != parent:
                return

    def reads(self) -> bool:
        """It has not closed its end of standard output."""
        watch = _poll()
        watch.register(1, 0)
        return not watch.poll(0)

    def stop(self) -> None:
        """End `chunks`."""
        self._over = True
        os.write(self._wake[1], b"-")


class AwaitedClient:
    """Has a thread wait for what it says, where nothing else can. That nobody reads is noticed by writing."""

    def __init__(self, *, room: Callable[[], bool]) -> None:
        """`room` says whether there is room for more."""
        self._room = room
        self._over = False
        self._changed = threading.Condition()
        self._came: bytes | None = None

    def chunks(self) -> Iterator[bytes]:
        """As those of `PolledClient`."""
        threading.Thread(target=self._take, name="from the client", daemon=True).start()
        parent = os.getppid()
        while not self._over:
            if not self._room():
                time.sleep(FULL_S)
                continue
            with self._changed:
                if self._came is None and not self._over:
                    self._changed.wait(LOOK_S)  # not for ever: Windows brings no signal to a thread that waits so
                came, self._came = self._came, None
                self._changed.notify_all()
            if came is not None:
                yield came
            elif os.getppid() != parent:
                return

    def reads(self) -> bool:
        """As far as is known."""
        return True

    def stop(self) -> None:
        """End `chunks`; the thread waits on, and ends with the process."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _take(self) -> None:
        chunk = b"-"
        while chunk:
            chunk = _chunk()
            with self._changed:
                while self._came is not None:
                    self._changed.wait()
                self._came = chunk
                self._changed.notify_all()


def client(*, room: Callable[[], bool]) -> PolledClient | AwaitedClient:
    """The client of this process, in the way this system has."""
    return AwaitedClient(room=room) if _poll is None else PolledClient(room=room)


def _chunk() -> bytes:
    try:
        return os.read(0, CHUNK)
    except OSError:  # a terminal that hung up
        return b""
