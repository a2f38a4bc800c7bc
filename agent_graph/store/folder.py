"""The data folder as the operating system sees it: made private and checked; may not look into any file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from agent_graph.errors import StoreUnusable

DATABASE_NAME: Final = "agent-graph.db"
"""The database's name in a data folder."""

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
_ELSEWHERE: Final = "Choose another data folder, or give this one to the user who runs the program."


def prepare_folder(folder: Path) -> None:
    """Make the data folder, readable by its owner alone, or check that the one there can be used.

    Raises `StoreUnusable`; a folder that was there keeps its mode.
    """
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
        folder.chmod(PRIVATE_FOLDER)  # mkdir's mode is cut by the umask
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreUnusable(
            f"The data folder {folder} cannot be made: {error.strerror}. {_ELSEWHERE}", path=str(folder)
        ) from error
    if not folder.is_dir():
        raise StoreUnusable(f"The data folder {folder} is not a folder. Choose another.", path=str(folder))
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise StoreUnusable(
            f"The data folder {folder} cannot be written to by this user. {_ELSEWHERE}", path=str(folder)
        )


def place_file(path: Path) -> None:
    """See to it that `path` is an ordinary file: made empty and private where there is none, else left alone.

    Raises `StoreUnusable`, also for a symbolic link: whoever can plant one would choose which file we write to.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        _make_file(path)
        return
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be read: {error.strerror}. {_ELSEWHERE}", path=str(path)) from error
    if stat.S_ISLNK(mode):
        raise StoreUnusable(
            f"{path} is a symbolic link, and those are not followed. Name the real folder instead.", path=str(path)
        )
    if not stat.S_ISREG(mode):
        raise StoreUnusable(f"{path} is not an ordinary file. Choose another data folder.", path=str(path))
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreUnusable(f"{path} cannot be written to by this user. {_ELSEWHERE}", path=str(path))


def _make_file(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:  # another process was faster
        return
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be made: {error.strerror}. {_ELSEWHERE}", path=str(path)) from error
    try:
        os.fchmod(descriptor, PRIVATE_FILE)  # open's mode is cut by the umask
    finally:
        os.close(descriptor)
