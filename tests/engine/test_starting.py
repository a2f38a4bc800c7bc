"""Starting runs: durable when accepted, queued beyond the places there are, refused without a trace beyond that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_graph.core import events as e
from agent_graph.errors import StoreBusy
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.store.base import RunRow
from tests.engine.room import Gates, Json, opened
from tests.specs import llm, put, spec

ANY = Reply(text="fine")
DRAFT = spec(llm("draft", output_key="text"), edges="draft>END")


async def test_a_run_is_accepted_driven_and_ends_with_its_result() -> None:
    async with opened(ScriptedModel([ANY])) as room:
        row = await room.run(DRAFT)
        assert (row.status, row.final_state) == ("completed", ("fine",))
        kinds = [event.fact.type for event in await room.log(row.run_id)]
        assert kinds == [
            "run_accepted", "run_started", "node_started", "model_answered", "node_finished", "run_completed",
        ]  # fmt: skip
        assert [event.seq for event in await room.log(row.run_id)] == list(range(6))
        await room.at_rest()


async def test_a_start_rides_on_the_commit_that_enabled_it() -> None:
    chain = spec(llm("a", output_key="ra"), llm("b", output_key="rb"), edges="a>b b>END")
    async with opened(ScriptedModel([ANY])) as room:
        run_id = await room.start(chain)
        watch = room.shell.notify.watch(run_id)
        await room.ended(run_id)
        room.shell.notify.unwatch(run_id, watch)
        at = {(event.fact.type, getattr(event.fact, "firing", "")): event.seq for event in await room.log(run_id)}
        assert at["node_started", "b#1"] == at["node_finished", "a#1"] + 1
        assert at["model_answered", "a#1"] == at["node_finished", "a#1"] - 1


async def test_a_wait_wakes_by_event_and_times_out_by_itself() -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(DRAFT)
        await gates.reached("draft")
        row = await room.supervisor.wait(run_id, timeout_ms=1)
        assert row.status == "running"
        waiting = asyncio.create_task(room.ended(run_id))
        gates.open("draft")
        assert (await waiting).status == "completed"


async def test_runs_beyond_the_places_wait_and_go_in_order() -> None:
    gates = Gates("first", "second", "third")
    graph = spec(llm("draft", "{input}", output_key="text"), edges="draft>END")
    async with opened(ScriptedModel(gates), active_runs=1, queued_runs=5) as room:
        ids = [await room.start(graph, text) for text in ("first", "second", "third")]
        await gates.reached("first")
        assert room.supervisor.load() == {"active": 1, "queued": 2}
        assert [(await room.store.runs.get(run_id)).status for run_id in ids] == ["running", "accepted", "accepted"]
        gates.open("first")
        await gates.reached("second")
        assert not gates.came["third"].is_set()
        gates.open("second")
        gates.open("third")
        assert [(await room.ended(run_id)).status for run_id in ids] == ["completed"] * 3
        await room.at_rest()


async def test_a_start_beyond_the_queue_is_refused_and_leaves_no_run() -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates), active_runs=1, queued_runs=1) as room:
        for _ in range(2):
            await room.start(DRAFT)
        before = await room.counts()
        refused = await room.call("graph_run_start", graph_id="case", input="x", idempotency_key="k")
        assert (refused["ok"], refused["error_code"], refused["retryable"]) == (False, "RUN_CAPACITY", True)
        assert await room.counts() == before
        assert await room.store.requests.get("k") is None
        gates.open("draft")


async def test_many_starts_at_once_never_pass_the_bound() -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates), active_runs=2, queued_runs=3) as room:
        await room.create(DRAFT)
        answers: list[Json] = await asyncio.gather(
            *(room.call("graph_run_start", graph_id="case", input=str(n)) for n in range(20))
        )
        assert sum(answer["ok"] for answer in answers) == 5
        assert {answer["error_code"] for answer in answers if not answer["ok"]} == {"RUN_CAPACITY"}
        assert sum((await room.store.runs.counts()).values()) == 5
        assert room.supervisor.load() == {"active": 2, "queued": 3}
        gates.open("draft")
        rows, _ = await room.store.runs.list()
        assert {(await room.ended(row.run_id)).status for row in rows} == {"completed"}


async def test_a_caller_that_gives_up_while_starting_leaves_no_run_that_nobody_drives() -> None:
    async with opened(ScriptedModel([ANY])) as room:
        await room.create(DRAFT)
        graph = await room.deps.catalog.get("case")
        start = asyncio.create_task(room.supervisor.start(graph, "x"))
        await asyncio.sleep(0)  # it has begun, and is not through
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        rows: tuple[RunRow, ...] = ()
        while not rows:  # the commit may still be under way
            rows, _ = await room.store.runs.list()
        assert (await room.ended(rows[0].run_id)).status == "completed"


async def test_racing_starts_with_one_key_make_one_run() -> None:
    async with opened(ScriptedModel([ANY])) as room:
        await room.create(DRAFT)
        answers = await asyncio.gather(
            *(room.call("graph_run_start", graph_id="case", input="x", idempotency_key="k") for _ in range(10))
        )
        assert all(answer == answers[0] for answer in answers)
        assert answers[0]["ok"]
        assert sum((await room.store.runs.counts()).values()) == 1
        other = await room.call("graph_run_start", graph_id="case", input="y", idempotency_key="k")
        assert other["error_code"] == "IDEMPOTENCY_CONFLICT"
        await room.ended(answers[0]["run_id"])


async def test_runs_at_once_share_their_commits(tmp_path: Path) -> None:
    chain = spec(*(put(f"n{i}", x=i) for i in range(5)), edges="n0>n1 n1>n2 n2>n3 n3>n4 n4>END", output_key="x")
    async with opened(ScriptedModel(), tmp_path) as room:
        await room.create(chain)
        graph = await room.deps.catalog.get("case")
        before = room.store.database.transactions  # type: ignore[attr-defined]  # only SQLite's counts them
        rows = await asyncio.gather(*(room.supervisor.start(graph, None) for _ in range(50)))
        for row in rows:
            assert (await room.ended(row.run_id)).final_state == (4,)
        commits = room.store.database.transactions - before  # type: ignore[attr-defined]  # as above
        assert commits < 50 * 6 / 4


async def test_nothing_is_started_while_the_program_stops() -> None:
    async with opened(ScriptedModel([ANY])) as room:
        await room.create(DRAFT)
        await room.supervisor.shutdown("over")
        graph = await room.deps.catalog.get("case")
        with pytest.raises(StoreBusy):
            await room.supervisor.start(graph, "x")
        assert await room.store.runs.counts() == {}


async def test_whoever_waits_in_vain_leaves_nothing_behind() -> None:
    async with opened(ScriptedModel([ANY])) as room:
        row = await room.run(DRAFT)
        for name in ("nobody", "nothing"):
            assert (await room.call("graph_run_wait", run_id=name))["error_code"] == "RUN_NOT_FOUND"
            assert (await room.call("graph_run_cancel", run_id=name, reason="x"))["error_code"] == "RUN_NOT_FOUND"
        await room.supervisor.wait(row.run_id, timeout_ms=1, until=lambda _: False)
        assert len(room.shell.notify._changed) == 0
        assert not room.supervisor._turns
        assert not room.supervisor._background


async def test_text_is_shown_while_it_streams_and_never_stored() -> None:
    async with opened(ScriptedModel([Reply(text="abcdef", chunks=3, delay_ms=20)])) as room:
        run_id = await room.start(DRAFT)
        watch = room.shell.notify.watch(run_id)
        pieces: list[str] = []
        async for item in watch:
            if isinstance(item, e.Event):
                if item.fact.type == "run_completed":
                    break
            else:
                pieces.append(item.text)
        room.shell.notify.unwatch(run_id, watch)
        assert "".join(pieces) == "abcdef"
        assert not room.shell.notify._watches
        assert not room.shell.notify._deltas


async def test_racing_starts_with_one_key_get_the_last_place_together(tmp_path: Path) -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates), tmp_path, active_runs=1, queued_runs=1) as room:
        await room.start(DRAFT)
        answers = await asyncio.gather(
            *(room.call("graph_run_start", graph_id="case", input="x", idempotency_key="k") for _ in range(10))
        )
        assert answers[0]["ok"]
        assert all(answer == answers[0] for answer in answers)
        again = await room.call("graph_run_start", graph_id="case", input="x", idempotency_key="k")
        assert again == answers[0], "with the queue full, a key that is known still has its answer"
        other = await room.call("graph_run_start", graph_id="case", input="y", idempotency_key="k")
        assert other["error_code"] == "IDEMPOTENCY_CONFLICT"
        assert (await room.call("graph_run_start", graph_id="case", input="x"))["error_code"] == "RUN_CAPACITY"
        assert sum((await room.store.runs.counts()).values()) == 2
        gates.open("draft")


async def test_a_run_that_is_cancelled_in_the_queue_leaves_its_place_there_to_another() -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates), active_runs=1, queued_runs=2) as room:
        first, *queued = [await room.start(DRAFT) for _ in range(3)]
        assert (await room.call("graph_run_start", graph_id="case"))["error_code"] == "RUN_CAPACITY"
        for run_id in queued:
            await room.data("graph_run_cancel", run_id=run_id, reason="no need")
            assert (await room.ended(run_id)).status == "cancelled"
        others = [str((await room.data("graph_run_start", graph_id="case"))["run_id"]) for _ in range(2)]
        assert (await room.call("graph_run_start", graph_id="case"))["error_code"] == "RUN_CAPACITY"
        gates.open("draft")
        assert {(await room.ended(run_id)).status for run_id in (first, *others)} == {"completed"}
