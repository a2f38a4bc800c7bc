"""The socket through which a data folder's owner is reached: where it lies, who may use it, what a line is.

A Unix socket of mode 0600 in the data folder, or what `socket_door` puts in its place. Whoever connects sends one line
of JSON and reads lines of JSON:

* ``{"tool": NAME, "arguments": {...}, "client": TEXT}`` is answered by one line, the tool's envelope; beside it
  ``"approver": NAME, "secret": TEXT`` prove that an approver is there;
* ``{"watch": RUN_ID, "cursor": SEQ}`` by an envelope and then, when that says ok, by the items of `live.follow`;
* ``{"settings": [NAME, ...]}`` by an envelope with the owner's ``pid`` and the values in force there.

The channel of a decision that comes this way is ``cli``, whatever the line says.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, compact
from agent_graph.core.limits import Limits
from agent_graph.errors import InputInvalid, StoreUnusable
from agent_graph.tools.socket_address import address, unix_socket

SOCKET_NAME: Final = "owner.sock"
REPLY_BYTES: Final = 256 * 1024 * 1024
"""The longest line a client reads: a whole state, escaped."""


def request_bytes(limits: Limits) -> int:
    """The longest line an owner reads: the largest spec or input, escaped, and what goes around it."""
    return 2 * max(limits.spec_bytes, limits.input_bytes) + 1024 * 1024


def line(message: JsonObject) -> bytes:
    """One message. Raises `InputInvalid` for a text that is no Unicode."""
    try:
        return compact(message).encode() + b"\n"
    except UnicodeEncodeError:
        raise InputInvalid("a lone surrogate in a string") from None


def listening(path: Path) -> socket.socket:
    """A new socket at `path`, in place of one a dead owner left; call it only while holding the folder's lock."""
    remove(path)
    made = unix_socket()
    try:
        if sys.platform == "linux":  # what it makes the file with: there is no moment in which it is open
            os.fchmod(made.fileno(), 0o600)
        with address(path) as short:
            made.bind(short)
        path.chmod(0o600)
        made.listen(64)
    except OSError as error:
        made.close()
        raise StoreUnusable(f"{path} cannot be made: {error.strerror or error}", path=str(path)) from error
    return made


def remove(path: Path) -> None:
    """Take the socket away, if one is there. Raises `StoreUnusable` when something else has its name."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StoreUnusable(f"{path} is not a socket; move it away, or choose another data folder", path=str(path))
        path.unlink()
    except FileNotFoundError:
        return
