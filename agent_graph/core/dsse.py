"""A receipt as an in-toto statement in a DSSE envelope, for programs that know those; checks the envelope alone.

DSSE 1.0.2 and in-toto Statement v1. The signature is the raw bytes of the seal over the pre-authentication encoding.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from agent_graph.core import merkle
from agent_graph.core.jsonvalue import JsonObject, JsonValue, canonical, digest, parse_json
from agent_graph.core.receipt_chain import MOST_BYTES, MOST_DEPTH, Fault
from agent_graph.core.receipt_check import (
    UNCHECKED,
    Checked,
    broken,
    faults_of_end,
    notes_of_seals,
    notes_of_time,
    shape_of_receipt,
)
from agent_graph.core.sealing import ED25519, HMAC, Sealer, Verifier
from agent_graph.errors import InvalidRequest

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "urn:agent-graph:receipt:v1"
_KEYS: Final = {"payload", "payloadType", "signatures"}


def statement(receipt: JsonObject) -> JsonObject:
    """The statement whose predicate is the receipt; its subjects are the run's events and its result."""
    chain: Any = receipt["chain"]
    subjects = [_subject(f"{receipt['run_id']}/events", chain["head"])]
    if receipt["output"] is not None:
        subjects.append(_subject(f"{receipt['run_id']}/output", str(receipt["output"])))
    return {"_type": STATEMENT, "subject": [*subjects], "predicateType": PREDICATE, "predicate": receipt}


def envelope(receipt: JsonObject, sealer: Sealer) -> JsonObject:
    """The receipt's statement, signed."""
    payload = canonical(statement(receipt))
    seal = sealer.seal(encoding(payload))
    signature = base64.b64encode(bytes.fromhex(seal.value.partition(":")[2])).decode()
    coded = base64.b64encode(payload).decode()
    return {
        "payload": coded, "payloadType": PAYLOAD_TYPE, "signatures": [{"keyid": seal.key_id, "sig": signature}],
    }  # fmt: skip


def is_envelope(document: JsonValue) -> bool:
    """Whether it is to be checked here."""
    return isinstance(document, dict) and "payloadType" in document


def check_envelope(document: Any, verifiers: Mapping[str, Verifier]) -> Checked:
    """As `receipt_check.check`, of an envelope: it has no digests of its parts, so that less can be named."""
    faults, payload, key_id, signature = _opened(document)
    if faults:
        return broken(*faults)
    try:
        found: Any = parse_json(payload, max_bytes=MOST_BYTES, max_depth=MOST_DEPTH)
    except InvalidRequest as wrong:
        return broken(Fault("payload", f"cannot be read: {wrong.message}"))
    receipt: Any = found.get("predicate") if isinstance(found, dict) else None
    if not isinstance(receipt, dict) or not _is_statement(found, receipt):
        return broken(Fault("payload", "is not the statement of a receipt, or was changed"))
    if faults := shape_of_receipt(receipt):
        return broken(*faults)
    notes = notes_of_time(receipt)
    if verifiers:
        faults = _seal_faults(key_id, signature, payload=payload, verifiers=verifiers)
        faults = faults or faults_of_end(receipt, verifiers)
        notes += [] if faults else notes_of_seals(receipt, key_id, verifiers)
    else:
        notes.insert(0, UNCHECKED)
    authentic = not faults if verifiers else None
    return Checked(
        receipt["run_id"], digest(receipt), tuple(faults), authentic, len(receipt["leaves"]), None, tuple(notes),
        key_id.partition(":")[0],
    )  # fmt: skip


def _seal_faults(key_id: str, signature: bytes, *, payload: bytes, verifiers: Mapping[str, Verifier]) -> list[Fault]:
    verifier = verifiers.get(key_id)
    if verifier is None:
        return [Fault("signatures[0].keyid", f"is {key_id[:80]}, which was not given")]
    if not verifier.verify(encoding(payload), _seal(key_id, signature)):
        return [Fault("signatures[0].sig", f"is not the signature of this payload by {key_id}")]
    return []


def encoding(payload: bytes) -> bytes:
    """The pre-authentication encoding: what is signed."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _subject(name: str, sha256: str) -> JsonObject:
    return {"name": name, "digest": {"sha256": sha256.removeprefix("sha256:")}}


def _seal(key_id: str, signature: bytes) -> str:
    return f"{ED25519 if key_id.startswith(ED25519) else HMAC}:{signature.hex()}"


def _opened(document: Any) -> tuple[list[Fault], bytes, str, bytes]:
    """The payload, the id of its key and the signature."""
    nothing = b"", "", b""
    if document.keys() != _KEYS or document["payloadType"] != PAYLOAD_TYPE:
        return [Fault("payloadType", f"is not {PAYLOAD_TYPE}, or the envelope has other members")], *nothing
    try:
        [one] = document["signatures"]
        key_id, signature = str(one["keyid"]), _decoded(one["sig"])
    except (LookupError, TypeError, ValueError):
        return [Fault("signatures", "is not one signature {keyid, sig} in base64")], *nothing
    try:
        return [], _decoded(document["payload"]), key_id, signature
    except (TypeError, ValueError):
        return [Fault("payload", "is not base64")], *nothing


def _decoded(text: str) -> bytes:
    """Base64, in the one form that its bytes have."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as wrong:
        raise ValueError(str(wrong)) from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("not the form its bytes have")
    return data


def _is_statement(found: JsonObject, receipt: Any) -> bool:
    """Whether it is what `statement` makes of the receipt, and the root is that over its leaves."""
    try:
        hashes = [merkle.leaf_hash(leaf) for leaf in receipt["leaves"]]
        whole = receipt["merkle"] == {"leaves": len(hashes), "root": merkle.root(hashes)}
        return whole and canonical(found) == canonical(statement(receipt))
    except (LookupError, TypeError, AttributeError):
        return False
