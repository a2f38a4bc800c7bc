"""Captured sources: sealing one, telling whether one is still what was captured, and comparing citations with them.

What a source says is the caller's word; the seal says that it has said so since it was captured, and nothing more.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from agent_graph.core import events as e
from agent_graph.core.effects import CheckEvidence
from agent_graph.core.evidence import compared
from agent_graph.core.jsonvalue import JsonObject, digest
from agent_graph.core.run import Run
from agent_graph.core.sealing import Seal
from agent_graph.core.step import Perform
from agent_graph.engine.keys import KeyRing
from agent_graph.engine.shell import Shell
from agent_graph.errors import AgentGraphError, Upstream, WitnessIntegrityFailure
from agent_graph.store.base import WitnessRow

KIND = "source_witness"


def digest_of(data: bytes) -> str:
    """``sha256:<hex>`` of bytes."""
    return f"sha256:{sha256(data).hexdigest()}"


def identified(row: WitnessRow) -> WitnessRow:
    """`row` with its digest and its id: the same source captured again by the same principal has the same one."""
    found = digest_of(row.content)
    named: JsonObject = {
        "principal": row.principal, "locator": row.locator, "media_type": row.media_type,
        "authority_class": row.authority_class, "retrieved_at_ms": row.retrieved_at_ms, "digest": found,
    }  # fmt: skip
    return replace(row, digest=found, witness_id=f"wit-{digest(named).removeprefix('sha256:')[:16]}")


def sealed(row: WitnessRow, keys: KeyRing) -> WitnessRow:
    """`row` with its seal. Raises `IntegrityKeyRequired`."""
    seal = keys.mac(_body(row))
    return replace(row, key_id=seal.key_id, seal=seal.value)


def check_seal(row: WitnessRow, keys: KeyRing) -> None:
    """Raises `WitnessIntegrityFailure`, saying nothing of the content, for what is not as it was captured; and
    `IntegrityKeyRequired`."""
    keys.mac_key()
    whole = _is_written(row) and row.digest == digest_of(row.content)
    if not whole or not keys.holds(_body(row), Seal(row.key_id, row.seal), sealed_at_ms=row.captured_at_ms):
        raise WitnessIntegrityFailure(
            f"The witness {row.witness_id} is not what was captured, or its key is not in this folder; it is not "
            "shown and proves nothing. Capture the source again.",
            witness_id=str(row.witness_id),
        )


def _is_written(row: WitnessRow) -> bool:
    """Every column holds the kind of value we write: a database takes any."""
    texts = (row.principal, row.locator, row.media_type, row.authority_class, row.via, row.digest, row.key_id, row.seal)
    numbers = (row.retrieved_at_ms, row.captured_at_ms)
    kinds = all(type(one) is str for one in texts) and all(type(one) is int for one in numbers)
    return kinds and type(row.content) is bytes


def _body(row: WitnessRow) -> JsonObject:
    return {
        "kind": KIND, "witness_id": row.witness_id, "principal": row.principal, "locator": row.locator,
        "media_type": row.media_type, "authority_class": row.authority_class, "retrieved_at_ms": row.retrieved_at_ms,
        "captured_at_ms": row.captured_at_ms, "via": row.via, "digest": row.digest, "bytes": len(row.content),
    }  # fmt: skip


async def check_evidence(
    perform: Perform, effect: CheckEvidence, *, shell: Shell, run: Run
) -> e.EvidenceChecked | e.NodeFailed:
    """How the citations of an answer compare with the sources that the run may see: those of who started it."""
    named = dict.fromkeys(one.witness_id for one in effect.citations)
    try:
        rows = await shell.store.witnesses.cite([*named], run_id=run.run_id, principal=run.principal)
        for row in rows:
            check_seal(row, shell.keys)
    except AgentGraphError as refusal:
        failure_class = "overloaded" if isinstance(refusal, Upstream) else "refused"
        error: JsonObject = {"code": refusal.code, "message": refusal.message, "class": failure_class}
        return e.NodeFailed(perform.firing, {**error, "details": refusal.details}, perform.attempt)
    problems = compared(effect.citations, {row.witness_id: row.content for row in rows})
    return e.EvidenceChecked(perform.firing, tuple(map(reference, rows)), tuple(problems), perform.attempt)


def reference(row: WitnessRow) -> JsonObject:
    """What a log and a receipt say of a witness: neither its content nor where it is from."""
    return {
        "witness_id": row.witness_id, "digest": row.digest, "locator_digest": digest_of(row.locator.encode()),
    }  # fmt: skip
