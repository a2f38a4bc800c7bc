"""A store that refuses: whoever asked is told, the fold goes back to what the log says, answers are kept meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.errors import StoreCorrupt
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.store.connection import on_thread
from agent_graph.store.sqlite import open_store
from tests.engine.room import Gates, Room, opened
from tests.specs import gate, join, llm, passthrough, put, spec

BIG = "x" * 40_000


async def pragma(room: Room, text: str) -> int:
    database: Any = room.store.database  # type: ignore[attr-defined]  # only SQLite has one
    return int((await on_thread(database._writer, lambda connection: connection.execute(text).fetchone()))[0])


async def fill(room: Room) -> None:
    """No page can be added to the database any more, as on a full disk."""
    pages = await pragma(room, "PRAGMA page_count")
    await pragma(room, f"PRAGMA max_page_count = {pages}")


async def make_room(room: Room) -> None:
    await pragma(room, "PRAGMA max_page_count = 1000000")


async def test_an_answer_that_finds_no_space_is_kept_and_stored_when_there_is_some(tmp_path: Path) -> None:
    gates = Gates("draft", answer=BIG)
    model = ScriptedModel(gates)
    async with opened(model, tmp_path) as room:
        run_id = await room.start(spec(llm("draft", output_key="text"), edges="draft>END"))
        await gates.reached("draft")
        await fill(room)
        gates.open("draft")
        runner = await room.supervisor.drive(run_id)
        while not runner._journal.stale:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        assert not await room.facts(run_id, e.ModelAnswered)
        stopped = await room.reaches(run_id, "interrupted")
        assert stopped.error is not None
        assert stopped.error["code"] == "STORE_FULL"
        waited = await room.data("graph_run_wait", run_id=run_id, timeout_ms=0)
        assert (waited["run"]["status"], waited["timed_out"]) == ("interrupted", True)  # its driver tries on
        await make_room(room)
        row = await room.ended(run_id)
        assert row.status == "completed"
        assert model.count("draft") == 1
        assert await room.started(run_id) == [("draft#1", 1)]
        assert await room.store.runs.verify_chain(run_id) is None


async def test_a_decision_that_finds_no_space_is_refused_and_can_be_made_again(tmp_path: Path) -> None:
    gates = Gates("side")
    graph = spec(
        passthrough("s"), gate("h"), llm("side", output_key="text"), join("j"), put("z", done=1),
        edges="s>h s>side h>j side>j j>z z>END", output_key="done",
    )  # fmt: skip
    model = ScriptedModel(gates)
    async with opened(model, tmp_path) as room:
        run_id = await room.start(graph, {})
        await gates.reached("side")
        (pending,) = await room.pending(run_id)
        before = await room.log(run_id)
        await fill(room)
        note = "n" * 9_000
        refused = await room.decide(pending["approval_id"], decision_note=note, idempotency_key="k")
        assert (refused["error_code"], refused["retryable"]) == ("STORE_FULL", True)
        assert await room.log(run_id) == before
        assert await room.pending(run_id) == [pending]
        await make_room(room)
        again = await room.decide(pending["approval_id"], decision_note=note, idempotency_key="k")
        assert again["ok"]
        gates.open("side")
        assert (await room.ended(run_id)).status == "completed"
        assert model.count("side") == 1
        assert not await room.facts(run_id, e.RunInterrupted)


async def test_a_command_does_not_wait_for_an_answer_that_finds_no_space(tmp_path: Path) -> None:
    gates = Gates("draft", answer=BIG)
    async with opened(ScriptedModel(gates), tmp_path) as room:
        run_id = await room.start(spec(llm("draft", output_key="text"), edges="draft>END"))
        await gates.reached("draft")
        before = await room.log(run_id)
        await fill(room)
        gates.open("draft")
        runner = await room.supervisor.drive(run_id)
        while not runner._journal.stale:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        refused = await room.call("graph_run_cancel", run_id=run_id, reason="no space")
        assert (refused["error_code"], refused["retryable"]) == ("STORE_FULL", True)
        assert await room.log(run_id) == before
        await make_room(room)
        assert (await room.ended(run_id)).status == "completed"


async def test_a_start_that_finds_no_space_leaves_no_run(tmp_path: Path) -> None:
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        await room.create(spec(llm("draft", output_key="text"), edges="draft>END"))
        before = await room.counts()
        await fill(room)
        refused = await room.call("graph_run_start", graph_id="case", input=BIG, idempotency_key="k")
        assert refused["error_code"] == "STORE_FULL"
        assert await room.counts() == before
        await make_room(room)
        started = await room.call("graph_run_start", graph_id="case", input=BIG, idempotency_key="k")
        assert started["ok"]
        assert (await room.ended(started["run_id"])).status == "completed"


async def test_a_program_may_stop_while_its_store_is_full(tmp_path: Path) -> None:
    gates = Gates("draft", answer=BIG)
    model = ScriptedModel(gates)
    async with opened(model, tmp_path) as room:
        run_id = await room.start(spec(llm("draft", output_key="text"), edges="draft>END"))
        await gates.reached("draft")
        await fill(room)
        gates.open("draft")
        runner = await room.supervisor.drive(run_id)
        while not runner._journal.stale:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        await room.supervisor.shutdown("over")
        assert runner.closed
    async with opened(model, tmp_path) as room:
        assert (await room.ended(run_id)).status == "completed"


async def damage_events(room: Room, path: Path) -> None:
    """Overwrite the page that the table of events begins with, behind the back of the open database."""
    page = await pragma(room, "SELECT rootpage FROM sqlite_master WHERE name = 'events'")
    await pragma(room, "PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    database: Any = room.store.database  # type: ignore[attr-defined]  # only SQLite has one
    for connection in (database._writer, database._reader):
        await on_thread(connection, lambda each: each.execute("PRAGMA shrink_memory"))  # nothing is remembered


async def test_a_store_found_damaged_stops_the_run_and_the_run_says_so(tmp_path: Path) -> None:
    gates = Gates("draft")
    model = ScriptedModel(gates)
    graph = spec(llm("draft", output_key="text"), llm("after"), edges="draft>after after>END")
    async with opened(model, tmp_path) as room:
        run_id = await room.start(graph)
        await gates.reached("draft")
        await damage_events(room, tmp_path / "agent-graph.db")
        gates.open("draft")
        row = await room.reaches(run_id, "interrupted")
        assert row.error is not None
        assert row.error["code"] == "STORE_CORRUPT"
        await room.at_rest()
        assert model.count("after") == 0
        refused = await room.call("graph_run_state", run_id=run_id)
        assert refused["error_code"] == "STORE_CORRUPT"
        cancelled = await room.data("graph_run_cancel", run_id=run_id, reason="no use")
        assert (cancelled["status"], cancelled["terminal"]) == ("cancelled", True)
        assert "damaged" in await room.data("graph_run_get", run_id=run_id)
    with pytest.raises(StoreCorrupt):
        await open_store(tmp_path / "agent-graph.db")


async def spoil(room: Room, run_id: str) -> None:
    """Change the run's first event behind the store's back."""
    change = (
        "UPDATE events SET body = replace(body, 'accepted', 'accepteX') "
        "WHERE event_no = (SELECT run_no << 32 FROM runs WHERE run_id = ?)"
    )
    database: Any = room.store.database  # type: ignore[attr-defined]  # only SQLite has one
    await on_thread(database._writer, lambda connection: connection.execute(change, (run_id,)).fetchone())


async def test_a_damaged_run_can_be_cancelled_and_removed_and_its_graph_deleted(tmp_path: Path) -> None:
    gated = spec(gate("h"), edges="h>END", output_key="h")
    async with opened(ScriptedModel(), tmp_path) as room:
        run_id = await room.start(gated, {})
        sound = await room.start(gated, {})
        for each in (run_id, sound):
            await room.reaches(each, "waiting")
        await room.at_rest()
        await spoil(room, run_id)
        (pending,) = await room.pending(run_id)
        before = (await room.store.runs.get(run_id), await room.counts())
        decided = await room.decide(pending["approval_id"])
        deleted = await room.call("graph_create", action="delete", graph_id="case")
        assert [decided["error_code"], deleted["error_code"]] == ["STORE_CORRUPT", "GRAPH_IN_USE"]
        assert (await room.store.runs.get(run_id), await room.counts()) == before

        waiting = asyncio.create_task(room.data("graph_run_wait", run_id=run_id, timeout_ms=10_000))
        await asyncio.sleep(0)
        for _ in range(2):  # with one key, so the second is the answer of the first
            cancelled = await room.data("graph_run_cancel", run_id=run_id, reason="no use", idempotency_key="k")
            assert (cancelled["status"], cancelled["terminal"]) == ("cancelled", True)
        other = await room.call("graph_run_cancel", run_id=run_id, reason="another", idempotency_key="k")
        assert other["error_code"] == "IDEMPOTENCY_CONFLICT"
        assert (await waiting)["status"] == "cancelled"
        shown = await room.data("graph_run_get", run_id=run_id)
        assert shown["error"]["code"] == "STORE_CORRUPT"
        assert shown["error"]["reason"] == "no use"
        assert "Event 1" in shown["damaged"]
        assert shown["pending_approvals"] == []
        state = await room.call("graph_run_get", run_id=run_id, include_state=True)
        assert state["error_code"] == "STORE_CORRUPT"

        assert await room.store.retention.prune([run_id], forget=True) == (run_id,)
        assert (await room.call("graph_run_get", run_id=run_id))["error_code"] == "RUN_NOT_FOUND"
        await room.decide((await room.pending(sound))[0]["approval_id"])
        assert (await room.ended(sound)).status == "completed"
        await room.data("graph_create", action="delete", graph_id="case")


async def test_a_damaged_run_in_the_queue_is_cancelled_and_leaves_its_place(tmp_path: Path) -> None:
    gates = Gates("draft")
    graph = spec(llm("draft", output_key="text"), edges="draft>END")
    async with opened(ScriptedModel(gates), tmp_path, active_runs=1, queued_runs=1) as room:
        first = await room.start(graph)
        await gates.reached("draft")
        queued = await room.start(graph)
        await spoil(room, queued)
        assert (await room.data("graph_run_cancel", run_id=queued, reason="no use"))["status"] == "cancelled"
        assert room.supervisor.load()["queued"] == 0
        gates.open("draft")
        assert (await room.ended(first)).status == "completed"


async def test_a_run_that_has_ended_is_not_written_off(tmp_path: Path) -> None:
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        row = await room.run(spec(llm("draft", output_key="text"), edges="draft>END"))
        assert not await room.store.retention.write_off(row.run_id, {"code": "X"}, at_ms=1, answered=None)
        assert await room.store.runs.get(row.run_id) == row
