"""What is stored, as the contract shows it: one function per shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from agent_graph.core import images
from agent_graph.core.budgets import WALL_CLOCK
from agent_graph.core.deciding import how_to_decide
from agent_graph.core.events import FACTS
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import StoreCorrupt
from agent_graph.store.base import TERMINAL, ApprovalRow, GraphRow, RunRow, StoredEvent

ATTEMPTS: Final = frozenset(name for name, fact in FACTS.items() if "attempt" in {field.name for field in fields(fact)})  # type: ignore[arg-type]  # every fact is a dataclass
"""Events that are about one attempt of a firing."""


def rfc3339(at_ms: int | None) -> str | None:
    """``2026-01-31T12:00:00.000Z``."""
    if at_ms is None:
        return None
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


CORRUPT: Final[JsonObject] = {
    "code": StoreCorrupt.code, "message": "The row is not what this program wrote: see agent-graph doctor.",
}  # fmt: skip
"""What a list says of a row that is damaged, instead of what stands in it."""


def graph_row(row: GraphRow) -> JsonObject:
    """A graph in a list."""
    return {
        "graph_id": row.graph_id, "graph_version": row.graph_version, "description": row.description,
        "node_count": row.node_count, "edge_count": row.edge_count, "updated_at_ms": row.updated_at_ms,
        **({"damaged": True, "error": CORRUPT} if row.damaged else {}),
    }  # fmt: skip


def run_row(row: RunRow) -> JsonObject:
    """A run in a list."""
    body: JsonObject = {
        "run_id": row.run_id, "status": row.status, "graph_id": row.graph_id, "graph_version": row.graph_version,
        "thread_id": row.thread_id, "created_at": rfc3339(row.created_at_ms), "created_at_ms": row.created_at_ms,
        "finished_at": rfc3339(row.finished_at_ms), "finished_at_ms": row.finished_at_ms,
    }  # fmt: skip
    if row.principal:
        body["principal"] = row.principal
    if row.forked_from:
        body["forked_from"] = row.forked_from
    if row.error is not None:
        body["error"] = row.error
    if row.damaged:
        body |= {"damaged": True, "error": CORRUPT}
    return body


def run(row: RunRow, *, storage: str, now_ms: int) -> JsonObject:
    """A run by itself, without approvals and state."""
    started, finished = row.started_at_ms, row.finished_at_ms
    ended = now_ms if finished is None else finished
    wall = 0 if started is None else max(0, ended - started)  # after a restart the clock may stand before the start
    body: JsonObject = {
        "run_id": row.run_id, "status": row.status, "success": row.status == "completed", "graph_id": row.graph_id,
        "graph_version": row.graph_version, "thread_id": row.thread_id, "storage": storage,
        "started_at": rfc3339(started), "finished_at": rfc3339(finished), "started_at_ms": started,
        "finished_at_ms": finished, "usage": {**row.usage, "wall_clock_ms": wall},
        "budget": _budget(row.budget, wall),
    }  # fmt: skip
    if row.principal:
        body["principal"] = row.principal
    if row.forked_from:
        body["forked_from"] = row.forked_from
    if row.pinned:
        body["pinned"] = True
    if row.first_seq:
        body["pruned"] = True
    if row.error is not None:
        body["error"] = row.error
    if row.status in TERMINAL and row.final_state:
        body["final_state"] = row.final_state[0]
    return body


def _budget(budget: Mapping[str, Any], wall_clock_ms: int) -> JsonObject:
    """What is used of what a run may use; of its time as of now."""
    body = dict(budget)
    if WALL_CLOCK in body:
        body[WALL_CLOCK] = {**body[WALL_CLOCK], "used": wall_clock_ms}
    return body


def approval(row: ApprovalRow, *, console: str = "") -> JsonObject:
    """An approval, and no other run state; `console` is the address at which it can be decided too, if there is one."""
    body: JsonObject = {
        "approval_id": row.approval_id, "run_id": row.run_id, "graph_id": row.graph_id,
        "graph_version": row.graph_version, "node_id": row.node_id, "node_path": row.node_path,
        "audience": list(row.audience), "prompt": row.prompt, "subject": row.subject,
        "subject_digest": row.subject_digest, "allowed_decisions": list(row.allowed_decisions), "quorum": row.quorum,
        "channels": list(row.channels), "status": row.status, "created_at_ms": row.created_at_ms,
        "expires_at_ms": row.expires_at_ms, "votes": list(row.votes),
    }  # fmt: skip
    if row.round > 1:
        body["round"] = row.round
    if not row.self_approval:
        body["self_approval"] = False
    if row.edited:
        body["original_subject"] = row.original
    if row.subject_schema:
        body["subject_schema"] = row.subject_schema
    if row.decision is not None:
        body["decision"] = row.decision
    if row.closed_at_ms is not None:
        body["closed_at_ms"] = row.closed_at_ms
    if row.damaged:
        body |= {"damaged": True, "error": CORRUPT}
    elif row.status == "pending":
        body["how_to_decide"] = way_to_decide(row, console=console)
    return body


def way_to_decide(row: ApprovalRow, *, console: str) -> str:
    """How a person can decide a pending approval, in words for whoever asks."""
    return how_to_decide(
        row.approval_id, channels=row.channels, decisions=row.allowed_decisions, console=console,
        self_approval=row.self_approval,
    )  # fmt: skip


def event(stored: StoredEvent, *, duration_ms: int | None = None) -> JsonObject:
    """An event as it is stored, pictures by digest, and what follows from it: the node it is about by path and by id,
    its attempt also where that is the first, how long what it ends took."""
    named: Any = images.named(stored.body)
    body: JsonObject = dict(named)
    firing = body.get("firing")
    if isinstance(firing, str):
        body["node_path"], body["node_id"] = firing, firing.rpartition("/")[2].partition("#")[0]
        if body["type"] in ATTEMPTS:
            body.setdefault("attempt", 1)
    if duration_ms is not None:
        body["duration_ms"] = duration_ms
    return body
