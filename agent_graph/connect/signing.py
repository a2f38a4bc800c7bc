"""Signs what a webhook sends, as https://www.standardwebhooks.com has it: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "whsec_"
LEAST_BYTES: Final = 24
"""Of a key: what the standard asks for at least."""


def key_of(secret: str) -> bytes:
    """The key in a secret: after ``whsec_`` in base64, else the text itself. ValueError where it is none, or short."""
    if secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            raise ValueError("after whsec_ stands base64") from None
    else:
        key = secret.encode()
    if len(key) < LEAST_BYTES:
        raise ValueError(f"a secret has {LEAST_BYTES} bytes or more")
    return key


def signature_headers(letter_id: str, body: bytes, *, keys: Sequence[bytes], at_s: int) -> dict[str, str]:
    """``webhook-id``, ``webhook-timestamp`` (seconds since 1970 UTC) and ``webhook-signature``, one for each key."""
    signed = b".".join((letter_id.encode(), str(at_s).encode(), body))
    macs = (hmac.new(key, signed, hashlib.sha256).digest() for key in keys)
    return {
        "webhook-id": letter_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(mac).decode()}" for mac in macs),
    }
