"""Budgets as the engine lives them: raised by a person after a restart, and the run's time, whoever looks or not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from agent_graph.core import events as e
from agent_graph.engine.commands import Expire
from agent_graph.errors import ModelUnreachable
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, Room, opened
from tests.fakes.ollama_server import Gate, OllamaServer, encoded, last_line, line, stream
from tests.specs import gate, llm, passthrough, put, spec

TWO = spec(llm("a", output_key="first"), llm("b", output_key="second"), edges="a>b b>END", output_key="second")
GATED = spec(gate("h"), put("z", done=True), edges="h>z z>END", output_key="done")
SOON_MS = 60


class StillClock:
    """A clock that stands where it is put."""

    def __init__(self, at_ms: int = 1_000_000) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return self.at_ms


def timed(graph: dict[str, Any], most_ms: int, **more: Any) -> dict[str, Any]:
    return {**graph, "budgets": {"max_wall_clock_ms": most_ms, **more}}


def _one_is_away(gates: Gates) -> Any:
    async def answers(call: Any) -> str:
        if "away" in str(call.messages):
            raise ModelUnreachable("nobody is there", reason="connect")
        return await gates(call)

    return answers


async def begun(room: Room, graph: dict[str, Any], **budgets: Any) -> str:
    await room.create(graph)
    started = await room.data("graph_run_start", graph_id=graph["name"], input="x", budgets=budgets)
    return str(started["run_id"])


async def budget(room: Room, run_id: str) -> dict[str, Any]:
    return (await room.data("graph_run_get", run_id=run_id))["budget"]  # type: ignore[no-any-return]  # an object


# -- counting and asking for more ------------------------------------------------------------------------------------


async def test_a_run_shows_what_it_has_used_of_what_it_may_use() -> None:
    model = ScriptedModel([Reply(text="one", prompt_tokens=30, completion_tokens=12), Reply(text="two")])
    async with opened(model) as room:
        run_id = await begun(room, TWO, max_llm_calls=5, max_tokens=9000, max_nodes=7, max_wall_clock_ms=90_000)
        assert (await room.ended(run_id)).status == "completed"
        shown = await budget(room, run_id)
        assert shown["max_llm_calls"] == {"max": 5, "used": 2}
        assert shown["max_nodes"] == {"max": 7, "used": 2}
        usage = (await room.data("graph_run_get", run_id=run_id))["usage"]
        assert shown["max_tokens"]["used"] == usage["prompt_tokens"] + usage["completion_tokens"] >= 42
        assert shown["max_tokens"]["reserved"] == 0
        assert shown["on_budget"] == "fail"
        run = await room.data("graph_run_get", run_id=run_id)
        assert shown["max_wall_clock_ms"]["used"] == run["usage"]["wall_clock_ms"]
        assert shown["max_wall_clock_ms"]["deadline_at_ms"] == run["started_at_ms"] + 90_000


async def test_what_a_host_does_not_say_is_unknown_and_never_a_guess() -> None:
    async with OllamaServer() as server:
        server.on("a question", stream(*encoded([line("half"), last_line(prompt=None, out=None)])))
        async with opened(OllamaClient(parse_host(server.url), model="fake")) as room:
            graph = spec(llm("a", "a question", output_key="t"), edges="a>END")
            run_id = await begun(room, graph, max_tokens=5000)
            row = await room.ended(run_id)
            await room.deps.models.aclose()
        assert row.status == "completed", row.error
    counted: Any = row.budget["max_tokens"]
    assert (counted["used"], counted["recorded"], counted["unreported_calls"]) == ("unknown", 0, 1)
    assert counted["reserved"] > 1024
    assert row.usage["prompt_tokens"] == "unknown"


async def test_a_call_over_the_budget_is_never_made_and_what_was_done_stays() -> None:
    model = ScriptedModel([Reply(text="one")])
    async with opened(model) as room:
        run_id = await begun(room, TWO, max_llm_calls=1)
        row = await room.ended(run_id)
        assert row.error is not None
        assert (row.status, row.error["code"], row.error["node_id"]) == ("failed", "BUDGET_EXHAUSTED", "b")
        assert len(model.calls) == 1
        assert await room.state(run_id) == {"first": "one"}


async def test_a_run_that_asked_for_more_goes_on_after_a_restart_and_calls_nothing_twice(tmp_path: Path) -> None:
    async with opened(ScriptedModel([Reply(text="one")]), tmp_path) as room:
        run_id = await begun(room, TWO, max_llm_calls=1, on_budget="pause")
        await room.reaches(run_id, "waiting")
    model = ScriptedModel([Reply(text="two")])
    async with opened(model, tmp_path) as room:
        assert (await room.store.runs.get(run_id)).status == "waiting"
        (asked,) = await room.pending(run_id)
        assert (asked["node_id"], asked["allowed_decisions"]) == ("on_budget", ["approve", "reject"])
        waiting = (await room.data("graph_run_get", run_id=run_id))["waiting_for"]
        assert [one["approval_id"] for one in waiting] == [asked["approval_id"]]
        assert (await room.decide(asked["approval_id"]))["ok"]
        row = await room.ended(run_id)
        assert (row.status, row.final_state) == ("completed", ("two",))
        assert await room.started(run_id) == [("a#1", 1), ("b#1", 1)]
        assert len(model.calls) == 1
        assert not await room.facts(run_id, e.RunInterrupted)


async def test_a_run_whose_question_is_rejected_fails() -> None:
    async with opened(ScriptedModel([Reply(text="one")])) as room:
        run_id = await begun(room, TWO, max_llm_calls=1, on_budget="pause")
        await room.reaches(run_id, "waiting")
        (asked,) = await room.pending(run_id)
        await room.decide(asked["approval_id"], "reject")
        row = await room.ended(run_id)
        assert row.error is not None
        assert (row.status, row.error["code"]) == ("failed", "BUDGET_EXHAUSTED")
        assert "rejected by Ada" in str(row.error["message"])


async def test_a_question_that_expires_fails_the_run_though_nobody_drives_it(tmp_path: Path) -> None:
    clock = StillClock()
    async with opened(ScriptedModel([Reply(text="one")]), tmp_path, clock=clock) as room:
        run_id = await begun(room, TWO, max_llm_calls=1, on_budget="pause")
        await room.reaches(run_id, "waiting")
    clock.at_ms += 8 * 86_400_000
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        row = await room.ended(run_id)
        assert row.error is not None
        assert "not decided in time" in str(row.error["message"])


async def test_a_cancelled_run_takes_its_question_back() -> None:
    async with opened(ScriptedModel([Reply(text="one")])) as room:
        run_id = await begun(room, TWO, max_llm_calls=1, on_budget="pause")
        await room.reaches(run_id, "waiting")
        (asked,) = await room.pending(run_id)
        await room.data("graph_run_cancel", run_id=run_id, reason="enough")
        assert (await room.ended(run_id)).status == "cancelled"
        assert (await room.store.approvals.get(asked["approval_id"])).status == "withdrawn"
        assert (await room.decide(asked["approval_id"]))["error_code"] == "APPROVAL_WITHDRAWN"


async def test_a_run_that_goes_elsewhere_closes_its_calls_and_its_gates() -> None:
    gates = Gates("slow")
    graph = spec(
        passthrough("p"), llm("slow", "slow", output_key="s"), llm("quick", "quick", output_key="q"), gate("h"),
        llm("more", "more", output_key="m"), put("short", done="short"),
        edges="p>slow p>quick p>h quick>more slow>END more>END h>END short>END", output_key="done",
        budgets={"max_llm_calls": 2, "on_budget": {"goto": ["short"]}},
    )  # fmt: skip
    async with opened(ScriptedModel(gates)) as room:
        row = await room.run(graph)
        assert (row.status, row.final_state) == ("completed", ("short",))
        await room.at_rest()
        assert gates.cancelled == ["slow"]
        approvals, _ = await room.store.approvals.list(run_id=row.run_id)
        assert [one.status for one in approvals] == ["withdrawn"]
        assert [fact.firing for fact in await room.facts(row.run_id, e.FiringCancelled)] == ["slow#1", "h#1", "more#1"]


async def test_a_start_with_bad_budgets_makes_no_run() -> None:
    async with opened(ScriptedModel()) as room:
        await room.create(TWO)
        before = await room.counts()
        for bad in ({}, {"max_nodes": 0}, {"max_turns": 1}, {"on_budget": {"goto": ["b"]}}):
            refused = await room.call("graph_run_start", graph_id="case", input="x", budgets=bad, idempotency_key="k")
            assert refused["error_code"] == "INVALID_BUDGETS"
        assert await room.counts() == before
        assert await room.store.requests.get("k") is None


# -- the run's time --------------------------------------------------------------------------------------------------


async def test_the_end_of_a_runs_time_closes_the_socket_of_its_call() -> None:
    hold = Gate()
    async with OllamaServer() as server:
        server.on("draft", stream(*encoded([line("half of")]), hold))
        graph = timed(spec(llm("draft", "draft", output_key="text"), edges="draft>END"), 300)
        async with opened(OllamaClient(parse_host(server.url), model="fake")) as room:
            run_id = await room.start(graph)
            request = await server.arrived("draft")
            await hold.reached.wait()
            async with asyncio.timeout(5):
                await request.closed.wait()
            row = await room.ended(run_id)
            await room.deps.models.aclose()
    assert row.error is not None
    assert (row.status, row.error["code"]) == ("failed", "BUDGET_EXHAUSTED")
    assert row.error["details"] == {"budget": "max_wall_clock_ms", "max": 300}
    assert row.started_at_ms is not None
    assert row.finished_at_ms is not None
    assert 300 <= row.finished_at_ms - row.started_at_ms < 2_000


async def test_a_run_that_waits_for_a_person_ends_with_its_time_though_nobody_looks() -> None:
    async with opened(ScriptedModel()) as room:
        row = await room.run(timed(GATED, SOON_MS))
        assert row.error is not None
        assert (row.status, row.error["code"]) == ("failed", "BUDGET_EXHAUSTED")
        approvals, _ = await room.store.approvals.list(run_id=row.run_id)
        assert [one.status for one in approvals] == ["withdrawn"]


async def test_a_long_chain_without_models_ends_with_its_time() -> None:
    chain = [passthrough(f"n{i}") for i in range(2000)]
    edges = " ".join(f"n{i}>n{i + 1}" for i in range(1999)) + " n1999>END"
    async with opened(ScriptedModel()) as room:
        row = await room.run(timed(spec(*chain, edges=edges), 1))
        assert row.error is not None
        assert row.error["details"] == {"budget": "max_wall_clock_ms", "max": 1}
        assert len(await room.started(row.run_id)) < 2000


async def test_a_run_within_its_time_does_not_wait_for_its_end() -> None:
    began = time.monotonic()
    async with opened(ScriptedModel([Reply(text="one"), Reply(text="two")])) as room:
        assert (await room.run(timed(TWO, 60_000))).status == "completed"
        await room.at_rest()
    assert time.monotonic() - began < 10


async def test_a_machine_that_slept_through_the_end_finds_it_over() -> None:
    clock, gates = StillClock(), Gates("x")
    async with opened(ScriptedModel(gates), clock=clock) as room:
        run_id = await room.start(timed(spec(llm("a", "x", output_key="t"), edges="a>END"), 1000))
        await gates.reached("x")
        clock.at_ms += 9 * 3_600_000
        await room.supervisor.ask(run_id, Expire())
        row = await room.ended(run_id)
        assert row.error is not None
        assert row.error["details"] == {"budget": "max_wall_clock_ms", "max": 1000}
        await room.at_rest()
        assert gates.cancelled == ["x"]


async def test_an_answer_that_was_there_when_the_machine_woke_is_kept() -> None:
    clock, gates = StillClock(), Gates("a:")
    graph = spec(llm("a", "a: {input}", output_key="t"), llm("b", "b", output_key="u"), edges="a>b b>END",
                 output_key="u")  # fmt: skip
    async with opened(ScriptedModel(gates), clock=clock) as room:
        run_id = await room.start(timed(graph, 1000))
        await gates.reached("a:")
        clock.at_ms += 5_000
        gates.open("a:")
        row = await room.ended(run_id)
        assert row.status == "failed"
        assert len(await room.facts(run_id, e.ModelAnswered)) == 1


async def test_a_run_that_was_interrupted_past_its_end_makes_no_call_more(tmp_path: Path) -> None:
    clock, gates = StillClock(), Gates("x")
    async with opened(ScriptedModel(gates), tmp_path, clock=clock) as room:
        run_id = await room.start(timed(spec(llm("a", "x", output_key="t"), edges="a>END"), 1000))
        await gates.reached("x")
    clock.at_ms += 2_000
    model = ScriptedModel()
    async with opened(model, tmp_path, clock=clock) as room:
        row = await room.ended(run_id)
        assert row.error is not None
        assert row.error["code"] == "BUDGET_EXHAUSTED"
        assert not model.calls


async def test_a_waiting_run_whose_end_came_while_nobody_was_there_ends_at_the_next_start(tmp_path: Path) -> None:
    clock = StillClock()
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        run_id = await room.start(timed(GATED, 1000))
        await room.reaches(run_id, "waiting")
        assert (await room.store.runs.get(run_id)).wake_at_ms == 1_001_000
    clock.at_ms += 86_400_000
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        assert (await room.ended(run_id)).status == "failed"


async def test_a_clock_that_was_set_back_reorders_nothing_and_prevents_no_end(tmp_path: Path) -> None:
    clock, gates = StillClock(10_000_000), Gates("x")
    async with opened(ScriptedModel(gates), tmp_path, clock=clock) as room:
        run_id = await room.start(timed(spec(llm("a", "x", output_key="t"), edges="a>END"), 5_000))
        await gates.reached("x")
        clock.at_ms += 3_000
    clock.at_ms = 1_000
    again = Gates("x")
    async with opened(ScriptedModel(again), tmp_path, clock=clock) as room:
        await again.reached("x")
        clock.at_ms += 1_999
        await room.supervisor.ask(run_id, Expire())
        assert (await room.store.runs.get(run_id)).status == "running"
        clock.at_ms += 1
        await room.supervisor.ask(run_id, Expire())
        assert (await room.ended(run_id)).status == "failed"
        times = [event.at_ms for event in await room.log(run_id)]
        assert times == sorted(times)


async def test_more_time_is_counted_from_the_decision_and_closed_calls_are_made_again(tmp_path: Path) -> None:
    clock, gates = StillClock(), Gates("x")
    graph = timed(spec(llm("a", "x", output_key="t"), edges="a>END"), 1000, on_budget="pause")
    async with opened(ScriptedModel(gates), tmp_path, clock=clock) as room:
        run_id = await room.start(graph)
        await gates.reached("x")
        clock.at_ms += 1_000
        await room.supervisor.ask(run_id, Expire())
        await room.reaches(run_id, "waiting")
        await room.at_rest()
        assert gates.cancelled == ["x"]
    clock.at_ms += 50_000
    again = Gates("x")
    async with opened(ScriptedModel(again), tmp_path, clock=clock) as room:
        (asked,) = await room.pending(run_id)
        await room.decide(asked["approval_id"])
        await again.reached("x")
        assert (await budget(room, run_id))["max_wall_clock_ms"]["deadline_at_ms"] == clock.at_ms + 1_000
        again.open("x")
        row = await room.ended(run_id)
        assert row.status == "completed"
        assert await room.started(run_id) == [("a#1", 1), ("a#1", 2)]


async def test_a_host_that_is_away_when_the_time_is_over_does_not_keep_the_run_from_asking() -> None:
    clock, gates = StillClock(), Gates("slow")
    graph = spec(
        passthrough("p"), llm("a", "slow", output_key="t"),
        llm("b", "away", output_key="u", retry={"max_attempts": 1}), edges="p>a p>b a>END b>END", output_key="t",
    )  # fmt: skip
    model = ScriptedModel(_one_is_away(gates))
    async with opened(model, clock=clock) as room:
        run_id = await room.start(timed(graph, 1000, on_budget="pause"))
        await gates.reached("slow")
        clock.at_ms += 1_000
        await room.supervisor.ask(run_id, Expire())
        await room.reaches(run_id, "waiting")
        assert len(await room.pending(run_id)) == 1


async def test_a_host_that_is_away_when_the_time_is_over_does_not_keep_the_run() -> None:
    clock, gates = StillClock(), Gates("slow")
    graph = spec(
        passthrough("p"), llm("a", "slow", output_key="t"),
        llm("b", "away", output_key="u", retry={"max_attempts": 1}), edges="p>a p>b a>END b>END", output_key="t",
    )  # fmt: skip
    async with opened(ScriptedModel(_one_is_away(gates)), clock=clock) as room:
        run_id = await room.start(timed(graph, 1000))
        await gates.reached("slow")
        clock.at_ms += 1_000
        await room.supervisor.ask(run_id, Expire())
        row = await room.ended(run_id)
        assert row.error is not None
        assert row.error["code"] == "BUDGET_EXHAUSTED"
