"""How a socket in a data folder is reached, and who is at its other end; imports the standard library alone."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SHORT = 100
"""Bytes of a path that fit a socket's address on every system (the smallest room is 104)."""
ANSWER_S = 5.0
"""Seconds a call on a socket of ours may take."""
_DESCRIPTORS = "/proc/self/fd"


def connected(path: str | os.PathLike[str]) -> socket.socket:
    """A connection to whoever listens at `path`. Raises OSError when nobody does, or somebody who is not this user."""
    made = unix_socket()
    try:
        with address(path) as short:
            made.connect(short)
        if not is_same_user(made):
            raise ConnectionRefusedError("another user listens there")
    except OSError:
        made.close()
        raise
    return made


def unix_socket() -> socket.socket:
    """One that is not connected yet."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(ANSWER_S)
    return made


def is_same_user(connection: socket.socket) -> bool:
    """The process at the other end belongs to this user; where the system does not tell, the file's mode decides."""
    if sys.platform == "darwin":  # not tried: struct xucred is (version, uid, groups)
        packed = connection.getsockopt(0, getattr(socket, "LOCAL_PEERCRED", 1), 76)
        return bool(struct.unpack("2I", packed[:8])[1] == os.geteuid())
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    packed = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return bool(struct.unpack("3i", packed)[1] == os.geteuid())


@contextmanager
def address(path: str | os.PathLike[str]) -> Iterator[str]:
    """A name of the socket `path` that is short enough to be an address, however deep its folder lies."""
    if len(os.fsencode(path)) <= SHORT:
        yield os.fspath(path)
        return
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not os.path.exists(f"{_DESCRIPTORS}/{descriptor}"):
            raise OSError(None, "the path is too long for a socket; choose a data folder that is less deep")
        yield f"{_DESCRIPTORS}/{descriptor}/{name}"
    finally:
        os.close(descriptor)
