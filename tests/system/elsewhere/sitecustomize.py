"""Makes an interpreter like one on a system without Unix's own things, where PYTHONPATH names this folder.

What Windows lacks is taken away (modules, Unix sockets, poll, fork, user numbers, SIGHUP, file modes by descriptor,
watching descriptors and signals in the event loop), and what it has in place of them is put there, made of what this
system has: `msvcrt`, and a socket pair over loopback. So this shows that nothing of ours asks for what is not there; it
does not show that Windows does what its documentation says.
"""

from __future__ import annotations

import asyncio.selector_events
import asyncio.unix_events
import builtins
import errno
import fcntl
import importlib
import os
import select
import shutil
import signal
import socket
import struct
import sys
import types
from typing import Any

MODULES = {name: importlib.import_module(name) for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty")}
GONE: dict[Any, tuple[str, ...]] = {
    asyncio: ("open_unix_connection", "start_unix_server"),
    os: (
        "O_DIRECTORY", "O_NOFOLLOW", "chown", "fchmod", "fork", "forkpty", "getegid", "geteuid", "getgid", "getpgid",
        "getpgrp", "getuid", "killpg", "pread", "pwrite", "setsid", "statvfs", "sysconf", "uname",
    ),
    select: ("poll",),
    signal: ("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2"),
    socket: ("AF_UNIX", "SO_PEERCRED"),
}  # fmt: skip


def _socketpair(family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> Any:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    return theirs, ours


def _locking(descriptor: int, mode: int, count: int) -> None:
    """One range of bytes from where the file stands, for this open file alone, as Windows has it."""
    start = os.lseek(descriptor, 0, os.SEEK_CUR)
    kind = fcntl.F_UNLCK if mode == msvcrt.LK_UNLCK else fcntl.F_WRLCK
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, count, 0))
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "somebody else has locked it") from None


def _imported(name: str, into: Any = None, *more: Any, **named: Any) -> Any:
    """What others import: they ask which system this is, and it still says Linux."""
    ours = into is None or str(into.get("__name__")).startswith("agent_graph")
    return MODULES[name] if name in MODULES and not ours else _import(name, into, *more, **named)


_import = builtins.__import__
builtins.__import__ = _imported
msvcrt: Any = types.ModuleType("msvcrt")
msvcrt.LK_UNLCK, msvcrt.LK_NBLCK, msvcrt.LK_NBRLCK = 0, 2, 4
msvcrt.locking = _locking
msvcrt.setmode = lambda descriptor, flags: flags

_unix, _base = asyncio.unix_events._UnixSelectorEventLoop, asyncio.selector_events.BaseSelectorEventLoop
GONE[_unix] = ("add_signal_handler", "remove_signal_handler")
GONE[_base] = ("add_reader",)
_free = os.statvfs


def _disk_usage(path: Any) -> Any:
    found = _free(path)
    sizes = (found.f_blocks, found.f_blocks - found.f_bfree, found.f_bavail)
    return shutil._ntuple_diskusage(*(blocks * found.f_frsize for blocks in sizes))


shutil.disk_usage = _disk_usage
socket.socketpair = _socketpair  # type: ignore[assignment]
for place, names in GONE.items():
    for name in names:
        if hasattr(place, name):
            delattr(place, name)
os.supports_fd.discard(os.utime)
sys.modules.update(dict.fromkeys(MODULES))  # type: ignore[arg-type]  # None: there is no such module
sys.modules["msvcrt"] = msvcrt
