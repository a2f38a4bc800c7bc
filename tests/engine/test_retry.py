"""Attempts in the engine: what is made again and when, what a cancel or a restart does to a pause between two."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.commands import Resume
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, Room, opened
from tests.specs import Json, gate, join, llm, passthrough, spec

QUICK = {"initial_delay_ms": 2, "max_delay_ms": 5}
SLOW = {"initial_delay_ms": 3_600_000, "max_delay_ms": 3_600_000, "jitter": False}
BUSY: JsonObject = {"code": "MODEL_OVERLOADED", "message": "server busy"}
AWAY: JsonObject = {"code": "MODEL_UNREACHABLE", "message": "nobody answers"}


def one(**config: Any) -> Json:
    return spec(llm("draft", output_key="text", **config), edges="draft>END")


async def retried(room: Room, run_id: str) -> list[e.NodeRetried]:
    return await room.facts(run_id, e.NodeRetried)


async def pausing(room: Room, run_id: str, count: int = 1) -> None:
    """Until so many pauses are in the log."""
    while len(await retried(room, run_id)) < count:
        changed = room.shell.notify.changed(run_id)
        if len(await retried(room, run_id)) < count:
            await changed.wait()


async def test_a_busy_host_is_asked_again_and_the_attempts_are_in_the_log() -> None:
    model = ScriptedModel([Reply(error=BUSY, times=2), Reply(text="fine")])
    async with opened(model) as room:
        row = await room.run(one(retry=QUICK))
        assert (row.status, row.final_state) == ("completed", ("fine",))
        assert await room.started(row.run_id) == [("draft#1", 1), ("draft#1", 2), ("draft#1", 3)]
        assert [(r.attempt, r.error["code"], r.error["class"]) for r in await retried(room, row.run_id)] == [
            (1, "MODEL_OVERLOADED", "overloaded"), (2, "MODEL_OVERLOADED", "overloaded"),
        ]  # fmt: skip
        assert [fact.firing for fact in await room.facts(row.run_id, e.TimerFired)] == ["draft#1"] * 2
        log = await room.log(row.run_id)
        due = {n.at_ms + n.fact.delay_ms for n in log if isinstance(n.fact, e.NodeRetried)}
        assert all(any(n.at_ms >= at for at in due) for n in log if isinstance(n.fact, e.TimerFired))


async def test_three_attempts_are_made_when_nothing_is_said_and_then_the_run_fails() -> None:
    model = ScriptedModel([Reply(error=BUSY)])
    async with opened(model) as room:
        row = await room.run(one())
        assert row.status == "failed"
        assert row.error is not None
        assert (row.error["code"], row.error["node_id"], row.error["attempts"]) == ("MODEL_OVERLOADED", "draft", 3)
        assert len(model.calls) == 3
        assert "text" not in await room.state(row.run_id)


@pytest.mark.parametrize("code", ["MODEL_NOT_FOUND", "MODEL_REFUSED", "MODEL_NOT_CONFIGURED"])
async def test_what_stays_wrong_is_asked_once(code: str) -> None:
    model = ScriptedModel([Reply(error={"code": code, "message": "no"})])
    async with opened(model) as room:
        row = await room.run(one(retry=QUICK))
        assert row.error is not None
        assert (row.status, row.error["code"], len(model.calls)) == ("failed", code, 1)


async def test_the_time_limit_bounds_each_attempt_by_itself() -> None:
    model = ScriptedModel([Reply(text="late", delay_ms=60_000, times=1), Reply(text="fine")])
    async with opened(model) as room:
        row = await room.run(one(retry=QUICK, timeout_ms=30))
        assert (row.status, row.final_state) == ("completed", ("fine",))
        assert [r.error["code"] for r in await retried(room, row.run_id)] == ["MODEL_TIMEOUT"]


async def test_reproduction_19_a_cancel_ends_a_pause_at_once() -> None:
    model = ScriptedModel([Reply(error=BUSY)])
    async with opened(model) as room:
        run_id = await room.start(one(retry=SLOW))
        await pausing(room, run_id)
        assert (await room.store.runs.get(run_id)).status == "running"
        await room.data("graph_run_cancel", run_id=run_id, reason="enough")
        row = await room.ended(run_id)
        assert (row.status, row.error) == ("cancelled", {"code": "CANCELLED", "message": "enough"})
        await room.at_rest()
        assert len(model.calls) == 1
        assert not await room.facts(run_id, e.TimerFired, e.NodeFailed)


async def test_a_pause_holds_neither_a_place_of_the_run_nor_one_at_the_host() -> None:
    async def answer(call: CallModel) -> Reply:
        return Reply(error=BUSY) if "draft" in str(call.messages[-1]["content"]) else Reply(text="fine")

    model = ScriptedModel(answer, parallel=1)
    other = spec(llm("other", output_key="text"), edges="other>END", name="other")
    both = spec(
        passthrough("s"), llm("draft", retry=SLOW, output_key="x"), llm("b", output_key="y"), join("j", ["y"], "z"),
        edges="s>draft s>b draft>j b>j", max_parallelism=1,
    )  # fmt: skip
    async with opened(model) as room:
        run_id = await room.start(both)
        await pausing(room, run_id)
        assert (await room.run(other)).status == "completed"
        while "b#1" not in [fact.firing for fact in await room.facts(run_id, e.NodeFinished)]:
            await room.shell.notify.changed(run_id).wait()


async def test_a_pause_goes_on_in_the_next_process_from_the_event_in_the_log(tmp_path: Path) -> None:
    clock = Hands(1_000_000)
    model = ScriptedModel([Reply(error=BUSY, times=1), Reply(text="fine")])
    async with opened(model, tmp_path, clock=clock) as room:
        run_id = await room.start(one(retry={**SLOW, "initial_delay_ms": 60_000}))
        await pausing(room, run_id)
    clock.now = 1_000_000 + 59_999
    async with opened(model, tmp_path, clock=clock) as room:
        await room.reaches(run_id, "running")
        runner = await room.supervisor.drive(run_id)
        assert await room.started(run_id) == [("draft#1", 1)]
        clock.now += 1
        await runner.ask(Resume())  # whatever wakes it makes it look at the clock
        assert (await room.ended(run_id)).status == "completed"
        assert await room.started(run_id) == [("draft#1", 1), ("draft#1", 2)]
        assert len(model.calls) == 2


class Hands:
    """A clock that is set by hand."""

    def __init__(self, now: int) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now


async def test_a_host_that_stays_away_interrupts_after_all_attempts_and_models() -> None:
    model = ScriptedModel([Reply(error=AWAY)])
    async with opened(model) as room:
        run_id = await room.start(one(retry={**QUICK, "max_attempts": 2}, model="big", fallback_models=["small"]))
        row = await room.reaches(run_id, "interrupted")
        assert row.error is not None
        assert (row.error["code"], row.error["node_path"]) == ("MODEL_UNREACHABLE", "draft#1")
        await room.at_rest()
        assert [call.model for call in model.calls] == ["big", "big", "small", "small"]
        model._replies = (Reply(error=AWAY, times=1), Reply(text="fine"))  # it is back, and stumbles once
        model._open.left = {0: 1}
        await room.supervisor.ask(run_id, Resume())
        row = await room.ended(run_id)
        assert (row.status, row.final_state) == ("completed", ("fine",))
        assert [call.model for call in model.calls[4:]] == ["big", "big"]


async def test_answers_under_way_are_waited_for_when_the_host_has_gone_and_no_pause_is_over_meanwhile() -> None:
    gates = Gates("slow")

    async def answer(call: CallModel) -> Any:
        prompt = str(call.messages[-1]["content"])
        return await gates(call) if "slow" in prompt else Reply(error=BUSY if "busy" in prompt else AWAY)

    nodes = [passthrough("s"), llm("slow", output_key="x"), llm("busy", retry=QUICK | {"max_attempts": 9}),
             llm("gone", retry={"max_attempts": 1}), join("j", ["x"], "z")]  # fmt: skip
    async with opened(ScriptedModel(answer)) as room:
        run_id = await room.start(spec(*nodes, edges="s>slow s>busy s>gone slow>j busy>j gone>j"))
        await gates.reached("slow")
        await pausing(room, run_id)
        await asyncio.sleep(0)
        gates.open("slow")
        await room.reaches(run_id, "interrupted")
        assert [fact.firing for fact in await room.facts(run_id, e.ModelAnswered)] == ["slow#1"]


async def test_a_run_that_goes_on_says_in_its_errors_what_failed() -> None:
    async def answer(call: CallModel) -> Reply:
        failing = "analyst a" in str(call.messages[-1]["content"])
        return Reply(error={"code": "MODEL_REFUSED", "message": "not allowed"}) if failing else Reply(text="B")

    nodes = [
        passthrough("s"), llm("a", "analyst a", on_error="continue", output_key="ra"),
        llm("b", "analyst b", output_key="rb"), join("j", ["ra", "rb"], "o"), gate("g", subject_key="o"),
    ]  # fmt: skip
    async with opened(ScriptedModel(answer)) as room:
        run_id = await room.start(spec(*nodes, edges="s>a s>b a>j b>j j>g g>END", output_key="o"))
        await room.reaches(run_id, "waiting")
        expected = {"a": {"code": "MODEL_REFUSED", "message": "not allowed"}}
        assert (await room.data("graph_run_get", run_id=run_id, include_state=True))["errors"] == expected
        (gate_row,) = await room.pending(run_id)
        assert gate_row["subject"] == [None, "B"]
        await room.decide(gate_row["approval_id"])
        assert (await room.ended(run_id)).status == "completed"
        found = await room.data("graph_run_get", run_id=run_id)
        assert (found["final_state"], found["errors"]) == ([None, "B"], expected)
