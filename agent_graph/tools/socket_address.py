"""How the owner of a data folder is reached, and who is at the other end; imports the standard library alone.

By a socket in the folder, where the system has such sockets; else through loopback, see `socket_loopback`.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SHORT = 100
"""Bytes of a path that fit a socket's address on every system (the smallest room is 104, on macOS)."""
ANSWER_S = 5.0
"""Seconds a call on a socket of ours may take."""
_DESCRIPTORS = "/proc/self/fd"


def connected(path: str | os.PathLike[str]) -> socket.socket:
    """A connection to the owner whose socket is, or would be, at `path`.

    Raises OSError when nobody is there, or somebody who is not this user.
    """
    if has_room(path) and not os.path.exists(door_of(path)):
        return _through_folder(path)
    from agent_graph.tools import socket_loopback

    return socket_loopback.connected(door_of(path))


def door_of(path: str | os.PathLike[str]) -> str:
    """The file that says how the owner is reached where it has no socket at `path`."""
    return os.path.splitext(os.fspath(path))[0] + ".door"


def found_at(path: str | os.PathLike[str], *, loopback: bool) -> str:
    """The file by which an owner is found that lets others in at `path`, or through `loopback` where that is wanted."""
    return os.fspath(path) if has_room(path) and not loopback else door_of(path)


def has_room(path: str | os.PathLike[str]) -> bool:
    """A socket can be at `path`: the system has them, and the path is short enough or has a short name."""
    if not hasattr(socket, "AF_UNIX"):
        return False
    return len(os.fsencode(path)) <= SHORT or os.path.exists(_DESCRIPTORS)


def _through_folder(path: str | os.PathLike[str]) -> socket.socket:
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
    family: int = getattr(socket, "AF_UNIX", 0)
    made = socket.socket(family, socket.SOCK_STREAM)
    made.settimeout(ANSWER_S)
    return made


def is_same_user(connection: socket.socket) -> bool:
    """The process at the other end belongs to this user; where the system does not tell, the file's mode decides."""
    me, option = getattr(os, "geteuid", None), getattr(socket, "SO_PEERCRED", None)
    if sys.platform == "darwin":  # not tried: struct xucred is (version, uid, groups)
        packed = connection.getsockopt(0, getattr(socket, "LOCAL_PEERCRED", 1), 76)
        peer = struct.unpack("2I", packed[:8])[1]
    elif option is None:
        return True
    else:
        packed = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
        peer = struct.unpack("3i", packed)[1]
    return me is None or bool(peer == me())


@contextmanager
def address(path: str | os.PathLike[str]) -> Iterator[str]:
    """A name of the socket `path` that is short enough to be an address, however deep its folder lies.

    Ask `has_room` before.
    """
    if len(os.fsencode(path)) <= SHORT:
        yield os.fspath(path)
        return
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        yield f"{_DESCRIPTORS}/{descriptor}/{name}"
    finally:
        os.close(descriptor)
