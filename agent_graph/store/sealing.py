"""What is kept of a run's seal: made of the head of its chain in the transaction that ends it; holds no key, no SQL."""

from __future__ import annotations

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.receipt_seal import seal_body
from agent_graph.core.sealing import Seal
from agent_graph.store.columns import json_text
from agent_graph.store.rows import TERMINAL, Commit


def seal_of(commit: Commit, events: int, head: str) -> str | None:
    """The column of a run that ends with so many events and that head (hexadecimal digits); None for any other."""
    run = commit.run
    if commit.seal is None or run.status not in TERMINAL:
        return None
    at_ms = run.finished_at_ms or 0
    seal = commit.seal(seal_body(
        run_id=run.run_id, status=run.status, events=events, head=f"sha256:{head}", sealed_at_ms=at_ms
    ))  # fmt: skip
    return json_text(kept(seal, sealed_at_ms=at_ms, late=False))


def kept(seal: Seal, *, sealed_at_ms: int, late: bool) -> JsonObject:
    """A seal as it is kept, and stands in a receipt."""
    return {**seal.to_json(), "sealed_at_ms": sealed_at_ms, "late": late}
