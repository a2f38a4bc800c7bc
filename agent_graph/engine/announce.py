"""What of a run's events is told outside, and in which words: small, and nothing that the run is about.

Ids, names, times, a status and a digest; what a person is asked to approve only where the operator wants it so. The
notices are written with the commit of their events, so none is lost and none tells of what did not happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from agent_graph.connect.base import KINDS
from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact
from agent_graph.core.redact import PLAIN, Redactor
from agent_graph.core.run import Gate, Run
from agent_graph.store.base import ApprovalRow, Notice, RunRow

TEXT_CHARS: Final = 4_000
"""Of a prompt or a subject that is told."""
NAME_CHARS: Final = 200
MOST_NAMES: Final = 20
_OF_GATES: Final[dict[type[e.Fact], str]] = {
    e.ApprovalOpened: "approval.opened", e.ApprovalReminded: "approval.expiring",
    e.ApprovalDecided: "approval.decided", e.ApprovalExpired: "approval.expired",
    e.ApprovalWithdrawn: "approval.withdrawn",
}  # fmt: skip
_PENDING: Final = frozenset({"approval.opened", "approval.expiring"})
_ENDS: Final = (e.RunCompleted, e.RunFailed, e.RunCancelled)


@dataclass(frozen=True, slots=True)
class Announcer:
    """Makes the notices of a process, and wakes who tells them."""

    targets: tuple[str, ...]
    kinds: frozenset[str] = frozenset(KINDS)
    text: bool = False
    """Prompt and subject are told too, without what looks like a secret and not beyond `TEXT_CHARS`."""
    redactor: Redactor = PLAIN
    wakes: dict[str, asyncio.Event] = field(default_factory=dict)
    """By target: set when there may be something to tell."""

    def notices(self, graph: Graph, run: Run, events: Iterable[e.Event]) -> tuple[Notice, ...]:
        """Those of events that `run`, which holds them, is about to commit."""
        found = []
        for event in events:
            fact = event.fact
            kind = _OF_GATES.get(type(fact), "run.ended" if isinstance(fact, _ENDS) else "")
            if kind not in self.kinds:
                continue
            data: JsonObject = {"run_id": run.run_id, "graph_id": graph.name, "graph_version": graph.version}
            if isinstance(fact, _ENDS):
                data |= _end(run.status, run.error, started_at_ms=run.started_at_ms, finished_at_ms=event.at_ms)
            else:
                data |= self._gate(run.gates[fact.approval_id], kind, fact)  # type: ignore[attr-defined]  # as `_OF_GATES` says
            found.append(self._notice(f"{run.run_id}_{event.seq}", kind, event.at_ms, data))
        return tuple(found)

    def of_written_off(self, row: RunRow, gates: Sequence[ApprovalRow], *, code: str, at_ms: int) -> tuple[Notice, ...]:
        """Those of a run that ends by its row alone, since its log cannot be read."""
        common: JsonObject = {"run_id": row.run_id, "graph_id": row.graph_id, "graph_version": row.graph_version}
        end = _end("cancelled", {"code": code}, started_at_ms=row.started_at_ms, finished_at_ms=at_ms)
        found = [(f"{gate.approval_id}_withdrawn", "approval.withdrawn", _row(gate)) for gate in gates]
        found.append((f"{row.run_id}_written-off", "run.ended", end))
        return tuple(
            self._notice(notice_id, kind, at_ms, common | data) for notice_id, kind, data in found if kind in self.kinds
        )

    def written(self) -> None:
        """Notices are durable."""
        for wake in self.wakes.values():
            wake.set()

    def _notice(self, notice_id: str, kind: str, at_ms: int, data: JsonObject) -> Notice:
        return Notice(notice_id, self.targets, at_ms, {"id": notice_id, "type": kind, "at_ms": at_ms, "data": data})

    def _gate(self, gate: Gate, kind: str, fact: e.Fact) -> JsonObject:
        data: JsonObject = {
            "approval_id": gate.approval_id, "node_id": gate.node_id, "node_path": gate.firing, "round": gate.round,
            "status": "pending" if kind in _PENDING else gate.status, "subject_digest": gate.subject_digest,
            "audience": _names(gate.audience), "allowed_decisions": _names(gate.allowed_decisions),
            "channels": _names(gate.channels), "quorum": gate.quorum, "created_at_ms": gate.opened_at_ms,
            "expires_at_ms": gate.expires_at_ms,
        }  # fmt: skip
        if isinstance(fact, e.ApprovalDecided):
            data |= {"decision": fact.decision, "decided_by": fact.by[:NAME_CHARS], "via": fact.via}
        if self.text:
            data |= {"prompt": self._shown(gate.prompt), "subject": self._shown(gate.subject)}
        return data

    def _shown(self, value: JsonValue) -> str:
        """A text, or the JSON of anything else: without secrets, and cut."""
        value = self.redactor.value(value)
        said = value if isinstance(value, str) else compact(value)
        return said if len(said) <= TEXT_CHARS else said[:TEXT_CHARS] + " [cut]"


def _end(status: str, error: JsonObject | None, *, started_at_ms: int | None, finished_at_ms: int) -> JsonObject:
    data: JsonObject = {"status": status, "started_at_ms": started_at_ms, "finished_at_ms": finished_at_ms}
    return data if error is None else {**data, "error_code": str(error.get("code", ""))}


def _row(gate: ApprovalRow) -> JsonObject:
    return {
        "approval_id": gate.approval_id, "node_id": gate.node_id, "node_path": gate.node_path, "round": gate.round,
        "status": "withdrawn", "subject_digest": gate.subject_digest,
    }  # fmt: skip


def _names(names: Sequence[str]) -> list[JsonValue]:
    return [name[:NAME_CHARS] for name in names[:MOST_NAMES]]
