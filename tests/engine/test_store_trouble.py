"""A store that refuses: whoever asked is told, the fold goes back to what the log says, answers are kept meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agent_graph.core import events as e
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.store.db import on_thread
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
