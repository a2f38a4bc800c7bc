"""A file that one process at a time holds, by whatever lock the system has; may not look at what the file says.

Where there is `fcntl` it is ``flock``. Elsewhere (Windows: written for, not tried) it is one byte, locked by `msvcrt`:
such a lock keeps others from reading what is locked, so it lies far behind anything a file of ours says. Either is the
kernel's, and ends with its process however that ends.
"""

from __future__ import annotations

import os
import time
from typing import Final

from agent_graph.system.modules import optional

BYTE: Final = 1 << 30
"""Which byte is locked, where bytes are: no file of ours is so long, and none needs to be."""
BETWEEN_TRIES_S: Final = 0.01
_whole = optional("fcntl")
_ranges = optional("msvcrt")


def take(descriptor: int) -> bool:
    """Hold the open file until it is closed; False when somebody else does, or is just looking whether anybody does.

    The place in the file at which it is read next may change. Raises OSError for a file that cannot be locked.
    """
    if _whole is None:
        return _take_byte(descriptor)
    return _flock(descriptor, _whole.LOCK_EX | _whole.LOCK_NB)


def wait(descriptor: int) -> None:
    """Hold it as soon as nobody else does; blocks the thread. Raises OSError."""
    if _whole is not None:
        _whole.flock(descriptor, _whole.LOCK_EX)
        return
    while not _take_byte(descriptor):
        time.sleep(BETWEEN_TRIES_S)  # msvcrt waits no shorter than a second


def free(descriptor: int) -> bool:
    """Nobody holds the file. Looking means holding it, until it is closed at the latest. Raises OSError."""
    if _whole is not None:
        return _flock(descriptor, _whole.LOCK_SH | _whole.LOCK_NB)  # lookers do not keep each other out
    if not _take_byte(descriptor):
        return False
    os.lseek(descriptor, BYTE, os.SEEK_SET)
    _ranges.locking(descriptor, _ranges.LK_UNLCK, 1)
    return True


def _flock(descriptor: int, how: int) -> bool:
    try:
        _whole.flock(descriptor, how)
    except BlockingIOError:
        return False
    return True


def _take_byte(descriptor: int) -> bool:
    os.lseek(descriptor, BYTE, os.SEEK_SET)
    try:
        _ranges.locking(descriptor, _ranges.LK_NBLCK, 1)
    except PermissionError:  # EACCES: somebody has it
        return False
    return True
