"""Starting a process that outlives whoever starts it; imports the standard library alone."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def start_apart(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start one that no signal to us, closed terminal or closed console reaches. Raises OSError.

    On Windows (written for, not tried) it has a console that is not shown, rather than none: programs that it starts
    would each open a window. It leaves the job of the client, where that lets it, so as not to end with it.
    """
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        try:
            return subprocess.Popen(command, creationflags=flags | subprocess.CREATE_BREAKAWAY_FROM_JOB, **options)
        except PermissionError:
            return subprocess.Popen(command, creationflags=flags, **options)
    else:
        return subprocess.Popen(command, start_new_session=True, **options)
