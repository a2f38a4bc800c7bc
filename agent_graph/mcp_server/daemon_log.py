"""The log of a daemon that nobody watches: a file in the data folder that is begun anew before it grows large."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from agent_graph.mcp_server.hello import LOG_NAME
from agent_graph.system.files import make_private

MOST_BYTES: Final = 1024 * 1024
KEPT: Final = 3
"""Older files beside the newest: daemon.log.1 and so on."""
OUTPUTS: Final = (1, 2)


class _Log(RotatingFileHandler):
    """The newest file is standard output and error too: what a tool's process or a library prints is in the log."""

    def _open(self):  # type: ignore[no-untyped-def]  # its type is private to the library
        stream = super()._open()
        make_private(stream.fileno())
        for descriptor in OUTPUTS:
            os.dup2(stream.fileno(), descriptor)
        return stream


def set_aside(path: str, older: str, *, move: Callable[[str, str], object] = os.replace) -> None:
    """Give the newest file an older one's name. Windows moves no file that is open, and a child that has it as its
    standard error keeps it so: there it is copied and emptied. Raises OSError."""
    try:
        move(path, older)
    except PermissionError:
        shutil.copyfile(path, older)
        os.truncate(path, 0)


def log_to_file(folder: Path, *, level: str) -> None:
    """From here on everything this process says goes into the log of `folder`. Raises OSError."""
    os.umask(0o077)
    path = folder / LOG_NAME
    handler = _Log(path, maxBytes=MOST_BYTES, backupCount=KEPT, encoding="utf-8", errors="backslashreplace")
    handler.rotator = set_aside
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
