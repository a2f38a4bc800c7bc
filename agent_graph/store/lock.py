"""One owner of a data folder at a time, by a lock of the operating system; may not wait for it and reads no database.

The lock is the kernel's (``flock``), so it ends with its process however that ends: what a killed owner wrote into
the file is only a note of who it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, canonical, parse_json
from agent_graph.errors import DataDirLocked, InvalidRequest, StoreUnusable
from agent_graph.store.folder import PRIVATE_FILE, prepare_folder

LOCK_NAME: Final = "owner.lock"
_NOTE_BYTES: Final = 4_096
_LOOKS: Final = 20
_BETWEEN_LOOKS_S: Final = 0.005


class FolderLock:
    """A held lock; `release` it, or use it as an async context manager."""

    __slots__ = ("_descriptor", "folder")

    def __init__(self, folder: Path, *, descriptor: int) -> None:
        self.folder = folder
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the folder up; a second call does nothing. The file stays: removing it would race the next owner."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    async def __aenter__(self) -> FolderLock:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


async def lock_folder(folder: Path, *, now_ms: int, reach: str = "") -> FolderLock:
    """Become the owner of `folder`, which is made if need be.

    `now_ms` is written down as started_at_ms, `reach` (say, a socket's path) as the way to talk to this process.
    Raises `DataDirLocked` at once when somebody else is the owner (details: pid, started_at_ms, reach where known),
    and `StoreUnusable`.
    """
    prepare_folder(folder)
    path = folder / LOCK_NAME
    descriptor = _open(path)
    held = False
    try:
        owner: JsonObject = {}
        held = _take(descriptor, path)
        if not held:
            owner = await _owner(path)
            held = not owner and _take(descriptor, path)  # without a note it was one who only looked, or who has gone
        if not held:
            raise _locked(folder, owner)
    finally:
        if not held:
            os.close(descriptor)
    note = canonical({"pid": os.getpid(), "host": os.uname().nodename, "started_at_ms": now_ms, "reach": reach})
    with contextlib.suppress(OSError):  # a full disk takes no note, and the lock holds without it
        os.fchmod(descriptor, PRIVATE_FILE)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, note)
    return FolderLock(folder, descriptor=descriptor)


def _take(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be locked: {error.strerror}. Choose another data folder.") from error
    return True


async def owner_of(folder: Path) -> JsonObject | None:
    """Who owns `folder`, as it wrote itself down (pid, host, started_at_ms, reach); None when nobody does.

    Looks by taking the lock for a moment. Raises `StoreUnusable` when it cannot be looked at.
    """
    path = folder / LOCK_NAME
    if not path.exists():
        return None
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return await _owner(path)
    finally:
        os.close(descriptor)
    return None


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError as error:
        raise StoreUnusable(
            f"{path} cannot be opened: {error.strerror}. Choose another data folder.", path=str(path)
        ) from error


async def _owner(path: Path) -> JsonObject:
    """Who holds the lock; looked for a moment, since an owner writes its note just after it got the lock."""
    for _ in range(_LOOKS):
        note = _note(path)
        if note:
            return note
        await asyncio.sleep(_BETWEEN_LOOKS_S)
    return {}


def _note(path: Path) -> JsonObject:
    try:
        note = parse_json(path.read_bytes(), max_bytes=_NOTE_BYTES, max_depth=2)
    except (OSError, InvalidRequest):
        return {}
    return note if isinstance(note, dict) else {}


def _locked(folder: Path, owner: JsonObject) -> DataDirLocked:
    who = f"process {owner['pid']}" if "pid" in owner else "another process"
    if owner.get("host") not in (None, os.uname().nodename):
        who += f" on {owner['host']}"
    reach = owner.get("reach")
    through = f"Talk to it through {reach}, stop it" if reach else "Stop it"
    known = {name: value for name, value in owner.items() if value != ""}
    return DataDirLocked(
        f"The data folder {folder} is in use by {who}. {through}, or choose another data folder.",
        path=str(folder),
        **known,
    )
