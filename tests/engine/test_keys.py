"""The keys of a data folder: made once, kept private, rotated without losing what was sealed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from agent_graph.core.sealing import ED25519, HMAC, Ed25519Public, Seal
from agent_graph.engine import key_files
from agent_graph.engine.key_changes import create_pair, retire, rotate
from agent_graph.engine.keys import KeyRing, keys_of, known_keys, open_keys
from agent_graph.errors import (
    AgentGraphError,
    IntegrityKeyInvalid,
    IntegrityKeyRequired,
    InvalidArgument,
    KeyInUse,
    KeyModeMismatch,
    KeyNotFound,
    StoreUnusable,
)

THING = {"kind": "thing", "n": 1}


def ring_of(folder: Path, *, keyless: bool = False, path: Path | None = None) -> KeyRing:
    return open_keys(folder, now_ms=1_000, keyless=keyless, path=path)


def files_of(folder: Path) -> dict[str, bytes]:
    found = {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    return {name: data for name, data in found.items() if name != key_files.LOCK_NAME}


def test_the_first_start_makes_a_key_for_its_owner_alone_and_the_second_takes_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    seal = ring_of(folder).seal(THING)
    for name in ("integrity.key", "keys.json"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert len((folder / "integrity.key").read_bytes()) >= 32
    assert (folder / "integrity.key").read_text() not in (folder / "keys.json").read_text()
    again = ring_of(folder)
    assert again.holds(THING, seal)
    assert not again.holds({**THING, "n": 2}, seal)
    assert again.key_id == seal.key_id
    assert again.mode == "keyed"


def test_a_missing_key_is_never_made_anew(tmp_path: Path) -> None:
    ring_of(tmp_path)
    (tmp_path / "integrity.key").unlink()
    before = files_of(tmp_path)
    with pytest.raises(IntegrityKeyRequired, match="Put the key back"):
        ring_of(tmp_path)
    assert files_of(tmp_path) == before


def test_a_missing_book_of_a_ring_in_use_is_noticed(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    (tmp_path / "keys.json").unlink()
    with pytest.raises(IntegrityKeyRequired, match="book of keys"):
        ring.seal(THING)


@pytest.mark.parametrize(
    ("data", "mode", "reason", "said"),
    [
        (b"0123456789", 0o600, "short", "has 10 bytes, and a key has at least 32"),
        (b"k" * 31, 0o600, "short", "has 31 bytes"),
        (b"k" * 32, 0o640, "readable", "can be read by others .mode 0640.*chmod 600"),
        (b"k" * 32, 0o604, "readable", "mode 0604"),
        (b"k" * 32, 0o600, "foreign", "is another folder's"),
        (b"k" * 70_000, 0o600, "no_file", "is no key file"),
    ],
)
def test_a_key_that_cannot_be_used_says_why(tmp_path: Path, data: bytes, mode: int, reason: str, said: str) -> None:
    ring_of(tmp_path)
    (tmp_path / "integrity.key").write_bytes(data)
    (tmp_path / "integrity.key").chmod(mode)
    before = files_of(tmp_path)
    with pytest.raises(IntegrityKeyInvalid, match=said) as refused:
        ring_of(tmp_path)
    assert refused.value.details["reason"] == reason
    assert files_of(tmp_path) == before


def test_a_newline_at_the_end_of_a_key_file_is_a_byte_of_the_key(tmp_path: Path) -> None:
    ring_of(tmp_path)
    key = tmp_path / "integrity.key"
    key.write_bytes(key.read_bytes() + b"\n")
    with pytest.raises(IntegrityKeyInvalid, match="another folder's"):
        ring_of(tmp_path)


def test_a_key_elsewhere_is_used_and_never_made(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.key"
    with pytest.raises(IntegrityKeyRequired):
        ring_of(tmp_path / "data", path=path)
    assert not path.exists()
    path.write_bytes(b"k" * 40 + b"\n")
    path.chmod(0o600)
    ring = ring_of(tmp_path / "data", path=path)
    assert ring.holds(THING, ring.seal(THING))
    assert not (tmp_path / "data" / "integrity.key").exists()


@pytest.mark.parametrize("keyless", [True, False])
def test_whether_a_folder_has_a_key_is_settled_when_it_is_begun(tmp_path: Path, keyless: bool) -> None:
    ring_of(tmp_path, keyless=keyless)
    assert ring_of(tmp_path, keyless=keyless).mode == ("keyless" if keyless else "keyed")
    before = files_of(tmp_path)
    with pytest.raises(KeyModeMismatch, match="was begun with"):
        ring_of(tmp_path, keyless=not keyless)
    assert files_of(tmp_path) == before


def test_a_keyless_folder_seals_and_checks_nothing(tmp_path: Path) -> None:
    ring = ring_of(tmp_path, keyless=True)
    assert (ring.key_id, ring.infos()) == ("", [])
    assert not (tmp_path / "integrity.key").exists()
    for refused in (
        lambda: ring.seal(THING), lambda: ring.mac(THING), lambda: ring.holds(THING, Seal("hmac:0", "hmac-sha256:0")),
        lambda: rotate(ring, now_ms=2_000),
    ):  # fmt: skip
        with pytest.raises(IntegrityKeyRequired, match="begun without an integrity key"):
            refused()


def test_a_damaged_book_is_refused_with_its_path(tmp_path: Path) -> None:
    ring_of(tmp_path)
    (tmp_path / "keys.json").write_text("{}")
    with pytest.raises(StoreUnusable, match=r"keys\.json cannot be read"):
        ring_of(tmp_path)


def test_where_old_keys_lie_the_book_is_never_made_anew(tmp_path: Path) -> None:
    rotate(ring_of(tmp_path), now_ms=2_000)
    (tmp_path / "keys.json").unlink()
    before = files_of(tmp_path)
    with pytest.raises(IntegrityKeyRequired, match=r"keys\.json") as refused:
        ring_of(tmp_path)
    assert refused.value.details["missing"] == ["keys.json"]
    with pytest.raises(KeyModeMismatch):
        ring_of(tmp_path, keyless=True)
    assert files_of(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without named pipes")
@pytest.mark.parametrize(("name", "error"), [("integrity.key", IntegrityKeyInvalid), ("keys.json", StoreUnusable)])
def test_a_pipe_in_place_of_a_file_is_refused_without_waiting(
    tmp_path: Path, name: str, error: type[AgentGraphError]
) -> None:
    ring_of(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name, 0o600)
    with pytest.raises(error):
        ring_of(tmp_path)


def test_who_only_checks_finishes_no_rotation(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    seal = ring.seal(THING)
    made = rotate(ring, now_ms=2_000)
    book = json.loads((tmp_path / "keys.json").read_text())
    book["keys"][made.key_id]["state"], book["keys"][seal.key_id]["state"] = "coming", "seals"
    (tmp_path / "keys.json").write_text(json.dumps({**book, "sealing": seal.key_id}))
    before = files_of(tmp_path)
    assert set(known_keys(tmp_path)) == {made.key_id, seal.key_id}
    assert keys_of(tmp_path) is not None
    assert files_of(tmp_path) == before


# -- changes ---------------------------------------------------------------------------------------------------------


def test_what_a_rotated_key_sealed_still_holds_and_the_next_seal_is_of_the_new_one(tmp_path: Path) -> None:
    ring, other = ring_of(tmp_path), ring_of(tmp_path)
    seal = ring.seal(THING)
    made = rotate(ring, now_ms=2_000)
    assert (made.state, made.kind) == ("seals", HMAC)
    for now in (ring, other, ring_of(tmp_path)):  # a ring that was open sees it too
        assert now.key_id == made.key_id != seal.key_id
        assert now.holds(THING, seal)
        assert now.holds(THING, ring.seal(THING))
    assert [info.state for info in ring.infos()] == ["checks", "seals"]


def test_a_rotation_that_ended_half_way_is_finished_by_the_next_start(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    seal = ring.seal(THING)
    made = rotate(ring, now_ms=2_000)
    book = json.loads((tmp_path / "keys.json").read_text())
    book["keys"][made.key_id]["state"], book["keys"][seal.key_id]["state"] = "coming", "seals"
    book["sealing"] = seal.key_id
    (tmp_path / "keys.json").write_text(json.dumps(book))  # as it was before the last step
    again = ring_of(tmp_path)
    assert again.key_id == made.key_id
    assert again.holds(THING, seal)
    assert [info.state for info in again.infos()] == ["checks", "seals"]


def test_a_rotation_that_ended_before_the_key_was_in_its_place_changed_nothing(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    seal = ring.seal(THING)
    book = json.loads((tmp_path / "keys.json").read_text())
    book["keys"]["hmac:0000000000000000"] = {"kind": HMAC, "state": "coming", "created_at_ms": 2_000}
    (tmp_path / "keys.json").write_text(json.dumps(book))
    again = ring_of(tmp_path)
    assert again.key_id == seal.key_id
    assert again.holds(THING, seal)


def test_an_old_key_put_back_in_its_place_is_refused(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    old = (tmp_path / "integrity.key").read_bytes()
    rotate(ring, now_ms=2_000)
    (tmp_path / "integrity.key").write_bytes(old)
    with pytest.raises(IntegrityKeyInvalid, match=r"was rotated away.*Put the key in use back") as refused:
        ring_of(tmp_path)
    assert refused.value.details["reason"] == "rotated"


def test_a_pair_seals_what_others_check_and_the_mac_key_goes_on_for_the_rest(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    before, mac = ring.seal(THING), ring.mac(THING)
    pair = create_pair(ring, now_ms=2_000)
    seal = ring_of(tmp_path).seal(THING)
    assert (seal.key_id, pair.kind) == (pair.key_id, ED25519)
    assert Ed25519Public(bytes.fromhex(pair.public)).verify(b'{"kind":"thing","n":1}', seal.value)
    assert ring.mac(THING) == mac == before
    secret = tmp_path / "keys" / f"{pair.key_id.replace(':', '-')}.key"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    with pytest.raises(KeyInUse):
        create_pair(ring, now_ms=3_000)
    newer = rotate(ring, now_ms=3_000)
    assert newer.kind == ED25519
    assert ring.holds(THING, seal)
    rotate(ring, now_ms=4_000, kind=HMAC)
    assert ring.key_id == newer.key_id
    assert ring.mac(THING) != mac
    assert ring.holds(THING, mac)


def test_a_retired_key_vouches_for_what_it_sealed_before_and_for_nothing_after(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    create_pair(ring, now_ms=2_000)
    seal = ring.seal(THING)
    gone = retire(ring, seal.key_id, now_ms=5_000)
    assert (gone.state, gone.retired_at_ms) == ("retired", 5_000)
    assert not (tmp_path / "keys" / f"{seal.key_id.replace(':', '-')}.key").exists()
    again = ring_of(tmp_path)
    assert again.key_id.startswith("hmac:")
    assert again.holds(THING, seal, sealed_at_ms=5_000)
    assert not again.holds(THING, seal, sealed_at_ms=5_001)
    assert not again.holds(THING, seal)
    assert retire(again, seal.key_id, now_ms=9_000).retired_at_ms == 5_000


def test_a_pair_that_is_not_the_one_in_the_book_is_refused(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    pair = create_pair(ring, now_ms=2_000)
    secret = tmp_path / "keys" / f"{pair.key_id.replace(':', '-')}.key"
    secret.write_text("ab" * 32)
    with pytest.raises(IntegrityKeyInvalid, match="another folder's"):
        ring_of(tmp_path)
    secret.write_text("no hexadecimal digits, but long enough for it")
    with pytest.raises(IntegrityKeyInvalid, match="no Ed25519 key"):
        ring_of(tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda ring: retire(ring, ring.key_id, now_ms=1), KeyInUse, "first: agent-graph keys rotate"),
        (lambda ring: retire(ring, "hmac:0", now_ms=1), KeyNotFound, "no key hmac:0"),
        (lambda ring: rotate(ring, now_ms=1, kind=ED25519), KeyNotFound, "no Ed25519 pair"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(
    tmp_path: Path, change: object, error: type[AgentGraphError], said: str
) -> None:
    ring = ring_of(tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(error, match=said):
        change(ring)  # type: ignore[operator]  # one of the functions above
    assert files_of(tmp_path) == before


def test_in_memory_a_key_lasts_as_long_as_its_ring() -> None:
    ring, other = open_keys(None, now_ms=0), open_keys(None, now_ms=0)
    assert ring.holds(THING, ring.seal(THING))
    assert not other.holds(THING, ring.seal(THING))
    with pytest.raises(InvalidArgument):
        rotate(ring, now_ms=1)
