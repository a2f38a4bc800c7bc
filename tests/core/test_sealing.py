"""Seals of bytes: what the published vectors say, and what is refused."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from agent_graph.core.sealing import Ed25519Pair, Ed25519Public, HmacKey, Seal, holds, sealed

KEY = b"k" * 32


def test_a_mac_is_that_of_rfc_4231_and_has_its_prefix() -> None:
    key = HmacKey(b"\xaa" * 131)  # test case 6
    value = key.mac(b"Test Using Larger Than Block-Size Key - Hash Key First")
    assert value == "hmac-sha256:60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    assert key.verify(b"Test Using Larger Than Block-Size Key - Hash Key First", value)


def test_a_mac_of_other_bytes_or_of_another_key_does_not_hold() -> None:
    key = HmacKey(KEY)
    seal = key.seal(b"data")
    assert key.verify(b"data", seal.value)
    assert not key.verify(b"Data", seal.value)
    assert not HmacKey(KEY + b"\n").verify(b"data", seal.value)
    for wrong in ("", "hmac-sha256:", seal.value.upper(), seal.value + " ", seal.value[12:], "\ud800"):
        assert not key.verify(b"data", wrong)


def test_a_key_of_31_bytes_is_refused_and_one_of_32_is_not() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes, and this one has 31"):
        HmacKey(KEY[:-1])
    assert HmacKey(KEY).key_id != HmacKey(KEY + b"\n").key_id  # nothing is trimmed


def test_the_id_of_a_key_says_which_it_is_and_not_what() -> None:
    key = HmacKey(KEY)
    assert key.key_id == "hmac:" + hmac.new(KEY, b"agent-graph key id", hashlib.sha256).hexdigest()[:16]
    assert KEY.decode() not in repr(key)


def test_a_signature_is_that_of_rfc_8032() -> None:
    seed = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")  # 7.1, test 2
    pair = Ed25519Pair(seed)
    assert pair.public.raw.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    seal = pair.seal(b"\x72")
    assert seal.value == (
        "ed25519:92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert pair.verify(b"\x72", seal.value)
    assert seed.hex() not in repr(pair)


def test_the_public_half_checks_and_takes_no_other_form_of_a_signature() -> None:
    pair = Ed25519Pair(KEY)
    public = Ed25519Public(pair.public.raw)
    seal = pair.seal(b"data")
    assert (public.key_id, public.verify(b"data", seal.value)) == (seal.key_id, True)
    for wrong in (
        seal.value.upper(), seal.value.replace("ed25519", "hmac-sha256"), "ed25519:zz", "ed25519:00", "",
        seal.value[:-2] + ("00" if seal.value[-2:] != "00" else "01"), "ed25519:" + seal.value[8:].upper(),
    ):  # fmt: skip
        assert not public.verify(b"data", wrong)
    assert not public.verify(b"Data", seal.value)


def test_the_seal_of_a_value_is_that_of_its_canonical_bytes() -> None:
    key = HmacKey(KEY)
    seal = sealed(key, {"kind": "test", "b": 1, "a": "é"})
    assert seal == Seal(key.key_id, key.mac('{"a":"é","b":1,"kind":"test"}'.encode()))
    assert seal.to_json() == {"key_id": key.key_id, "seal": seal.value}
    assert holds(key, {"a": "é", "b": 1, "kind": "test"}, seal.value)
    assert not holds(key, {"a": "é", "b": 2, "kind": "test"}, seal.value)
