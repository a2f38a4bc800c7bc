"""Makes the receipt of a run that has ended, out of its log and of what was sealed when it ended, and nothing else.

What is stored is not trusted: the chain of events is checked, and the seal of its head. A run that had ended before its
folder had a key is sealed late, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_graph.core import events as e
from agent_graph.core.dsse import envelope
from agent_graph.core.frozen import dataclass
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, canonical_text, digest
from agent_graph.core.receipt import BUNDLE, graphs_of, integrity_of, receipt_of
from agent_graph.core.receipt_chain import Link, chain_faults, links_of
from agent_graph.core.receipt_seal import seal_body
from agent_graph.core.redact import Redactor
from agent_graph.core.sealing import Seal
from agent_graph.engine.keys import KeyRing
from agent_graph.errors import ReceiptIntegrityFailure
from agent_graph.store.base import SealedLog

HOW: Final = "Put a copy of the database back; agent-graph doctor looks at all of it."


@dataclass(frozen=True, slots=True)
class Issued:
    """A receipt with what it is checked by."""

    receipt: JsonObject
    integrity: JsonObject
    """{verified, digest, members, leaves, key_id, seal, bundle_digest?}"""
    bundle: JsonObject | None = None


def late_seal(log: SealedLog, keys: KeyRing, *, now_ms: int) -> JsonObject:
    """The seal of a run that has none, as it is kept. Raises `ReceiptIntegrityFailure` when there was a key already
    when it ended: then it had a seal, and somebody took it away."""
    check_older(log, keys)
    body = seal_body(
        run_id=log.run_id, status=log.status, events=log.count, head=log.head, sealed_at_ms=now_ms, late=True
    )
    return {**keys.seal(body).to_json(), "sealed_at_ms": now_ms, "late": True}


def check_older(log: SealedLog, keys: KeyRing) -> None:
    """Raises `ReceiptIntegrityFailure` unless the run, which has no seal, ended before there was a key."""
    first_ms = min((info.created_at_ms for info in keys.infos()), default=0)
    if log.finished_at_ms is None or log.finished_at_ms >= first_ms:
        raise _failure(log, "it ended when there was a key already, and has no seal")


def check(log: SealedLog) -> list[Link]:
    """The events as links of a whole chain. Raises `ReceiptIntegrityFailure`, which quotes nothing of them."""
    texts: list[JsonValue] = [body.decode("utf-8", "replace") for body in log.events]
    links, faults = links_of(texts)
    faults = faults or chain_faults(links, count=log.count, head=log.head)
    if faults:
        raise _failure(log, f"{faults[0].place} {faults[0].said}", place=faults[0].place)
    return links


def issue(graph: Graph, log: SealedLog, keys: KeyRing, *, withhold: Redactor | None = None) -> Issued:
    """The receipt of a run whose log has a seal. Takes as long as a few folds of the log: not for the event loop.
    With `withhold` it comes with its bundle, without what that takes for secrets.

    Raises `ReceiptIntegrityFailure`, `IntegrityKeyRequired`.
    """
    sealed: Any = log.seal
    links = check_sealed(log, keys)
    receipt = receipt_of(graph, _facts(log, links), head=log.head, sealed=sealed)
    if receipt["status"] != log.status:
        raise _failure(log, "its events end otherwise than it says")
    integrity: JsonObject = {"verified": True, **integrity_of(receipt), **keys.seal(receipt).to_json()}
    if withhold is None:
        return Issued(receipt, integrity)
    bundle: JsonObject = {
        "kind": BUNDLE, "receipt": integrity["digest"], "graphs": _texts(graph, withhold),
        "events": _events(log, links, withhold),
    }  # fmt: skip
    return Issued(receipt, {**integrity, "bundle_digest": digest(bundle)}, bundle)


def check_sealed(log: SealedLog, keys: KeyRing) -> list[Link]:
    """As `check`, and its seal is one that the folder's keys made."""
    sealed: Any = log.seal
    links = check(log)
    body = seal_body(
        run_id=log.run_id, status=log.status, events=log.count, head=log.head,
        sealed_at_ms=sealed.get("sealed_at_ms"), late=bool(sealed.get("late")),
    )  # fmt: skip
    seal = Seal(str(sealed.get("key_id")), str(sealed.get("seal")))
    if sealed.get("key_id") and seal.key_id not in {info.key_id for info in keys.infos()}:
        raise _unknown_key(log, seal.key_id[:40])
    if not keys.holds(body, seal, sealed_at_ms=sealed.get("sealed_at_ms")):
        raise _failure(log, f"its seal is not one that {seal.key_id[:40]} made of it", place="seal")
    return links


def check_ended(log: SealedLog, keys: KeyRing) -> None:
    """As `check_sealed`; as `check` where the folder has no key, or the run had ended before there was one."""
    if keys.mode == "keyless":
        check(log)
    elif log.seal is not None:
        check_sealed(log, keys)
    else:
        check(log)
        check_older(log, keys)


def changed(log: SealedLog, keys: KeyRing) -> ReceiptIntegrityFailure:
    """What is wrong with a run whose row is not what was written."""
    try:
        if log.seal is not None:
            check_sealed(log, keys)
    except ReceiptIntegrityFailure as found:
        return found
    return _failure(log, "something else has changed its row")


def as_envelope(issued: Issued, keys: KeyRing) -> JsonObject:
    """The receipt as a DSSE envelope."""
    return envelope(issued.receipt, keys.sealer())


def _facts(log: SealedLog, links: Sequence[Link]) -> list[e.Event]:
    """The events with their facts; raises `ReceiptIntegrityFailure` for one this program does not know."""
    found: list[e.Event] = []
    for link in links:
        body: Any = link.body
        try:
            found.append(e.Event(body["seq"], body["at_ms"], e.from_json(body)))
        except (KeyError, TypeError):
            raise _failure(log, f"event {body['seq']} is of a kind this program does not know") from None
    return found


def _texts(graph: Graph, withhold: Redactor) -> list[JsonValue]:
    """The spec of the run's graph and of those inside it, in the order in which the receipt names them; null for one
    that holds what looks like a secret."""
    specs = [one.spec for one in graphs_of(graph)]
    return [canonical_text(spec) if withhold.shapes(spec) == spec else None for spec in specs]


def _events(log: SealedLog, links: Sequence[Link], withhold: Redactor) -> list[JsonValue]:
    """The exact texts that were hashed; of one that holds what looks like a secret only its place in the chain."""
    return [
        body.decode()
        if withhold.value(link.body) == link.body
        else {"seq": link.seq, "prev": link.prev, "hash": link.hash}
        for body, link in zip(log.events, links, strict=True)
    ]


def _unknown_key(log: SealedLog, key_id: str) -> ReceiptIntegrityFailure:
    """Its events hold together; who sealed them cannot be told."""
    return ReceiptIntegrityFailure(
        f"Run {log.run_id} cannot be checked: it was sealed by {key_id}, which is not among the folder's keys. Put "
        "that key back from a copy, with keys.json and keys/. If there never was such a key, the seal was changed.",
        run_id=log.run_id, place="seal", reason="key_missing", key_id=key_id,
    )  # fmt: skip


def _failure(log: SealedLog, why: str, **details: Any) -> ReceiptIntegrityFailure:
    return ReceiptIntegrityFailure(
        f"What is stored of run {log.run_id} is not what was sealed when it ended: {why}. {HOW}", run_id=log.run_id,
        **details,
    )  # fmt: skip
