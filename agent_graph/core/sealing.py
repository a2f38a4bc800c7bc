"""Seals: a MAC or a signature over the canonical bytes of a value, made and checked; reads no file, makes no key.

A seal is a text, ``hmac-sha256:<hex>`` (RFC 2104) or ``ed25519:<hex>`` (RFC 8032), and the id of its key. What is
sealed is a JSON object that names its kind, so that a seal of one thing is never one of another.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final, Protocol

from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, canonical

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

HMAC: Final = "hmac-sha256"
SHARED: Final = "hmac"
"""How the id of a shared key begins."""
ED25519: Final = "ed25519"
SHORTEST_KEY: Final = 32
"""Bytes of a key for a MAC, at least."""
PUBLIC_BYTES: Final = 32
_ID_OF: Final = b"agent-graph key id"


@dataclass(frozen=True, slots=True)
class Seal:
    """`key_id` says which key, `value` is the text of the seal."""

    key_id: str
    value: str

    def to_json(self) -> JsonObject:
        return {"key_id": self.key_id, "seal": self.value}


class Verifier(Protocol):
    """Can tell whether a seal is of its key."""

    @property
    def key_id(self) -> str: ...

    def verify(self, data: bytes, value: str) -> bool:
        """Whether `value` is this key's seal of `data`; compared in constant time, False for what is no seal."""
        ...


class Sealer(Verifier, Protocol):
    """Can make them too."""

    def seal(self, data: bytes) -> Seal: ...


class HmacKey:
    """A shared key: whoever can check its seals can make them. The bytes are the key as they are, nothing trimmed."""

    __slots__ = ("_hash", "_secret", "key_id")

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SHORTEST_KEY:
            raise ValueError(f"a key has at least {SHORTEST_KEY} bytes, and this one has {len(secret)}")
        self._hash = hmac.new(secret, digestmod=hashlib.sha256)  # the key's two blocks, hashed once
        self._secret = secret
        self.key_id = f"{SHARED}:{hmac.digest(secret, _ID_OF, 'sha256').hex()[:16]}"

    def __repr__(self) -> str:
        return f"HmacKey({self.key_id})"

    def seal(self, data: bytes) -> Seal:
        return Seal(self.key_id, self.mac(data))

    def mac(self, data: bytes) -> str:
        """``hmac-sha256:<hex>``."""
        made = self._hash.copy()
        made.update(data)
        return f"{HMAC}:{made.hexdigest()}"

    def verify(self, data: bytes, value: str) -> bool:
        return hmac.compare_digest(self.mac(data).encode(), value.encode("utf-8", "surrogatepass"))


class Retired:
    """A key that vouches for nothing that was sealed after `retired_at_ms`; who checks has to compare the times."""

    __slots__ = ("_verifier", "key_id", "retired_at_ms")

    def __init__(self, verifier: Verifier, retired_at_ms: int) -> None:
        self._verifier = verifier
        self.key_id = verifier.key_id
        self.retired_at_ms = retired_at_ms

    def verify(self, data: bytes, value: str) -> bool:
        return self._verifier.verify(data, value)


class Ed25519Public:
    """The public half of a pair: checks, and cannot forge. Raises ValueError for what is no such key."""

    __slots__ = ("_key", "key_id", "raw")

    def __init__(self, raw: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self._key: Ed25519PublicKey = Ed25519PublicKey.from_public_bytes(raw)
        self.raw = raw
        self.key_id = f"{ED25519}:{hashlib.sha256(raw).hexdigest()[:16]}"

    def verify(self, data: bytes, value: str) -> bool:
        from cryptography.exceptions import InvalidSignature

        kind, _, text = value.partition(":")
        try:
            signature = bytes.fromhex(text)
            if kind != ED25519 or signature.hex() != text:  # one signature has one text
                return False
            self._key.verify(signature, data)
        except (ValueError, InvalidSignature):
            return False
        return True


class Ed25519Pair:
    """Both halves. `secret` is the seed of 32 bytes; ValueError for another length."""

    __slots__ = ("_key", "key_id", "public")

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key: Ed25519PrivateKey = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = Ed25519Public(self._key.public_key().public_bytes_raw())
        self.key_id = self.public.key_id

    def __repr__(self) -> str:
        return f"Ed25519Pair({self.key_id})"

    def seal(self, data: bytes) -> Seal:
        return Seal(self.key_id, f"{ED25519}:{self._key.sign(data).hex()}")

    def verify(self, data: bytes, value: str) -> bool:
        return self.public.verify(data, value)


def sealed(sealer: Sealer, value: JsonObject) -> Seal:
    """The seal of the canonical bytes of `value`, which has a member ``kind``."""
    assert "kind" in value, "a seal says of what kind the thing is"
    return sealer.seal(canonical(value))


def holds(verifier: Verifier, value: JsonObject, seal: str) -> bool:
    """Whether `seal` is the seal of `value` by that key."""
    return verifier.verify(canonical(value), seal)
