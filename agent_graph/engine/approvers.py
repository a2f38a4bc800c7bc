"""The approvers of a data folder: names, and their secrets as scrypt hashes in a file of mode 0600; no database.

A secret is never kept, never logged, and compared in constant time. Attempts are counted in the file, so that starting
the program anew gives nobody another try: after `FREE_TRIES` wrong ones in a row a name is locked for a minute, and
twice as long after each more. The file is read at every question: another process may have changed it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from agent_graph.core.frozen import dataclass
from agent_graph.errors import ApproverNotFound, ApproverRequired, ApproverSecretWrong, InvalidArgument, StoreUnusable
from agent_graph.system import locks
from agent_graph.system.files import PRIVATE_FILE, PRIVATE_FOLDER, replace

FILE_NAME: Final = "approvers.json"
LOCK_NAME: Final = "approvers.lock"
NAME: Final = re.compile(r"[A-Za-z0-9_.@+-]{1,64}")
SHORTEST: Final = 8
LONGEST: Final = 1_000
"""Characters of a secret."""
FREE_TRIES: Final = 5
LOCKED_MS: Final = 60_000
LONGEST_LOCK_MS: Final = 3_600_000
_COST: Final = {"n": 2**15, "r": 8, "p": 1}
_MEMORY: Final = 64 * 1024 * 1024
_NOBODY: Final = ""
"""Whose tries those under unknown names are."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What somebody says to be an approver."""

    name: str
    secret: str = field(repr=False)


class Approvers:
    """Who can prove to be a person; without a folder there is nobody."""

    __slots__ = ("_folder",)

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    async def names(self) -> tuple[str, ...]:
        """By name. Raises `StoreUnusable` when the file cannot be read: that opens no gate."""
        return await asyncio.to_thread(self._names)

    async def prove(self, proof: Proof, *, now_ms: int) -> str:
        """The approver's name as it was given when they were added. Raises `ApproverSecretWrong`, `StoreUnusable`."""
        return await asyncio.to_thread(self._prove, proof, now_ms)

    async def add(self, new: Proof, *, voucher: Proof | None, now_ms: int) -> None:
        """Add an approver, or give one another secret. The first needs nobody; each further one an approver who
        vouches for them, so that whoever has a shell cannot make one of their own.

        Raises `InvalidArgument`, `ApproverRequired`, `ApproverSecretWrong`, `StoreUnusable`.
        """
        await asyncio.to_thread(self._add, new, voucher, now_ms)

    async def remove(self, name: str, *, voucher: Proof | None, now_ms: int) -> None:
        """Raises `ApproverNotFound`, and what `add` raises."""
        await asyncio.to_thread(self._remove, name, voucher, now_ms)

    # -- in a thread -----------------------------------------------------------------------------------------------

    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(one["name"] for one in self._read()["approvers"].values()))

    def _prove(self, proof: Proof, now_ms: int) -> str:
        with self._changing() as book:
            return _proven(book, proof, now_ms)

    def _add(self, new: Proof, voucher: Proof | None, now_ms: int) -> None:
        if not NAME.fullmatch(new.name):
            raise InvalidArgument("an approver's name is 1 to 64 letters, digits or one of _.@+-", argument="name")
        if not SHORTEST <= len(new.secret) <= LONGEST:
            raise InvalidArgument(f"a secret has {SHORTEST} to {LONGEST} characters", argument="secret")
        with self._changing() as book:
            _vouched(book, voucher, now_ms)
            salt = secrets.token_bytes(16)
            book["approvers"][new.name.casefold()] = {
                "name": new.name, "salt": salt.hex(), "hash": _hash(new.secret, salt, _COST), **_COST,
                "added_at_ms": now_ms,
            }  # fmt: skip

    def _remove(self, name: str, voucher: Proof | None, now_ms: int) -> None:
        with self._changing() as book:
            if name.casefold() not in book["approvers"]:
                raise ApproverNotFound(f"there is no approver {name!r}", name=name)
            _vouched(book, voucher, now_ms)
            del book["approvers"][name.casefold()]
            book["tries"].pop(name.casefold(), None)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The book, alone among all processes, written back when it was changed, also by what is refused."""
        if self._folder is None:
            raise StoreUnusable("a data folder that keeps nothing has no approvers")
        self._folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        with open(self._folder / LOCK_NAME, "a", opener=_private) as lock:
            locks.wait(lock.fileno())
            book = self._read()
            before = json.dumps(book)
            try:
                yield book
            finally:
                if json.dumps(book) != before:
                    self._write(self._folder, book)

    def _read(self) -> dict[str, Any]:
        book: dict[str, Any] = {"approvers": {}, "tries": {}}
        if self._folder is None:
            return book
        path = self._folder / FILE_NAME
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return {name: {key: dict(one) for key, one in found[name].items()} for name in book}
        except FileNotFoundError:
            return book
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"{path} cannot be read, so no gate that is closed to models opens; mend it or take it away"
            raise StoreUnusable(message, path=str(path)) from error

    @staticmethod
    def _write(folder: Path, book: dict[str, Any]) -> None:
        path, new = folder / FILE_NAME, folder / f"{FILE_NAME}.new"
        try:
            with open(new, "w", encoding="utf-8", opener=_private) as file:
                json.dump(book, file)
                file.flush()
                os.fsync(file.fileno())
            replace(new, path)
        except OSError as error:
            raise StoreUnusable(f"{path} cannot be written: {error.strerror}", path=str(path)) from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


def _vouched(book: dict[str, Any], voucher: Proof | None, now_ms: int) -> None:
    if not book["approvers"]:
        return
    if voucher is None:
        message = "there are approvers already: one of them has to vouch for the change, with their secret"
        raise ApproverRequired(message, approvers=sorted(one["name"] for one in book["approvers"].values()))
    _proven(book, voucher, now_ms)


def _proven(book: dict[str, Any], proof: Proof, now_ms: int) -> str:
    """Raises `ApproverSecretWrong`, and counts the try."""
    known = book["approvers"].get(proof.name.casefold())
    whose = _NOBODY if known is None else proof.name.casefold()
    tries = book["tries"].get(whose, {"wrong": 0, "until_ms": 0})
    if now_ms < tries["until_ms"]:
        wait_s = -(-(tries["until_ms"] - now_ms) // 1000)
        message = f"the name or the secret was wrong {tries['wrong']} times; try again in {wait_s} s"
        raise ApproverSecretWrong(message, retry_at_ms=tries["until_ms"])
    one = known or {"salt": "00" * 16, "hash": "", **_COST}  # as much work for a name that is not there
    cost = {name: one[name] for name in _COST}
    right = hmac.compare_digest(_hash(proof.secret, bytes.fromhex(one["salt"]), cost), one["hash"])
    if known is not None and right:
        book["tries"].pop(whose, None)
        return str(known["name"])
    wrong = tries["wrong"] + 1
    over = wrong - FREE_TRIES
    locked_ms = 0 if over < 0 else min(LOCKED_MS * 2 ** min(over, 20), LONGEST_LOCK_MS)
    book["tries"][whose] = {"wrong": wrong, "until_ms": now_ms + locked_ms if locked_ms else 0}
    raise ApproverSecretWrong("the approver's name or secret is wrong; nothing was changed")


def _hash(secret: str, salt: bytes, cost: dict[str, int]) -> str:
    data = secret.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, n=cost["n"], r=cost["r"], p=cost["p"], maxmem=_MEMORY, dklen=32).hex()
