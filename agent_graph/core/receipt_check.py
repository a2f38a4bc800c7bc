"""Checks a receipt, alone or with its bundle, and names what does not hold; needs no store, no run and no graph.

What a receipt says of its events is checked against them where the bundle has them. Without a key everything but the
seals is checked, and that is said: then nobody knows who made the receipt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_graph.core import merkle
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.core.receipt import BUNDLE, RECEIPT
from agent_graph.core.receipt_chain import Fault, Link, chain_faults, links_of
from agent_graph.core.receipt_leaves import output_digest
from agent_graph.core.receipt_seal import seal_body
from agent_graph.core.sealing import Retired, Verifier, holds

SHAPE: Final[Mapping[str, type]] = {
    "receipt": dict, "receipt.kind": str, "receipt.run_id": str, "receipt.status": str, "receipt.graph": dict,
    "receipt.graph.subgraphs": list, "receipt.leaves": list, "receipt.merkle": dict, "receipt.chain": dict,
    "receipt.sealed": dict, "receipt.sealed.seal": str, "receipt.sealed.key_id": str, "receipt.sealed.late": bool,
    "integrity": dict, "integrity.digest": str, "integrity.members": dict, "integrity.leaves": list,
    "integrity.key_id": str, "integrity.seal": str, "integrity.verified": bool,
}  # fmt: skip
BUNDLED: Final[Mapping[str, type]] = {
    "bundle": dict, "bundle.kind": str, "bundle.receipt": str, "bundle.graphs": list, "bundle.events": list,
    "integrity.bundle_digest": str,
}  # fmt: skip
MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"receipt", "integrity", "bundle"}),
    "integrity": frozenset({"verified", "digest", "members", "leaves", "key_id", "seal", "bundle_digest"}),
    "bundle": frozenset({"kind", "receipt", "graphs", "events"}),
}
"""All that these may have."""
OBJECTS: Final = ("receipt.leaves", "receipt.graph.subgraphs")
"""Lists of objects."""
UNCHECKED: Final = "authenticity was NOT checked: without a key nobody can tell who made this receipt"
ENDS: Final = {"node_finished": "finished", "node_failed": "failed", "firing_cancelled": "cancelled"}
_HASH: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. It holds when there are no faults; `authentic` is None where no key was given."""

    run_id: str
    digest: str
    faults: tuple[Fault, ...]
    authentic: bool | None
    leaves: int
    events: int | None
    """None without a bundle."""
    notes: tuple[str, ...]
    """What a reader has to know, although nothing is wrong."""
    sealed_by: str = ""
    """The kind of the key that sealed it, as the receipt says: ``hmac`` or ``ed25519``."""


def check(document: JsonValue, verifiers: Mapping[str, Verifier]) -> Checked:
    """Check {receipt, integrity, bundle?}; `verifiers` are the keys there are, by id."""
    whole: Any = document
    faults = _shape(whole)
    if faults:
        return broken(*faults)
    receipt, integrity, bundle = whole["receipt"], whole["integrity"], whole.get("bundle")
    faults = _receipt_faults(receipt, integrity)
    notes: list[str] = []
    if bundle is not None:
        more, withheld = _bundle_faults(receipt, bundle, integrity)
        faults += more
        if withheld:
            notes.append(f"{withheld} of {len(bundle['events'])} events are withheld, by whoever passed the bundle on: "
                         "of them only the hash is there")  # fmt: skip
        if None in bundle["graphs"]:
            notes.append("a graph is withheld, by whoever passed the bundle on: only its version is there")
    authentic = None
    if verifiers:
        faults += [] if faults else _seal_faults(receipt, integrity, verifiers)
        authentic = not faults
        notes += [] if faults else notes_of_seals(receipt, integrity["key_id"], verifiers)
    else:
        notes.append(UNCHECKED)
    notes += notes_of_time(receipt)
    events = None if bundle is None else len(bundle["events"])
    return Checked(
        receipt["run_id"], digest(receipt), tuple(faults), authentic, len(receipt["leaves"]), events, tuple(notes),
        str(integrity["key_id"]).partition(":")[0],
    )  # fmt: skip


def broken(*faults: Fault) -> Checked:
    """What can be said of something that is no receipt."""
    return Checked("", "", faults, None, 0, None, ())


# -- its shape -------------------------------------------------------------------------------------------------------


def shape_of_receipt(receipt: Any) -> list[Fault]:
    """Whether all is there that the checks of a receipt look at."""
    document = {"receipt": receipt}
    faults = _misshapen(document, {path: kind for path, kind in SHAPE.items() if path.startswith("receipt")})
    if not faults and receipt["kind"] != RECEIPT:
        faults = [Fault("receipt.kind", f"is not {RECEIPT}, which is what can be checked here")]
    return faults


def _misshapen(document: Any, shape: Mapping[str, type]) -> list[Fault]:
    for path, kind in shape.items():
        if type(_at(document, path)) is not kind:
            return [Fault(path or "file", f"is missing, or is not what it has to be ({kind.__name__})")]
    for path in OBJECTS:
        for place, one in enumerate(_at(document, path)):
            if not isinstance(one, dict):
                return [Fault(f"{path}[{place}]", "is not an object")]
    return []


def _shape(document: Any) -> list[Fault]:
    bundled = isinstance(document, dict) and "bundle" in document
    if faults := _misshapen(document, {"": dict, **SHAPE, **(BUNDLED if bundled else {})}):
        return faults
    for path, known in MEMBERS.items():
        if more := (_at(document, path) or {}).keys() - known:
            return [Fault(f"{path}.{min(more)}".lstrip("."), "has no place here")]
    if not bundled and "bundle_digest" in document["integrity"]:
        return [Fault("bundle", "was removed: its digest is still here")]
    for path, wanted in (("receipt.kind", RECEIPT), ("bundle.kind", BUNDLE if bundled else None)):
        if _at(document, path) != wanted:
            return [Fault(path, f"is not {wanted}, which is what can be checked here")]
    if document["integrity"]["verified"] is not True:
        return [Fault("integrity.verified", "is not true: who made this receipt says that it does not hold")]
    return []


def _at(document: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none, as where it is null."""
    for name in path.split(".") if path else ():
        document = document.get(name) if isinstance(document, dict) else None
    return document


# -- the receipt by itself -------------------------------------------------------------------------------------------


def _receipt_faults(receipt: JsonObject, integrity: Any) -> list[Fault]:
    whole = digest(receipt) == integrity["digest"]
    faults = _leaf_faults(receipt, integrity["leaves"])
    stated = integrity["members"]
    for name in sorted((receipt.keys() | stated.keys()) - {"leaves"}):
        if name not in receipt:
            faults.append(Fault(f"integrity.members.{name}", "was added") if whole else _member(name, "was removed"))
        elif name not in stated:
            faults.append(Fault(f"integrity.members.{name}", "was removed") if whole else _member(name, "was added"))
        elif digest(receipt[name]) != stated[name]:
            place = f"integrity.members.{name}" if whole else f"receipt.{name}"
            faults.append(Fault(place, "was changed: its digest is another"))
    if not whole and not faults:
        faults.append(Fault("integrity.digest", "was changed: it is not the digest of the receipt"))
    return faults


def _member(name: str, said: str) -> Fault:
    return Fault(f"receipt.{name}", said)


def _leaf_faults(receipt: Any, stated: list[Any]) -> list[Fault]:
    leaves, tree = receipt["leaves"], receipt["merkle"]
    found = [merkle.leaf_hash(leaf) for leaf in leaves]
    holds_ = tree.get("root") == merkle.root(found) and tree.get("leaves") == len(found)
    if found == stated:
        return [] if holds_ else [Fault("receipt.merkle", "was changed: it is not the root over the leaves")]
    if holds_:
        place, said = _difference(stated, found)
        return [Fault(f"integrity.leaves[{place}]", said)]
    place, said = _difference(found, stated)
    shown = leaves[place].get("node_path", "") if place < len(leaves) else ""
    faults = [Fault(f"receipt.leaves[{place}]" + (f" ({shown})" if shown else ""), said)]
    if all(isinstance(one, str) and _HASH.fullmatch(one) for one in stated) and tree.get("root") == merkle.root(stated):
        return faults
    return [*faults, Fault("receipt.merkle", "is not the root over the leaves")]


def _difference(found: Sequence[Any], wanted: Sequence[Any]) -> tuple[int, str]:
    """The first place at which two lists differ, and what was done to the first of them."""
    pairs = enumerate(zip(found, wanted, strict=False))
    place = next((at for at, (a, b) in pairs if a != b), min(len(found), len(wanted)))
    if len(found) < len(wanted):
        return place, f"was removed: there are {len(found)} of {len(wanted)}"
    if len(found) > len(wanted):
        return place, f"was added: there are {len(found)} of {len(wanted)}"
    if sorted(map(str, found)) == sorted(map(str, wanted)):
        return place, "was reordered: another one stands in its place"
    return place, "was changed: its hash is another"


# -- seals -----------------------------------------------------------------------------------------------------------


def _seal_faults(receipt: Any, integrity: Any, verifiers: Mapping[str, Verifier]) -> list[Fault]:
    key_id = integrity["key_id"]
    verifier = verifiers.get(key_id)
    if verifier is None:
        return [Fault("integrity.key_id", f"is {key_id[:80]}, and what was given is {', '.join(sorted(verifiers))}")]
    if not holds(verifier, receipt, integrity["seal"]):
        return [Fault("integrity.seal", f"is not the seal of this receipt by {key_id}")]
    return faults_of_end(receipt, verifiers)


def faults_of_end(receipt: Any, verifiers: Mapping[str, Verifier]) -> list[Fault]:
    """What does not hold of the seal that was made when the run ended; nothing where its key was not given."""
    sealed, chain = receipt["sealed"], receipt["chain"]
    verifier, at_ms = verifiers.get(sealed["key_id"]), sealed.get("sealed_at_ms")
    if verifier is None:
        return []
    body = seal_body(
        run_id=receipt["run_id"], status=receipt["status"], events=chain.get("events"), head=chain.get("head"),
        sealed_at_ms=at_ms, late=sealed["late"],
    )  # fmt: skip
    if not holds(verifier, body, sealed["seal"]):
        return [Fault("receipt.sealed", "is not the seal of the events' head that was made when the run ended")]
    if isinstance(verifier, Retired) and not (isinstance(at_ms, int) and at_ms <= verifier.retired_at_ms):
        return [Fault("receipt.sealed", f"was made at {at_ms} by a key that was retired at {verifier.retired_at_ms}")]
    return []


def notes_of_seals(receipt: Any, key_id: str, verifiers: Mapping[str, Verifier]) -> list[str]:
    """What the seals, which hold, leave open; `key_id` is the key of the receipt's own."""
    notes, at_the_end = [], receipt["sealed"]["key_id"]
    if at_the_end not in verifiers:
        notes.append(f"what was sealed when the run ended was not checked: its key {at_the_end} was not given")
    for one in sorted({key_id, at_the_end}):
        verifier = verifiers.get(one)
        if isinstance(verifier, Retired):
            notes.append(f"the key {one} was retired at {verifier.retired_at_ms}: whoever got hold of it can have made "
                         "this since, with an earlier time")  # fmt: skip
    return notes


def notes_of_time(receipt: Any) -> list[str]:
    """What is to be said of the time for which nothing vouches."""
    if not receipt["sealed"]["late"]:
        return []
    return ["sealed late: the run had ended before anything was sealed, and nothing vouches for the time until then"]


# -- the bundle ------------------------------------------------------------------------------------------------------


def _bundle_faults(receipt: Any, bundle: Any, integrity: Any) -> tuple[list[Fault], int]:
    """What does not hold, and how many events are withheld."""
    links, faults = links_of(bundle["events"])
    if not faults:
        chain = receipt["chain"]
        faults = chain_faults(links, count=chain.get("events"), head=chain.get("head"))
    faults = [Fault(f"bundle.{fault.place}", fault.said) for fault in faults]
    faults += _graph_faults(receipt["graph"], bundle["graphs"])
    if bundle["receipt"] != integrity["digest"]:
        faults.append(Fault("bundle.receipt", "is the digest of another receipt"))
    if not faults:
        faults = _disagreements(receipt["leaves"], links)
    if not faults and digest(bundle) != integrity["bundle_digest"]:
        faults.append(Fault("integrity.bundle_digest", "was changed: it is not the digest of the bundle"))
    return faults, sum(link.body is None for link in links)


def _graph_faults(graph: Any, texts: list[JsonValue]) -> list[Fault]:
    """A graph's version is the digest of its text; null stands for one that is withheld."""
    versions = [graph.get("graph_version"), *(one.get("graph_version") for one in graph["subgraphs"])]
    if len(texts) != len(versions):
        return [Fault("bundle.graphs", f"there are {len(texts)}, and the receipt names {len(versions)}")]
    return [
        Fault(f"bundle.graphs[{place}]", f"was changed: it is not {version}")
        for place, (text, version) in enumerate(zip(texts, versions, strict=True))
        if text is not None and "sha256:" + hashlib.sha256(str(text).encode()).hexdigest() != version
    ]


def _disagreements(leaves: list[Any], links: Sequence[Link]) -> list[Fault]:
    """Where leaves say something else than the events they are of, and events that no leaf is of."""
    named = {seq for leaf in leaves if isinstance(seq := leaf.get("seq"), int)}
    faults = []
    for place, leaf in enumerate(leaves):
        seq = leaf.get("seq")
        body = links[seq].body if isinstance(seq, int) and 0 <= seq < len(links) else None
        if body is not None and not _agrees(leaf, body):
            path = str(leaf.get("node_path"))
            faults.append(Fault(f"receipt.leaves[{place}] ({path})", f"says something else than event {seq}"))
    for seq, link in enumerate(links):
        if link.body is not None and link.body.get("type") in ENDS and seq not in named:
            faults.append(Fault(f"bundle.events[{seq}]", "ends a firing of which there is no leaf"))
    return faults


def _agrees(leaf: JsonObject, body: JsonObject) -> bool:
    kind = str(body.get("type"))
    if (leaf.get("node_path"), leaf.get("outcome")) != (body.get("firing"), ENDS.get(kind)):
        return False
    if kind == "firing_cancelled":
        return leaf.get("output") is None
    return (leaf.get("attempt"), leaf.get("output")) == (body.get("attempt", 1), output_digest(body))
