"""A Merkle tree over leaves, as RFC 6962 (2.1) hashes it with SHA-256; knows no receipt and keeps no tree."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from agent_graph.core.jsonvalue import JsonValue, canonical

_LEAF = b"\x00"
_NODE = b"\x01"


def leaf_hash(leaf: JsonValue) -> str:
    """The hash of a leaf, which is JSON: 64 hexadecimal digits."""
    return hashlib.sha256(_LEAF + canonical(leaf)).hexdigest()


def root(leaves: Sequence[str]) -> str:
    """The root over hashes of leaves, ``sha256:<hex>``; over none it is the hash of nothing."""
    if not leaves:
        return "sha256:" + hashlib.sha256(b"").hexdigest()
    level = [bytes.fromhex(leaf) for leaf in leaves]
    while len(level) > 1:  # pairs from the left, an odd one goes up as it is: the same tree as RFC 6962's
        pairs = [hashlib.sha256(_NODE + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[2 * len(pairs) :]]
    return "sha256:" + level[0].hex()
