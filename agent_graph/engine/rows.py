"""A run's fold as the rows the store keeps beside the log."""

from __future__ import annotations

from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.outcome import final_state
from agent_graph.core.run import Gate, Run, Usage
from agent_graph.core.waits import wake_ms
from agent_graph.store.base import ApprovalRow, RunRow, RunStatus


def run_row(graph: Graph, run: Run, *, created_at_ms: int) -> RunRow:
    """The row of a run after its latest event."""
    status: RunStatus = run.status  # type: ignore[assignment]  # `Run.status` speaks the contract's words
    return RunRow(
        run_id=run.run_id, graph_id=graph.name, graph_version=graph.version, thread_id=run.thread_id, status=status,
        seq=run.seq, created_at_ms=created_at_ms, started_at_ms=run.started_at_ms, finished_at_ms=run.finished_at_ms,
        error=run.error, final_state=final_state(run), usage=usage(run), wake_at_ms=wake_ms(run),
        budget={} if run.ledger is None else run.ledger.view(), principal=run.principal,
        forked_from={} if run.fork is None else {"run_id": run.fork.run_id, "seq": run.fork.seq},
    )  # fmt: skip


def usage(run: Run) -> JsonObject:
    """Counts from recorded facts; tokens are "unknown" where some host said nothing. What a fork has of its origin is
    told as `inherited`, and counted there."""
    found = _counted(run.usage)
    return found if run.fork is None else {**found, "inherited": _counted(run.fork.inherited)}


def _counted(counted: Usage) -> JsonObject:
    known = counted.unreported == 0
    found: JsonObject = {
        "llm_calls": counted.llm_calls,
        "prompt_tokens": counted.prompt_tokens if known else "unknown",
        "completion_tokens": counted.completion_tokens if known else "unknown",
        "nodes": counted.nodes,
    }
    if counted.cache_hits:
        found["cache_hits"] = counted.cache_hits
    return found


def approval_row(graph: Graph, run: Run, gate: Gate) -> ApprovalRow:
    """The row of one of the run's approvals."""
    return ApprovalRow(
        approval_id=gate.approval_id, run_id=run.run_id, graph_id=graph.name, graph_version=graph.version,
        node_id=gate.node_id, node_path=gate.firing, round=gate.round, audience=gate.audience, prompt=gate.prompt,
        subject=gate.subject, subject_digest=gate.subject_digest, allowed_decisions=gate.allowed_decisions,
        quorum=gate.quorum, channels=gate.channels, status=gate.status,  # type: ignore[arg-type]  # the contract's words
        created_at_ms=gate.opened_at_ms, expires_at_ms=gate.expires_at_ms, votes=tuple(gate.votes),
        decision=gate.decision, self_approval=gate.self_approval, subject_schema=gate.subject_schema,
        edited=gate.edited, original=gate.original, closed_at_ms=gate.closed_at_ms,
    )  # fmt: skip
