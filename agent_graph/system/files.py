"""Private files and files that take another's place, as far as the system knows of such things.

Where files have modes, what is private has mode 0600, in a folder of mode 0700. On Windows (written for, not tried)
they have none, and privacy rests on the folder: the default data folder lies in the user's profile, which others cannot
read, and one made with mode 0700 is its user's alone from Python 3.12.4 (3.11.10) on; an older folder keeps its rights.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Flag of `os.open` by which a symbolic link is refused, where there is one."""
OTHERS: Final = 0o077
BUSY_TRIES: Final = 100 if os.name == "nt" else 0
BETWEEN_TRIES_S: Final = 0.01


def others_may_use(mode: int) -> bool:
    """Whether a file of this mode is open to others than its owner; where files have no modes, that it does not say."""
    return hasattr(os, "geteuid") and bool(mode & OTHERS)


def make_private(descriptor: int) -> None:
    """Give an open file mode 0600, whatever the umask was; nothing where files have no mode. Raises OSError."""
    set_mode = getattr(os, "fchmod", None)
    if set_mode is not None:
        set_mode(descriptor, PRIVATE_FILE)


def replace(new: Path, path: Path, *, tries: int = BUSY_TRIES) -> None:
    """Put `new` in the place of `path` at once. Raises OSError.

    Windows does not move onto a file that somebody has open, such as a reader for a moment: there it is tried again,
    for a second.
    """
    for _ in range(tries):
        try:
            new.replace(path)
            return
        except PermissionError:
            time.sleep(BETWEEN_TRIES_S)
    new.replace(path)
