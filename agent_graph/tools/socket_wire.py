"""The socket through which a data folder's owner is reached: where it lies, who may use it, what a line is.

A Unix socket of mode 0600 in the data folder. Whoever connects sends one line of JSON and reads lines of JSON:

* ``{"tool": NAME, "arguments": {...}, "client": TEXT}`` is answered by one line, the tool's envelope;
* ``{"watch": RUN_ID, "cursor": SEQ}`` by an envelope and then, when that says ok, by the items of `live.follow`.

The channel of a decision that comes this way is ``cli``, whatever the line says.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, compact
from agent_graph.core.limits import Limits
from agent_graph.errors import InputInvalid, StoreUnusable

SOCKET_NAME: Final = "owner.sock"
REPLY_BYTES: Final = 256 * 1024 * 1024
"""The longest line a client reads: a whole state, escaped."""
_SHORT: Final = 100
"""Bytes of a path that fit a socket's address on every system (the smallest room is 104)."""
_DESCRIPTORS: Final = Path("/proc/self/fd")


def request_bytes(limits: Limits) -> int:
    """The longest line an owner reads: the largest spec or input, escaped, and what goes around it."""
    return 2 * max(limits.spec_bytes, limits.input_bytes) + 1024 * 1024


def line(message: JsonObject) -> bytes:
    """One message. Raises `InputInvalid` for a text that is no Unicode."""
    try:
        return compact(message).encode() + b"\n"
    except UnicodeEncodeError:
        raise InputInvalid("a lone surrogate in a string") from None


def listening(folder: Path) -> socket.socket:
    """A new socket in `folder`, in place of one a dead owner left; call it only while holding the folder's lock."""
    path = folder / SOCKET_NAME
    remove(folder)
    made = _socket()
    try:
        os.fchmod(made.fileno(), 0o600)  # what Linux makes the file with: there is no moment in which it is open
        with _address(folder) as address:
            made.bind(address)
        path.chmod(0o600)
        made.listen(64)
    except OSError as error:
        made.close()
        raise StoreUnusable(f"{path} cannot be made: {error.strerror or error}", path=str(path)) from error
    return made


def connected(folder: Path) -> socket.socket:
    """A connection to the owner of `folder`. Raises OSError when nobody listens, or somebody who is not this user."""
    made = _socket()
    try:
        with _address(folder) as address:
            made.connect(address)
        if not is_same_user(made):
            raise ConnectionRefusedError("another user listens there")
    except OSError:
        made.close()
        raise
    return made


def remove(folder: Path) -> None:
    """Take the socket away, if one is there. Raises `StoreUnusable` when something else has its name."""
    path = folder / SOCKET_NAME
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StoreUnusable(f"{path} is not a socket; move it away, or choose another data folder", path=str(path))
        path.unlink()
    except FileNotFoundError:
        return


def is_same_user(connection: socket.socket) -> bool:
    """The process at the other end belongs to this user; where the system does not tell, the file's mode decides."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    packed = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return bool(struct.unpack("3i", packed)[1] == os.geteuid())


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(5.0)
    return made


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """A path of the socket that is short enough to be an address, however deep the folder lies."""
    path = str(folder / SOCKET_NAME)
    if len(os.fsencode(path)) <= _SHORT:
        yield path
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not (_DESCRIPTORS / str(descriptor)).exists():
            raise OSError(None, "the path is too long for a socket; choose a data folder that is less deep")
        yield f"{_DESCRIPTORS}/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)
