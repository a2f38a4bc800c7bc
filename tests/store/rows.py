"""Rows as the tests of the store write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent_graph.core.effects import Write
from agent_graph.core.events import Event, Fact, NodeFinished, NodeStarted, RunAccepted
from agent_graph.store.base import Answered, ApprovalRow, Commit, GraphRow, RunRow
from agent_graph.store.sqlite import SqliteStore

AT_MS = 1_700_000_000_000
GRAPH = GraphRow(
    "council", "sha256:v1", "Three analysts and a judge", 5, 6, AT_MS, spec={"entry": "a"}, compiled={"order": [0, 1]}
)


def graph(version: str = "sha256:v1", **changes: Any) -> GraphRow:
    return replace(GRAPH, graph_version=version, **changes)


def run(run_id: str = "run-1", **changes: Any) -> RunRow:
    return replace(RunRow(run_id, "council", "sha256:v1", "", "running", 0, AT_MS), **changes)


def events(first_seq: int, *facts: Fact) -> tuple[Event, ...]:
    return tuple(Event(first_seq + offset, AT_MS + first_seq + offset, fact) for offset, fact in enumerate(facts))


def start(run_id: str = "run-1", *, answered: Answered | None = None, **changes: Any) -> Commit:
    fact = RunAccepted(run_id, "council", "sha256:v1", {"question": "why?"})
    return Commit(run(run_id, **changes), 0, events(0, fact), create=True, answered=answered)


def step(seq: int, run_id: str = "run-1", *, note: Any = "text", **changes: Any) -> Commit:
    """The commit of one step: two events from `seq`."""
    finished = NodeFinished(f"n{seq}#1", writes=(Write("set", ("note",), note),), output=(note,))
    facts = events(seq, finished, NodeStarted(f"n{seq + 1}#1"))
    return Commit(run(run_id, **changes), seq, facts)


def answered(key: str = "key-1", *, digest: str = "sha256:request", run_id: str = "") -> Answered:
    return Answered(key, digest, {"run_id": run_id, "status": "accepted"}, run_id)


def approval(approval_id: str = "approval-1", **changes: Any) -> ApprovalRow:
    row = ApprovalRow(
        approval_id=approval_id,
        run_id="run-1",
        graph_id="council",
        graph_version="sha256:v1",
        node_id="gate",
        node_path="gate#1",
        round=1,
        audience=("editors", "legal"),
        prompt="Publish?",
        subject={"text": "a draft", "cost": 12345678901234567890},
        subject_digest="sha256:subject",
        allowed_decisions=("approve", "reject"),
        quorum=1,
        channels=("cli",),
        status="pending",
        created_at_ms=AT_MS,
        expires_at_ms=AT_MS + 1_000,
    )
    return replace(row, **changes)


async def begin(store: SqliteStore, *run_ids: str) -> None:
    """A stored graph, and a run with one event for each id."""
    await store.graphs.put(GRAPH, overwrite=False, expected_version=None)
    for run_id in run_ids:
        await store.runs.commit(start(run_id))


async def with_approvals(store: SqliteStore, *approvals: ApprovalRow) -> None:
    row = await store.runs.get("run-1")
    await store.runs.commit(Commit(row, row.seq, (), approvals=approvals))


async def whole_list(listing: Any, *, limit: int, **filters: Any) -> list[Sequence[Any]]:
    """All pages of a list."""
    pages, cursor = [], None
    while True:
        rows, cursor = await listing(limit=limit, cursor=cursor, **filters)
        pages.append(rows)
        if cursor is None:
            return pages
