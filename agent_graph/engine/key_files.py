"""The files of a data folder's keys: read with care, written whole and for their owner alone; knows no ring.

``integrity.key`` is the key for MACs in use: the whole file is the key, a newline at its end included. ``keys.json`` is
the book of all keys, without any secret. What was in use before, and the secret halves of pairs, lie in ``keys/``.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from agent_graph.core.sealing import HMAC, SHORTEST_KEY
from agent_graph.errors import IntegrityKeyInvalid, IntegrityKeyRequired, StoreUnusable
from agent_graph.system import locks
from agent_graph.system.files import PRIVATE_FILE, PRIVATE_FOLDER, make_private, others_may_use, replace

KEY_NAME: Final = "integrity.key"
BOOK_NAME: Final = "keys.json"
LOCK_NAME: Final = "keys.lock"
FOLDER_NAME: Final = "keys"
LONGEST_KEY: Final = 64 * 1024
"""Bytes of a key file: more is no key, whatever it is."""
SECRET_BYTES: Final = 32
KEYED: Final = "keyed"
KEYLESS: Final = "keyless"
SEALS: Final = "seals"
CHECKS: Final = "checks"
RETIRED: Final = "retired"
COMING: Final = "coming"
"""Written down, and perhaps not in its place yet: a process that ended half-way leaves one."""


def read_key(path: Path) -> bytes:
    """The bytes of a key file. Raises `IntegrityKeyRequired` where there is none, and `IntegrityKeyInvalid` for one
    that is short, that others may read, or that is no file."""
    try:
        with open(path, "rb", opener=_at_once) as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(LONGEST_KEY + 1) if stat.S_ISREG(mode) else b""
    except FileNotFoundError:
        raise IntegrityKeyRequired(
            f"There is no integrity key at {path}. Put the key back from a copy: what was sealed with it can be "
            "checked with no other, and none is made in its place.",
            path=str(path),
        ) from None
    except OSError as error:
        raise _invalid(path, "unreadable", f"cannot be read ({error.strerror})", "Let its owner read it.") from error
    if not stat.S_ISREG(mode) or len(data) > LONGEST_KEY:
        raise _invalid(path, "no_file", "is no key file", f"A key is a file of {SHORTEST_KEY} bytes or somewhat more.")
    if others_may_use(mode):
        said = f"can be read by others (mode {stat.S_IMODE(mode):04o})"
        raise _invalid(path, "readable", said, f"chmod 600 {path}, and rotate it if somebody may have read it.")
    if len(data) < SHORTEST_KEY:
        said = f"has {len(data)} bytes, and a key has at least {SHORTEST_KEY}"
        raise _invalid(path, "short", said, "Put the right file back, or name another.")
    return data


def _invalid(path: Path, reason: str, said: str, mend: str) -> IntegrityKeyInvalid:
    return IntegrityKeyInvalid(f"The integrity key {path} {said}. {mend}", path=str(path), reason=reason)


def foreign(path: Path, *, found: str, known: list[str], rotated: bool = False) -> IntegrityKeyInvalid:
    """The error for a key file that holds another key than the one in use, `known`; a `rotated` one was it before."""
    if rotated:
        said = f"holds {found}, which was rotated away: it only checks what it sealed"
        return _invalid(path, "rotated", said, f"Put the key in use back: {', '.join(known)}.")
    said = f"is another folder's: it holds {found}, and this folder knows {', '.join(known)}"
    return _invalid(path, "foreign", said, "Put this folder's own key back.")


def read_book(folder: Path) -> dict[str, Any] | None:
    """The book of keys; None where there is none. Raises `StoreUnusable` for one that cannot be read."""
    path = folder / BOOK_NAME
    try:
        with open(path, "rb", opener=_at_once) as file:
            book: dict[str, Any] = json.loads(file.read())
        keys = {str(name): dict(one) for name, one in book["keys"].items()}
        return {"version": 1, "mode": str(book["mode"]), "sealing": str(book["sealing"]), "keys": keys}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        message = f"{path} cannot be read, so nothing can be sealed or checked; put a copy back"
        raise StoreUnusable(message, path=str(path)) from error


def book_of(folder: Path) -> dict[str, Any]:
    """The book of a folder that has one. Raises `IntegrityKeyRequired`, and what `read_book` raises."""
    book = read_book(folder)
    if book is None:
        raise book_gone(folder)
    return book


def book_gone(folder: Path) -> IntegrityKeyRequired:
    """The error for a folder that had keys and has no book of them."""
    lost = [name for name in (BOOK_NAME, KEY_NAME) if not (folder / name).exists()]
    return IntegrityKeyRequired(
        f"The book of keys in {folder} ({BOOK_NAME}) is gone, so no key can be told from another's. Put {BOOK_NAME}, "
        f"{KEY_NAME} and {FOLDER_NAME}/ back from a copy; none is made in their place.",
        path=str(folder / BOOK_NAME), missing=lost,
    )  # fmt: skip


def has_old_keys(folder: Path) -> bool:
    """Whether files of keys lie there that were in use, or of pairs: then there was a book."""
    return any((folder / FOLDER_NAME).glob("*.key"))


def in_use(book: dict[str, Any]) -> list[str]:
    """The key for MACs that is to be in its place; during a rotation also the one that comes."""
    return sorted(name for name, one in book["keys"].items() if one["kind"] == HMAC and one["state"] in (SEALS, COMING))


def arrive(book: dict[str, Any], key_id: str) -> None:
    """The key for MACs is in its place: those that sealed only check from now on."""
    for one in book["keys"].values():
        if one["kind"] == HMAC and one["state"] == SEALS:
            one["state"] = CHECKS
    book["keys"][key_id]["state"] = SEALS
    if kind(book, book["sealing"]) == HMAC:
        book["sealing"] = key_id


def kind(book: dict[str, Any], key_id: str) -> str:
    """Of which kind a key is; "" for one the book does not name."""
    return str(book["keys"].get(key_id, {}).get("kind", ""))


def name_of(key_id: str) -> str:
    """The file in the folder of keys."""
    return f"{key_id.replace(':', '-')}.key"


def new_secret() -> bytes:
    """A key that a person can copy: 64 hexadecimal digits, no newline."""
    return secrets.token_hex(SECRET_BYTES).encode()


def write_book(folder: Path, book: dict[str, Any]) -> None:
    """Replace the book."""
    write_private(folder / BOOK_NAME, json.dumps(book, indent=1, sort_keys=True).encode() + b"\n")


def write_private(path: Path, data: bytes) -> None:
    """Replace a file by one only its owner can read; it is there whole or not at all. Raises `StoreUnusable`."""
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        with open(new, "wb", opener=_private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        replace(new, path)
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be written: {error.strerror}", path=str(path)) from error


def stamp(book: str) -> tuple[int, int, int]:
    """What changes when the book at that path does. Asked before every seal."""
    try:
        found = os.stat(book)  # noqa: PTH116  (a third of what pathlib takes)
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_ino, found.st_size)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else changes the keys of the folder meanwhile."""
    path = folder / LOCK_NAME
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        lock = open(path, "a", opener=_private)  # noqa: SIM115  (closed below)
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be written: {error.strerror}", path=str(path)) from error
    with lock:
        locks.wait(lock.fileno())
        yield


def _at_once(path: str | Path, flags: int) -> int:
    """Opens without waiting: a pipe has no writer, perhaps for ever."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _private(path: str | Path, flags: int) -> int:
    descriptor = os.open(path, flags, PRIVATE_FILE)
    make_private(descriptor)  # one that a crash left behind may have another mode
    return descriptor
