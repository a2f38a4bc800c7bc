"""Changes to a data folder's keys: a pair, a rotation, a retirement; each is whole, or was not begun."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_graph.core.sealing import ED25519, HMAC, Ed25519Pair, HmacKey
from agent_graph.engine import key_files as files
from agent_graph.engine.keys import KeyInfo, KeyRing, info_of, required
from agent_graph.errors import InvalidArgument, KeyInUse, KeyNotFound

Kind: TypeAlias = Literal["hmac-sha256", "ed25519"]


def create_pair(ring: KeyRing, *, now_ms: int) -> KeyInfo:
    """Make an Ed25519 pair, which seals receipts from now on. Raises `KeyInUse` where one does already."""
    folder = _own(ring)
    with files.alone(folder):
        book = files.book_of(folder)
        if files.kind(book, book["sealing"]) == ED25519:
            raise KeyInUse(f"the pair {book['sealing']} seals receipts already; rotate it", key_id=book["sealing"])
        return _new_pair(ring, folder, book, now_ms=now_ms)


def rotate(ring: KeyRing, *, now_ms: int, kind: Kind | None = None) -> KeyInfo:
    """A new key in place of the one that seals receipts, or of the one of that kind; the old one still checks.

    Raises `KeyNotFound` where the folder has no pair.
    """
    folder = _own(ring)
    with files.alone(folder):
        book = files.book_of(folder)
        has_pair = files.kind(book, book["sealing"]) == ED25519
        if kind == HMAC or (kind is None and not has_pair):
            return _new_mac_key(ring, folder, book, now_ms=now_ms)
        if not has_pair:
            raise KeyNotFound("the folder has no Ed25519 pair; make one: agent-graph keys create")
        book["keys"][book["sealing"]]["state"] = files.CHECKS
        return _new_pair(ring, folder, book, now_ms=now_ms)


def retire(ring: KeyRing, key_id: str, *, now_ms: int) -> KeyInfo:
    """Trust nothing this key seals after now; the secret half of a pair is removed. A pair that seals receipts can be
    retired: the key for MACs seals them then. Raises `KeyNotFound`, and `KeyInUse` for the key for MACs in use."""
    folder = _own(ring)
    with files.alone(folder):
        book = files.book_of(folder)
        one = book["keys"].get(key_id)
        if one is None:
            raise KeyNotFound(f"the folder has no key {key_id}", key_id=key_id, known=sorted(book["keys"]))
        if one["kind"] == HMAC and one["state"] == files.SEALS:
            raise KeyInUse(f"{key_id} is the key in use; first: agent-graph keys rotate", key_id=key_id)
        if one["state"] != files.RETIRED:
            one |= {"state": files.RETIRED, "retired_at_ms": now_ms}
            if book["sealing"] == key_id:
                book["sealing"] = next(name for name, other in book["keys"].items() if other["state"] == files.SEALS)
            files.write_book(folder, book)
        if one["kind"] == ED25519:
            (folder / files.FOLDER_NAME / files.name_of(key_id)).unlink(missing_ok=True)
        ring.load()
        return info_of(key_id, one)


def _new_pair(ring: KeyRing, folder: Path, book: dict[str, Any], *, now_ms: int) -> KeyInfo:
    secret = secrets.token_bytes(files.SECRET_BYTES)
    pair = Ed25519Pair(secret)
    files.write_private(folder / files.FOLDER_NAME / files.name_of(pair.key_id), secret.hex().encode())
    one = {"kind": ED25519, "state": files.SEALS, "created_at_ms": now_ms, "public": pair.public.raw.hex()}
    book["keys"][pair.key_id], book["sealing"] = one, pair.key_id
    files.write_book(folder, book)
    ring.load()
    return info_of(pair.key_id, one)


def _new_mac_key(ring: KeyRing, folder: Path, book: dict[str, Any], *, now_ms: int) -> KeyInfo:
    """The new key is in the book before it is in its place, so that a process that ends between them loses nothing."""
    assert ring.path is not None, "a ring with a folder has a key file"
    bytes_in_use = files.read_key(ring.path)
    in_use = folder / files.FOLDER_NAME / files.name_of(HmacKey(bytes_in_use).key_id)
    files.write_private(in_use, bytes_in_use)
    secret = files.new_secret()
    key_id = HmacKey(secret).key_id
    book["keys"][key_id] = {"kind": HMAC, "state": files.COMING, "created_at_ms": now_ms}
    files.write_book(folder, book)
    files.write_private(ring.path, secret)
    files.arrive(book, key_id)
    files.write_book(folder, book)
    ring.load()
    return info_of(key_id, book["keys"][key_id])


def _own(ring: KeyRing) -> Path:
    if ring.mode == files.KEYLESS:
        raise required()
    if ring.folder is None:
        raise InvalidArgument("a data folder that keeps nothing has no keys to change", argument="data-dir")
    return ring.folder
