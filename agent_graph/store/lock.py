"""One owner of a data folder at a time, by a lock of the operating system; may not wait for it and reads no database.

The lock is the kernel's (`system.locks`), so it ends with its process however that ends: what a killed owner wrote into
the file is only a note of who it was. The file's time of change is the owner's latest sign of life: that costs no write
of ours, and one that is stopped or stuck gives none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, canonical, parse_json
from agent_graph.errors import DataDirLocked, InvalidRequest, StoreUnusable
from agent_graph.store.folder import prepare_folder
from agent_graph.store.guard import identity
from agent_graph.system import locks
from agent_graph.system.files import NO_LINK, PRIVATE_FILE, make_private

LOCK_NAME: Final = "owner.lock"
SILENT_MS: Final = 10_000
"""Without a sign of life for so long, which is several that were due, an owner is stopped or stuck."""
_NOTE_BYTES: Final = 4_096
_LOOKS: Final = 20
_BETWEEN_LOOKS_S: Final = 0.005
_TRIES: Final = 2
"""Whoever looks whether a folder has an owner holds its lock for a moment: a second try finds them gone."""


class FolderLock:
    """A held lock; `release` it, or use it as an async context manager."""

    __slots__ = ("_descriptor", "_note", "folder", "had_database")

    def __init__(self, folder: Path, *, descriptor: int, note: JsonObject, had_database: bool) -> None:
        self.folder = folder
        self.had_database = had_database
        """An owner before this one had a database here."""
        self._descriptor = descriptor
        self._note = note

    @property
    def path(self) -> Path:
        """The file that is locked."""
        return self.folder / LOCK_NAME

    def beat(self) -> None:
        """Give a sign of life. A disk that takes none keeps nobody from working."""
        with contextlib.suppress(OSError):
            os.utime(self._descriptor if os.utime in os.supports_fd else self.path)

    def note_database(self) -> None:
        """Write down that there is a database, for owners to come: one that is gone then is not made anew."""
        self._note["database"] = True
        _write(self._descriptor, self._note)

    def release(self) -> None:
        """Give the folder up; a second call does nothing. The file stays: removing it would race the next owner."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            _write(descriptor, {"database": True} if self._note.get("database") or self.had_database else {})
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
    descriptor = await _taken(folder, path, now_ms=now_ms)
    note: JsonObject = {"pid": os.getpid(), "host": socket.gethostname(), "started_at_ms": now_ms, "reach": reach}
    had_database = bool(_note(path).get("database"))
    if had_database:
        note["database"] = True
    with contextlib.suppress(OSError):
        make_private(descriptor)
    _write(descriptor, note)
    return FolderLock(folder, descriptor=descriptor, note=note, had_database=had_database)


def had_database(folder: Path) -> bool:
    """Whether some owner of `folder`, one that has gone or not, had a database in it."""
    return bool(_note(folder / LOCK_NAME).get("database"))


async def _taken(folder: Path, path: Path, *, now_ms: int) -> int:
    """The locked file. Raises `DataDirLocked`, `StoreUnusable`."""
    while True:
        descriptor = _open(path)
        held = False
        try:
            for _ in range(_TRIES):
                held = held or _take(descriptor, path)
                if not held:
                    await asyncio.sleep(_BETWEEN_LOOKS_S)
            if not held:
                owner = await _owner(path)
                held = not owner and _take(descriptor, path)  # without a note: one who has gone
                if not held:
                    raise locked(folder, owner, now_ms=now_ms)
            held = identity(path) == _identity_of(descriptor)
            if held:
                return descriptor  # else the file was removed while we waited for it, and another may be locked
        finally:
            if not held:
                os.close(descriptor)


def _identity_of(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _write(descriptor: int, note: JsonObject) -> None:
    """What the file says; a full disk takes no note, and the lock holds without it."""
    with contextlib.suppress(OSError):
        text = canonical(note) if note else b""
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, text)
        os.ftruncate(descriptor, len(text))  # last: one that was emptied has to find room on the disk anew


def _take(descriptor: int, path: Path) -> bool:
    try:
        return locks.take(descriptor)
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be locked: {error.strerror}. Choose another data folder.") from error


async def owner_of(folder: Path) -> JsonObject | None:
    """Who owns `folder`, as it wrote itself down (pid, host, started_at_ms, reach), and `alive_at_ms`, when it gave its
    latest sign of life; None when nobody does.

    Looks by taking the lock for a moment. Raises `StoreUnusable` when it cannot be looked at.
    """
    path = folder / LOCK_NAME
    if not path.exists():
        return None
    descriptor = _open(path)
    try:
        for _ in range(_TRIES):
            if locks.free(descriptor):
                return None
            await asyncio.sleep(_BETWEEN_LOOKS_S)  # it may be somebody who only looked, as we do
    finally:
        os.close(descriptor)
    return await _owner(path)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, PRIVATE_FILE)
    except OSError as error:
        raise StoreUnusable(
            f"{path} cannot be opened: {error.strerror}. Choose another data folder.", path=str(path)
        ) from error


async def check_alive(folder: Path, *, now_ms: int) -> None:
    """Raises `DataDirLocked` when somebody owns `folder` who has given no sign of life for `SILENT_MS`."""
    owner = await owner_of(folder)
    if owner and silence_ms(owner, now_ms=now_ms) > SILENT_MS:
        raise locked(folder, owner, now_ms=now_ms)


def silence_ms(owner: JsonObject, *, now_ms: int) -> int:
    """For how long the owner has given no sign of life."""
    alive_at_ms = owner.get("alive_at_ms")
    return max(0, now_ms - alive_at_ms) if isinstance(alive_at_ms, int) else 0


async def _owner(path: Path) -> JsonObject:
    """Who holds the lock; looked for a moment, since an owner writes its note just after it got the lock."""
    for _ in range(_LOOKS):
        note = _note(path)
        if "pid" in note:
            with contextlib.suppress(OSError):
                note["alive_at_ms"] = _changed_at_ms(path)
            return {name: value for name, value in note.items() if name != "database"}
        await asyncio.sleep(_BETWEEN_LOOKS_S)
    return {}


def _changed_at_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def _note(path: Path) -> JsonObject:
    try:
        note = parse_json(path.read_bytes(), max_bytes=_NOTE_BYTES, max_depth=2)
    except (OSError, InvalidRequest):
        return {}
    return note if isinstance(note, dict) else {}


def locked(folder: Path, owner: JsonObject, *, now_ms: int) -> DataDirLocked:
    """The refusal that says who the owner is, when it was last heard of and what can be done."""
    pid = owner.get("pid")
    who = f"process {pid}" if pid is not None else "another process"
    if owner.get("host") not in (None, socket.gethostname()):
        who += f" on {owner['host']}"
    reach, silent_ms = owner.get("reach"), silence_ms(owner, now_ms=now_ms)
    if silent_ms > SILENT_MS:
        said = f"{who}, which has given no sign of life for {silent_ms // 1000} s: it is stopped or stuck"
        ways = f"Let it go on (kill -CONT {pid}), end it (kill -KILL {pid})"
    else:
        said = f"{who}, last sign of life {silent_ms // 1000} s ago" if "alive_at_ms" in owner else who
        ways = f"Talk to it through {reach}, stop it" if reach else "Stop it"
    known = {name: value for name, value in owner.items() if value != ""}
    return DataDirLocked(
        f"The data folder {folder} is in use by {said}. {ways}, or choose another data folder.",
        path=str(folder),
        **known,
    )
