"""The contract of runs: commits, logs, snapshots, lists; the same in memory and in a file."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

from agent_graph.core.effects import Write
from agent_graph.core.events import NodeFinished, RunAccepted, RunCompleted
from agent_graph.core.jsonvalue import canonical
from agent_graph.errors import (
    GraphVersionNotFound,
    InvalidArgument,
    RunNotFound,
    SequenceConflict,
    StoreCorrupt,
    StoreUnusable,
)
from agent_graph.store import row_seals
from agent_graph.store.base import Commit
from agent_graph.store.connection import on_thread
from agent_graph.store.migrate import schema_version
from agent_graph.store.sqlite import SqliteStore
from tests.store.rows import AT_MS, approval, begin, events, run, start, step, whole_list

ODD_VALUES = [
    "ünïcödé, 漢字, \U0001f600 and e\u0301",
    'nul \u0000, quote " and back\\slash, \u2028',
    2**53 + 1,
    -(10**400),
    1e-7,
    1.5,
    True,
    None,
    [],
    {},
    {"\U0001f600": 1, "\uffff": 2, "": {"deep": [[[1, "x"]]]}},
]


async def everything(store: SqliteStore) -> list[object]:
    """All that is stored, to show that nothing changed."""
    tables = ("graphs", "graph_versions", "runs", "events", "snapshots", "approvals", "requests")
    return await store.database.read(
        lambda connection: [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    )


async def test_a_run_is_read_back_as_it_was_written(store: SqliteStore) -> None:
    await begin(store, "run-1")
    changed = run(
        status="completed",
        started_at_ms=AT_MS + 1,
        finished_at_ms=AT_MS + 2,
        error={"code": "X", "message": "é"},
        final_state=(None,),
        usage={"llm_calls": 3},
    )
    await store.runs.commit(Commit(changed, 1, events(1, RunCompleted())))
    read = await store.runs.get("run-1")
    assert read == run(
        status="completed",
        seq=2,
        started_at_ms=AT_MS + 1,
        finished_at_ms=AT_MS + 2,
        error={"code": "X", "message": "é"},
        final_state=(None,),
        usage={"llm_calls": 3},
    )


async def test_the_next_moment_to_look_at_is_that_of_a_waiting_run_or_of_a_pending_approval(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2", "run-3")
    await store.runs.commit(step(1, wake_at_ms=AT_MS + 5))
    assert await store.runs.next_wake() is None, "a running run looks at the clock itself"
    await store.runs.commit(step(3, status="waiting", wake_at_ms=AT_MS + 5, budget={"max_nodes": {"max": 2}}))
    await store.runs.commit(step(1, "run-2", status="waiting", wake_at_ms=AT_MS + 4))
    asked = approval("a", run_id="run-3", expires_at_ms=AT_MS + 3)
    await store.runs.commit(Commit(run("run-3", status="waiting"), 1, (), approvals=[asked]))
    assert await store.runs.next_wake() == (AT_MS + 3, "run-3")
    assert await store.runs.next_wake(passing_over=("run-3",)) == (AT_MS + 4, "run-2")
    assert await store.runs.next_wake(passing_over=("run-3", "run-2")) == (AT_MS + 5, "run-1")
    assert await store.runs.next_wake(passing_over=("run-3", "run-2", "run-1")) is None
    row = await store.runs.get("run-1")
    assert (row.wake_at_ms, row.budget) == (AT_MS + 5, {"max_nodes": {"max": 2}})
    await store.runs.commit(step(5, status="failed"))
    assert await store.runs.next_wake(passing_over=("run-3", "run-2")) is None


async def test_a_run_without_a_result_is_not_one_whose_result_is_null(store: SqliteStore) -> None:
    await begin(store, "run-1")
    assert (await store.runs.get("run-1")).final_state == ()


@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: repr(value)[:12])
async def test_values_come_back_exactly(store: SqliteStore, value: object) -> None:
    await begin(store, "run-1")
    await store.runs.commit(step(1, note=value, final_state=(value,), usage={"v": value}))
    _, log, _ = await store.runs.load("run-1")
    assert log == (*start().events, *step(1, note=value).events)
    assert type(log[1].fact.output[0]) is type(value)  # type: ignore[attr-defined]
    row = await store.runs.get("run-1")
    assert (row.final_state, row.usage) == ((value,), {"v": value})
    assert await store.runs.verify_chain("run-1") is None


async def test_events_are_numbered_timed_and_chained(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(step(1))
    stored = await store.runs.events("run-1")
    assert [event.seq for event in stored] == [0, 1, 2]
    assert [event.at_ms for event in stored] == [AT_MS, AT_MS + 1, AT_MS + 2]
    assert [event.body["type"] for event in stored] == ["run_accepted", "node_finished", "node_started"]
    assert stored[0].body["prev"] == "0" * 64
    assert len({event.body["prev"] for event in stored}) == 3


async def test_an_event_is_stored_as_its_canonical_bytes(store: SqliteStore) -> None:
    await begin(store, "run-1")
    (event,) = await store.runs.events("run-1")
    (data,) = await store.database.read(
        lambda connection: connection.execute("SELECT CAST(body AS BLOB) FROM events").fetchone()
    )
    assert data == canonical(event.body)


async def test_events_are_read_from_a_number_on_and_at_most_so_many(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")
    for seq in (1, 3, 5):
        await store.runs.commit(step(seq))
    assert [event.seq for event in await store.runs.events("run-1", first_seq=2, limit=3)] == [2, 3, 4]
    assert [event.seq for event in await store.runs.events("run-1", first_seq=6)] == [6]
    assert await store.runs.events("run-1", first_seq=7) == ()
    assert await store.runs.events("run-1", first_seq=10**30) == ()


async def test_runs_do_not_see_each_others_events(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")
    await store.runs.commit(step(1, "run-2"))
    assert [event.seq for event in await store.runs.events("run-1")] == [0]
    assert [event.seq for event in await store.runs.events("run-2")] == [0, 1, 2]


async def test_a_wrong_sequence_number_is_refused_and_nothing_changes(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(step(1))
    before = await everything(store)
    for seq in (0, 1, 2, 4):
        with pytest.raises(SequenceConflict) as refused:
            await store.runs.commit(step(seq))
        assert refused.value.code == "SEQUENCE_CONFLICT"
        assert refused.value.details["seq"] == 3
    assert await everything(store) == before
    await store.runs.commit(step(3))


async def test_a_run_is_created_once(store: SqliteStore) -> None:
    await begin(store, "run-1")
    before = await everything(store)
    with pytest.raises(SequenceConflict):
        await store.runs.commit(start())
    with pytest.raises(SequenceConflict):
        await store.runs.commit(Commit(run("run-2"), 3, events(3, RunCompleted()), create=True))
    assert await everything(store) == before


async def test_events_out_of_order_are_a_bug_and_nothing_changes(store: SqliteStore) -> None:
    await begin(store, "run-1")
    before = await everything(store)
    with pytest.raises(ValueError, match="event 2 stands where event 1 belongs"):
        await store.runs.commit(Commit(run(), 1, events(2, RunCompleted())))
    assert await everything(store) == before
    await store.runs.commit(step(1))


async def test_a_run_of_a_graph_that_is_not_stored_is_refused(store: SqliteStore) -> None:
    with pytest.raises(GraphVersionNotFound) as refused:
        await store.runs.commit(start())
    assert refused.value.code == "GRAPH_VERSION_NOT_FOUND"
    with pytest.raises(RunNotFound):
        await store.runs.get("run-1")


async def test_an_unknown_run_is_not_found(store: SqliteStore) -> None:
    await begin(store)
    for reading in (store.runs.get, store.runs.load, store.runs.events, store.runs.verify_chain):
        with pytest.raises(RunNotFound) as refused:
            await reading("nobody")
        assert refused.value.code == "RUN_NOT_FOUND"
    with pytest.raises(RunNotFound):
        await store.runs.commit(step(1, "nobody"))


async def test_the_latest_snapshot_comes_with_the_events_after_it(store: SqliteStore) -> None:
    await begin(store, "run-1")
    assert (await store.runs.load("run-1"))[:2] == (None, start().events)
    for seq, data in ((1, b"first"), (3, b"second \x00\xff")):
        made = step(seq)
        await store.runs.commit(Commit(made.run, seq, made.events, snapshot=data))
    await store.runs.commit(step(5))
    assert (await store.runs.load("run-1"))[:2] == (b"second \x00\xff", step(5).events)
    (count,) = await store.database.read(lambda c: c.execute("SELECT count(*) FROM snapshots").fetchone())
    assert count == 1


async def test_a_damaged_snapshot_is_passed_over_for_the_whole_log(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.runs.commit(Commit(run(), 1, events(1, RunCompleted()), snapshot=b"fold"))
    await store.database.write(lambda connection: connection.execute("UPDATE snapshots SET data = x'00'"))
    snapshot, log, _ = await store.runs.load("run-1")
    assert (snapshot, [event.seq for event in log]) == (None, [0, 1])


async def _flip(store: SqliteStore, seq: int, offset: int) -> None:
    def flip(connection: sqlite3.Connection) -> None:
        where = f"WHERE event_no = (1 << 32) + {seq}"
        (data,) = connection.execute(f"SELECT CAST(body AS BLOB) FROM events {where}").fetchone()
        changed = bytearray(data)
        changed[offset % len(data)] ^= 1
        connection.execute(f"UPDATE events SET body = ? {where}", (bytes(changed),))

    await store.database.write(flip)


@pytest.mark.parametrize("seq", range(7))
@pytest.mark.parametrize("offset", [0, 8, 30, 77, 120, -1])
async def test_a_flipped_bit_is_found_where_it_is(store: SqliteStore, seq: int, offset: int) -> None:
    await begin(store, "run-1")
    for first in (1, 3, 5):
        await store.runs.commit(step(first))
    assert await store.runs.verify_chain("run-1") is None
    await _flip(store, seq, offset)
    assert await store.runs.verify_chain("run-1") == seq
    with pytest.raises(StoreCorrupt) as refused:
        await store.runs.load("run-1")
    assert refused.value.code == "STORE_CORRUPT"
    assert refused.value.details["run_id"] == "run-1"
    assert refused.value.details["seq"] in (seq, seq + 1)


@pytest.mark.parametrize("seq", [0, 2, 6])
async def test_a_missing_event_is_found(store: SqliteStore, seq: int) -> None:
    await begin(store, "run-1")
    for first in (1, 3, 5):
        await store.runs.commit(step(first))
    await store.database.write(lambda c: c.execute("DELETE FROM events WHERE event_no = (1 << 32) + ?", (seq,)))
    assert await store.runs.verify_chain("run-1") == seq
    with pytest.raises(StoreCorrupt, match=f"Event {seq} of run run-1"):
        await store.runs.load("run-1")


async def test_an_event_too_many_is_found(store: SqliteStore) -> None:
    await begin(store, "run-1")
    await store.database.write(lambda c: c.execute("INSERT INTO events VALUES ((1 << 32) + 1, '{}')"))
    assert await store.runs.verify_chain("run-1") == 1
    with pytest.raises(StoreCorrupt):
        await store.runs.load("run-1")


async def test_an_event_of_a_kind_this_program_does_not_know_is_said_to_be_damaged(store: SqliteStore) -> None:
    await begin(store, "run-1")
    body = '{"at_ms":1,"prev":"","seq":0,"type":"from_the_future"}'

    def forge(connection: sqlite3.Connection) -> None:
        head = hashlib.sha256(body.encode()).hexdigest()
        connection.execute("UPDATE events SET body = ?", (body,))
        connection.execute(
            f"UPDATE runs SET head = ?1, row_seal = {row_seals.sealing('runs', {'head': '?1'})}", (head,)
        )

    await store.database.write(forge)
    with pytest.raises(StoreCorrupt, match="from_the_future"):
        await store.runs.load("run-1")
    assert await store.runs.verify_chain("run-1") == 0  # its prev is not that of a first event


async def test_runs_are_listed_newest_first_and_by_what_they_are(store: SqliteStore) -> None:
    await begin(store)
    await store.runs.commit(start("a", thread_id="t"))
    await store.runs.commit(start("b", status="waiting", principal="ann"))
    await store.runs.commit(start("c", status="completed", thread_id="t", principal="bob"))

    async def ids(**filters: object) -> list[str]:
        rows, cursor = await store.runs.list(**filters)  # type: ignore[arg-type]
        assert cursor is None
        return [row.run_id for row in rows]

    assert await ids() == ["c", "b", "a"]
    assert await ids(statuses=["waiting", "running"]) == ["b", "a"]
    assert await ids(statuses=["failed"]) == []
    assert await ids(thread_id="t") == ["c", "a"]
    assert await ids(graph_id="council", statuses=["completed"]) == ["c"]
    assert await ids(graph_id="another") == []
    assert await ids(principal="ann") == ["b"]
    assert await ids(principal="ann", thread_id="t") == []
    assert await store.runs.counts() == {"running": 1, "waiting": 1, "completed": 1}


async def test_pages_of_runs_hold_still_while_runs_are_added(store: SqliteStore) -> None:
    await begin(store, *(f"run-{number}" for number in range(5)))
    first, cursor = await store.runs.list(limit=2)
    await store.runs.commit(start("run-late"))
    second, cursor = await store.runs.list(limit=2, cursor=cursor)
    third, end = await store.runs.list(limit=2, cursor=cursor)
    seen = [row.run_id for row in (*first, *second, *third)]
    assert (seen, end) == (["run-4", "run-3", "run-2", "run-1", "run-0"], None)
    pages = await whole_list(store.runs.list, limit=3)
    assert [len(page) for page in pages] == [3, 3]


@pytest.mark.parametrize("cursor", ["", "x", "!!", "é", "WyJydW5zIiwtMV0", "WyJydW5zIix0cnVlXQ", "bnVsbA", "W10"])
async def test_a_malformed_cursor_is_an_invalid_argument(store: SqliteStore, cursor: str) -> None:
    for listing in (store.runs.list, store.graphs.list, store.approvals.list):
        with pytest.raises(InvalidArgument) as refused:
            await listing(cursor=cursor)
        assert refused.value.code == "INVALID_ARGUMENT"
        assert refused.value.details == {"argument": "cursor"}


async def test_a_cursor_of_another_list_is_an_invalid_argument(store: SqliteStore) -> None:
    await begin(store, "run-1", "run-2")
    _, cursor = await store.runs.list(limit=1)
    for listing in (store.graphs.list, store.approvals.list):
        with pytest.raises(InvalidArgument):
            await listing(cursor=cursor)


async def test_a_page_of_no_rows_is_an_invalid_argument(store: SqliteStore) -> None:
    for listing in (store.runs.list, store.graphs.list, store.approvals.list):
        with pytest.raises(InvalidArgument):
            await listing(limit=0)


async def test_one_commit_writes_all_or_nothing(store: SqliteStore) -> None:
    await begin(store, "run-1")
    before = await everything(store)
    impossible = approval(subject={"key": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        await store.runs.commit(Commit(run(), 1, events(1, RunCompleted()), snapshot=b"x", approvals=[impossible]))
    assert await everything(store) == before


async def test_a_step_stores_its_delta_and_not_the_state(store: SqliteStore) -> None:
    await begin(store)
    accepted = RunAccepted("run-1", "council", "sha256:v1", {"static": "x" * 500_000})
    await store.runs.commit(Commit(run(), 0, events(0, accepted), create=True))
    before = await _bytes_used(store)
    for seq in range(1, 201):
        counted = NodeFinished(f"count#{seq}", writes=(Write("set", ("counter",), seq),))
        await store.runs.commit(Commit(run(), seq, events(seq, counted)))
    assert await _bytes_used(store) - before < 200 * 512


async def _bytes_used(store: SqliteStore) -> int:
    (pages,) = await store.database.read(lambda connection: connection.execute("PRAGMA page_count").fetchone())
    return int(pages) * 4096


async def test_a_closed_store_says_so(store: SqliteStore) -> None:
    await store.aclose()
    with pytest.raises(StoreUnusable, match="closed") as refused:
        await store.runs.get("run-1")
    assert refused.value.code == "STORE_UNUSABLE"
    with pytest.raises(StoreUnusable):
        await store.runs.commit(start())


async def test_the_settings_that_durability_rests_on_are_in_force(store: SqliteStore) -> None:
    def pragmas(connection: sqlite3.Connection) -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "application_id", "user_version")
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    found = await on_thread(store.database._writer, pragmas)
    expected = {
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "application_id": 0x41475248,
        "user_version": schema_version(),
    }
    mode = "memory" if store.storage == "volatile" else "wal"
    assert found == {"journal_mode": mode, **expected}
