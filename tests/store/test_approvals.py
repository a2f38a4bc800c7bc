"""The contract of approvals: written with their run, listed oldest first, expired on time; memory and file alike."""

from __future__ import annotations

import pytest

from agent_graph.errors import ApprovalNotFound
from agent_graph.store.base import Commit
from agent_graph.store.sqlite import SqliteStore
from tests.store.rows import AT_MS, approval, begin, run, start, whole_list, with_approvals


async def ids(store: SqliteStore, **filters: object) -> list[str]:
    rows, _ = await store.approvals.list(**filters)  # type: ignore[arg-type]
    return [row.approval_id for row in rows]


async def test_an_approval_is_read_back_as_it_was_written(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await with_approvals(store, approval())
    assert await store.approvals.get("approval-1") == approval()


async def test_a_decided_approval_keeps_its_place_and_says_what_was_decided(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await with_approvals(store, approval(), approval("approval-2"))
    vote = {"decision": "approve", "decision_note": "ja", "decided_by": "Zoë", "via": "cli", "at_ms": AT_MS + 5}
    decided = approval(status="approved", votes=(vote,), decision={"decision": "approve", "by": "Zoë"})
    await with_approvals(store, decided)
    assert await store.approvals.get("approval-1") == decided
    assert await ids(store) == ["approval-1", "approval-2"]
    assert await ids(store, statuses=["pending"]) == ["approval-2"]


async def test_an_unknown_approval_is_not_found(store: SqliteStore) -> None:
    with pytest.raises(ApprovalNotFound) as refused:
        await store.approvals.get("nothing")
    assert refused.value.code == "APPROVAL_NOT_FOUND"


async def test_approvals_are_listed_by_status_run_and_audience(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(start("run-2", principal="ann"))
    await with_approvals(store, approval("a"), approval("b", status="rejected", audience=("legal",)))
    other = approval("c", run_id="run-2", audience=())
    await store.runs.commit(Commit(run("run-2"), 1, (), approvals=[other]))
    assert await ids(store) == ["a", "b", "c"]
    assert await ids(store, statuses=["pending"]) == ["a", "c"]
    assert await ids(store, statuses=["rejected", "approved"]) == ["b"]
    assert await ids(store, run_id="run-2") == ["c"]
    assert await ids(store, audience="legal") == ["a", "b"]
    assert await ids(store, audience="editors", statuses=["pending"]) == ["a"]
    assert await ids(store, audience="leg") == []
    assert await ids(store, principal="ann") == ["c"]
    assert await ids(store, principal="bob") == []


async def test_an_approval_whose_time_is_over_reads_expired_before_anybody_expires_it(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await with_approvals(store, approval("soon", expires_at_ms=AT_MS + 10), approval("late", expires_at_ms=AT_MS + 99))
    assert (await store.approvals.get("soon", now_ms=AT_MS + 9)).status == "pending"
    assert (await store.approvals.get("soon", now_ms=AT_MS + 10)).status == "expired"
    assert (await store.approvals.get("soon")).status == "pending"
    assert await ids(store, statuses=["pending"], now_ms=AT_MS + 50) == ["late"]
    assert await ids(store, statuses=["expired"], now_ms=AT_MS + 50) == ["soon"]
    assert await ids(store, statuses=["pending"]) == ["soon", "late"]


async def test_a_decided_approval_never_reads_expired(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await with_approvals(store, approval(status="approved"))
    assert (await store.approvals.get("approval-1", now_ms=AT_MS * 2)).status == "approved"


async def test_the_next_moment_to_look_at_a_run_is_when_a_pending_approval_expires(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")
    assert await store.runs.next_wake() is None
    await with_approvals(store, approval("a", expires_at_ms=AT_MS + 9), approval("b", expires_at_ms=AT_MS + 5))
    earlier = approval("c", run_id="run-2", expires_at_ms=AT_MS + 7)
    await store.runs.commit(Commit(run("run-2"), 1, (), approvals=[earlier]))
    assert await store.runs.next_wake() == (AT_MS + 5, "run-1")
    await with_approvals(store, approval("b", expires_at_ms=AT_MS + 5, status="withdrawn"))
    assert await store.runs.next_wake() == (AT_MS + 7, "run-2")


async def test_pages_of_approvals_hold_still_while_approvals_are_added(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await with_approvals(store, *(approval(name) for name in "abcd"))
    first, cursor = await store.approvals.list(limit=3)
    await with_approvals(store, approval("e"), approval("a", status="approved"))
    second, end = await store.approvals.list(limit=3, cursor=cursor)
    assert [row.approval_id for row in (*first, *second)] == ["a", "b", "c", "d", "e"]
    assert end is None
    assert [len(page) for page in await whole_list(store.approvals.list, limit=2)] == [2, 2, 1]
