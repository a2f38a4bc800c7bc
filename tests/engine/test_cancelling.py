"""Cancelling: calls in flight are closed, gates withdrawn, what has ended stays, and nothing is begun in between."""

from __future__ import annotations

import asyncio
import time

from agent_graph.core import events as e
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, opened
from tests.fakes.ollama_server import Gate, OllamaServer, encoded, line, stream
from tests.specs import gate, llm, passthrough, put, spec

DRAFT = spec(llm("draft", output_key="text"), edges="draft>END")
GATED = spec(gate("h"), put("after", z=1), edges="h>after after>END", output_key="z")


async def test_a_call_in_flight_is_closed_and_its_answer_never_comes() -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(DRAFT)
        await gates.reached("draft")
        answer = await room.data("graph_run_cancel", run_id=run_id, reason="wrong question")
        assert (answer["status"], answer["terminal"]) == ("cancellation_requested", False)
        row = await room.ended(run_id)
        assert (row.status, row.error) == ("cancelled", {"code": "CANCELLED", "message": "wrong question"})
        assert gates.cancelled == ["draft"]
        assert not await room.facts(run_id, e.ModelAnswered, e.NodeFinished)
        assert [fact.firing for fact in await room.facts(run_id, e.FiringCancelled)] == ["draft#1"]


async def test_the_socket_of_a_cancelled_call_closes_within_a_second() -> None:
    hold = Gate()
    async with OllamaServer() as server:
        server.on("draft", stream(*encoded([line("half of")]), hold))
        async with opened(OllamaClient(parse_host(server.url), model="fake")) as room:
            run_id = await room.start(DRAFT)
            request = await server.arrived("draft")
            await hold.reached.wait()
            asked_at = time.monotonic()
            await room.data("graph_run_cancel", run_id=run_id, reason="enough")
            async with asyncio.timeout(5):
                await request.closed.wait()
            assert time.monotonic() - asked_at < 1
            assert (await room.ended(run_id)).status == "cancelled"
            await room.deps.models.aclose()


async def test_a_queued_run_is_cancelled_without_being_begun() -> None:
    gates = Gates("first")
    graph = spec(llm("draft", "{input}", output_key="text"), edges="draft>END")
    model = ScriptedModel(gates)
    async with opened(model, active_runs=1) as room:
        first = await room.start(graph, "first")
        await gates.reached("first")
        second = await room.start(graph, "second")
        await room.data("graph_run_cancel", run_id=second, reason="no more")
        assert (await room.ended(second)).status == "cancelled"
        gates.open("first")
        assert (await room.ended(first)).status == "completed"
        assert model.count("second") == 0
        assert [fact.type for fact in await room.facts(second, e.Fact)] == [
            "run_accepted", "run_cancel_requested", "run_cancelled",
        ]  # fmt: skip


async def test_another_question_to_a_queued_run_does_not_start_it() -> None:
    gates = Gates("first")
    graph = spec(llm("draft", "{input}", output_key="text"), edges="draft>END")
    model = ScriptedModel(gates)
    async with opened(model, active_runs=1) as room:
        first = await room.start(graph, "first")
        await gates.reached("first")
        second = await room.start(graph, "second")
        runner = await room.supervisor.drive(second)
        while not runner.closed:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        assert (await room.store.runs.get(second)).status == "accepted"
        gates.open("first")
        assert (await room.ended(second)).status == "completed"
        assert (await room.ended(first)).status == "completed"
        assert model.count("second") == 1


async def test_a_waiting_run_is_cancelled_and_its_gate_withdrawn() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(GATED)
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        await room.data("graph_run_cancel", run_id=run_id, reason="no need")
        assert (await room.ended(run_id)).status == "cancelled"
        assert await room.pending(run_id) == []
        assert (await room.store.approvals.get(pending["approval_id"])).status == "withdrawn"


async def test_a_run_that_has_ended_is_left_as_it_is() -> None:
    async with opened(ScriptedModel([Reply(text="fine")])) as room:
        row = await room.run(DRAFT)
        answer = await room.data("graph_run_cancel", run_id=row.run_id, reason="too late")
        assert (answer["status"], answer["terminal"]) == ("completed", True)
        assert await room.store.runs.get(row.run_id) == row


async def test_cancelling_twice_is_one_cancel() -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(DRAFT)
        await gates.reached("draft")
        await asyncio.gather(*(room.data("graph_run_cancel", run_id=run_id, reason=f"r{n}") for n in range(5)))
        await room.ended(run_id)
        assert len(await room.facts(run_id, e.RunCancelRequested)) == 1


async def test_a_long_chain_without_models_hears_a_cancel() -> None:
    chain = [passthrough(f"n{i}") for i in range(2_000)]
    edges = " ".join(f"n{i}>n{i + 1}" for i in range(1_999)) + " n1999>END"
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(spec(*chain, edges=edges))
        await room.data("graph_run_cancel", run_id=run_id, reason="stop")
        assert (await room.ended(run_id)).status == "cancelled"
        assert len(await room.started(run_id)) < 2_000


async def test_an_asker_that_gives_up_is_obeyed_all_the_same() -> None:
    gates = Gates("draft")
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(DRAFT)
        await gates.reached("draft")
        asking = asyncio.create_task(room.call("graph_run_cancel", run_id=run_id, reason="gone"))
        while (await room.store.runs.get(run_id)).status == "running" and not asking.done():
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            asking = asyncio.create_task(room.call("graph_run_cancel", run_id=run_id, reason="gone"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert (await room.ended(run_id)).status == "cancelled"
        await asyncio.gather(asking, return_exceptions=True)
