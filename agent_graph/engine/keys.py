"""The key ring of a data folder: which key seals now, which still check, and whether the folder has any at all.

A folder is keyed or keyless from its first start on, and stays so. The key for MACs is made on that first start; an
Ed25519 pair, where one was made, seals receipts in its place, so that others can check them without being able to
forge. A rotated key seals nothing more and goes on checking what it sealed. The book is looked at again whenever it
has changed: another process may have rotated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.sealing import (
    ED25519,
    HMAC,
    Ed25519Pair,
    Ed25519Public,
    HmacKey,
    Retired,
    Seal,
    Sealer,
    Verifier,
)
from agent_graph.core.sealing import holds as seal_holds
from agent_graph.core.sealing import sealed as seal_of
from agent_graph.engine import key_files as files
from agent_graph.errors import (
    IntegrityKeyInvalid,
    IntegrityKeyRequired,
    KeyModeMismatch,
)

Begun: TypeAlias = Callable[[Path], str]
"""Whether what a data folder holds was made ``keyed`` or ``keyless``; "" where nothing says."""


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as it may be shown: no secret. `state` is seals, checks (rotated) or retired."""

    key_id: str
    kind: str
    state: str
    created_at_ms: int
    retired_at_ms: int | None = None
    public: str = ""
    """The public half of a pair in hexadecimal."""

    def to_json(self) -> JsonObject:
        body: JsonObject = {
            "key_id": self.key_id, "kind": self.kind, "state": self.state, "created_at_ms": self.created_at_ms,
        }  # fmt: skip
        if self.retired_at_ms is not None:
            body["retired_at_ms"] = self.retired_at_ms
        if self.public:
            body["public"] = self.public
        return body


def info_of(key_id: str, one: dict[str, Any]) -> KeyInfo:
    """A key as the book has it."""
    state = files.CHECKS if one["state"] == files.COMING else one["state"]
    return KeyInfo(key_id, one["kind"], state, one["created_at_ms"], one.get("retired_at_ms"), one.get("public", ""))


class KeyRing:
    """The keys of one data folder, or of none (kept in memory). Made by `open_keys`."""

    def __init__(
        self, folder: Path | None, path: Path | None, *, keyless: bool = False, reads_only: bool = False
    ) -> None:
        self.folder = folder
        """None where they are in memory."""
        self.path = path
        """Of the file of the key for MACs."""
        self._keyless = keyless
        self._reads_only = reads_only
        self._book = "" if folder is None else str(folder / files.BOOK_NAME)
        self._stamp = (0, 0, 0)
        self._mac: HmacKey | None = None
        self._sealer: Sealer | None = None
        self._known: dict[str, tuple[KeyInfo, Verifier]] = {}

    # -- what is sealed and checked --------------------------------------------------------------------------------

    @property
    def mode(self) -> Literal["keyed", "keyless"]:
        return "keyless" if self._keyless else "keyed"

    @property
    def key_id(self) -> str:
        """Of the key that seals receipts now; "" in a keyless folder."""
        self._look()
        return "" if self._sealer is None else self._sealer.key_id

    def sealer(self) -> Sealer:
        """The key that seals receipts: the pair where there is one. Raises `IntegrityKeyRequired`."""
        self._look()
        if self._sealer is None:
            raise required()
        return self._sealer

    def seal(self, value: JsonObject) -> Seal:
        """Seal what names its ``kind``, for others to check. Raises `IntegrityKeyRequired`."""
        return seal_of(self.sealer(), value)

    def mac_key(self) -> HmacKey:
        """The key for what only this folder checks. Raises `IntegrityKeyRequired`."""
        self._look()
        if self._mac is None:
            raise required()
        return self._mac

    def mac(self, value: JsonObject) -> Seal:
        """`seal` by `mac_key`, whether there is a pair or not: it takes a few microseconds."""
        return seal_of(self.mac_key(), value)

    def holds(self, value: JsonObject, seal: Seal, *, sealed_at_ms: int | None = None) -> bool:
        """Whether a key of the ring made `seal` of `value`, and was not retired by `sealed_at_ms`. Raises
        `IntegrityKeyRequired` in a keyless folder: nothing can be said there."""
        verifier = self.verifier(seal.key_id, sealed_at_ms=sealed_at_ms)
        return verifier is not None and seal_holds(verifier, value, seal.value)

    def verifier(self, key_id: str, *, sealed_at_ms: int | None = None) -> Verifier | None:
        """The key that checks seals of `key_id` made then, None where the ring has none. Raises as `holds` does."""
        self.mac_key()
        found = self._known.get(key_id)
        if found is None:
            return None
        retired_at_ms = found[0].retired_at_ms
        if retired_at_ms is not None and (sealed_at_ms is None or sealed_at_ms > retired_at_ms):
            return None
        return found[1]

    def verifiers(self) -> dict[str, Verifier]:
        """All keys by id, to check with. Raises as `holds` does."""
        self.mac_key()
        return {
            key_id: verifier if info.retired_at_ms is None else Retired(verifier, info.retired_at_ms)
            for key_id, (info, verifier) in self._known.items()
        }

    def infos(self) -> Sequence[KeyInfo]:
        """All keys, without their secrets, in the order in which they were made."""
        self._look()
        return sorted((info for info, _ in self._known.values()), key=lambda info: (info.created_at_ms, info.key_id))

    # -- reading them ----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Read the book anew where it has changed."""
        if self.folder is not None and not self._keyless and files.stamp(self._book) != self._stamp:
            self._load(files.book_of(self.folder))

    def load(self) -> None:
        """Read the keys that the book names. Raises what `open_keys` raises."""
        if self.folder is not None and not self._keyless:
            self._load(files.book_of(self.folder))

    def _load(self, book: dict[str, Any]) -> None:
        assert self.folder is not None, "only a folder has a book"
        assert self.path is not None, "and a key file"
        mac = HmacKey(files.read_key(self.path))
        state = book["keys"].get(mac.key_id, {}).get("state")
        if state not in (files.SEALS, files.COMING):
            raise files.foreign(self.path, found=mac.key_id, known=files.in_use(book), rotated=state is not None)
        if state == files.COMING:
            files.arrive(book, mac.key_id)
            if not self._reads_only:
                files.write_book(self.folder, book)
        known: dict[str, tuple[KeyInfo, Verifier]] = {}
        sealer: Sealer = mac
        for key_id, one in book["keys"].items():
            if key_id == mac.key_id:
                known[key_id] = info_of(key_id, one), mac
            elif one["kind"] == ED25519:
                known[key_id] = info_of(key_id, one), Ed25519Public(bytes.fromhex(one["public"]))
            elif one["state"] != files.COMING:
                known[key_id] = info_of(key_id, one), HmacKey(files.read_key(self._file(key_id)))
        if files.kind(book, book["sealing"]) == ED25519:
            sealer = self._pair(book["sealing"])
        self._mac, self._sealer, self._known = mac, sealer, known
        self._stamp = files.stamp(self._book)

    def _pair(self, key_id: str) -> Ed25519Pair:
        path = self._file(key_id)
        try:
            pair = Ed25519Pair(bytes.fromhex(files.read_key(path).decode("ascii")))
        except ValueError as wrong:
            message = f"The key {path} is no Ed25519 key. Put the right file back."
            raise IntegrityKeyInvalid(message, path=str(path), reason="no_key") from wrong
        if pair.key_id != key_id:
            raise files.foreign(path, found=pair.key_id, known=[key_id])
        return pair

    def _file(self, key_id: str) -> Path:
        assert self.folder is not None, "only a folder has files"
        return self.folder / files.FOLDER_NAME / files.name_of(key_id)

    def hold(self, secret: bytes, *, now_ms: int) -> None:
        """Keep this one key, in memory."""
        mac = HmacKey(secret)
        info = KeyInfo(mac.key_id, HMAC, files.SEALS, now_ms)
        self._mac, self._sealer, self._known = mac, mac, {mac.key_id: (info, mac)}


def open_keys(
    folder: Path | None, *, now_ms: int, keyless: bool = False, path: Path | None = None, was: Begun | None = None
) -> KeyRing:
    """The key ring of a data folder, which is made at the folder's first start; reads and writes files.

    `path` names a key file elsewhere: that one is never made. `was` says of a folder without a book whether what it
    holds was made with keys: then none is made in their place. Without `folder` a key lasts as long as the process.
    Raises `KeyModeMismatch`, `IntegrityKeyRequired`, `IntegrityKeyInvalid` and `StoreUnusable`.
    """
    if folder is None:
        ring = KeyRing(None, path, keyless=keyless)
        if not keyless:
            ring.hold(files.read_key(path) if path else files.new_secret(), now_ms=now_ms)
        return ring
    place = path or folder / files.KEY_NAME
    with files.alone(folder):
        book = files.read_book(folder)
        if book is None:
            check_not_begun(folder, was=was, keyless=keyless)
            book = _begin(folder, place, keyless=keyless, make=path is None, now_ms=now_ms)
        check_mode(folder, book, keyless=keyless)
        ring = KeyRing(folder, place, keyless=keyless)
        ring.load()
    return ring


def keys_of(folder: Path, path: Path | None = None) -> KeyRing | None:
    """The key ring of a folder to check with, as it is; None where it was begun without a key, or not at all. Raises
    what `open_keys` raises."""
    book = files.read_book(folder)
    if book is None or book["mode"] == files.KEYLESS:
        return None
    ring = KeyRing(folder, path or folder / files.KEY_NAME, reads_only=True)
    ring.load()
    return ring


def known_keys(folder: Path, *, path: Path | None = None) -> dict[str, Verifier]:
    """The keys of a folder that has some, to check with; nothing is made or changed. Raises as `open_keys` does."""
    book = files.book_of(folder)
    if book["mode"] != files.KEYED:
        raise required()
    ring = KeyRing(folder, path or folder / files.KEY_NAME, reads_only=True)
    ring.load()
    return ring.verifiers()


def check_mode(folder: Path, book: dict[str, Any], *, keyless: bool) -> None:
    """Raises `KeyModeMismatch` where the folder was begun the other way."""
    if (book["mode"] == files.KEYLESS) != keyless:
        raise _mismatch(folder, book["mode"])


def check_not_begun(folder: Path, *, was: Begun | None, keyless: bool) -> None:
    """That a folder without a book never had one. Raises `IntegrityKeyRequired`, `KeyModeMismatch`, and what
    `was` raises."""
    mode = files.KEYED if files.has_old_keys(folder) else was(folder) if was is not None else ""
    if mode == files.KEYED and not keyless:
        raise files.book_gone(folder)
    if mode and mode != (files.KEYLESS if keyless else files.KEYED):
        raise _mismatch(folder, mode)


def _begin(folder: Path, place: Path, *, keyless: bool, make: bool, now_ms: int) -> dict[str, Any]:
    """Settle for good whether the folder has a key, and make it where it is the folder's own."""
    book: dict[str, Any] = {"version": 1, "mode": files.KEYLESS if keyless else files.KEYED, "sealing": "", "keys": {}}
    if not keyless:
        if make and not place.exists():
            files.write_private(place, files.new_secret())
        key_id = HmacKey(files.read_key(place)).key_id
        book["keys"][key_id] = {"kind": HMAC, "state": files.SEALS, "created_at_ms": now_ms}
        book["sealing"] = key_id
    files.write_book(folder, book)
    return book


def required() -> IntegrityKeyRequired:
    return IntegrityKeyRequired(
        "The data folder was begun without an integrity key, so nothing in it can be sealed or checked. Runs that have "
        "to be proven need a data folder with a key: one that is begun without --no-integrity-key."
    )


def _mismatch(folder: Path, was: str) -> KeyModeMismatch:
    said = "with an integrity key; leave --no-integrity-key away"
    if was == files.KEYLESS:
        said = 'without an integrity key; say --no-integrity-key, or integrity_key = "off" in its settings.toml'
    message = f"The data folder {folder} was begun {said}. That cannot be changed afterwards."
    return KeyModeMismatch(message, mode=was)
