"""Timers and messages as the engine lives them: they survive a restart, come once, and are held by nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.engine.commands import Expire
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import Gates, Room, opened
from tests.specs import gate, llm, node, passthrough, put, router, rule, spec

HOUR_MS = 3_600_000


class StillClock:
    """A clock that stands where it is put."""

    def __init__(self, at_ms: int = 1_000_000) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return self.at_ms


def timed(**config: Any) -> dict[str, Any]:
    return spec(node("t", "timer", **config), put("z", done=True), edges="t>z z>END", output_key="done")


def told(**config: Any) -> dict[str, Any]:
    return spec(node("s", "signal", **config), edges="s>END")


async def fired(room: Room, run_id: str) -> list[str]:
    return [fact.firing for fact in await room.facts(run_id, e.TimerFired)]


async def test_a_timer_wakes_its_run_though_nobody_drives_it() -> None:
    async with opened(ScriptedModel()) as room:
        row = await room.run(timed(delay_ms=30))
        assert (row.status, row.final_state) == ("completed", (True,))
        log = await room.log(row.run_id)
        (set_at,) = [event.at_ms for event in log if isinstance(event.fact, e.TimerSet)]
        (fired_at,) = [event.at_ms for event in log if isinstance(event.fact, e.TimerFired)]
        assert fired_at - set_at >= 30


async def test_a_moment_that_is_past_comes_at_once() -> None:
    async with opened(ScriptedModel()) as room:
        row = await room.run(timed(until="2001-01-01T00:00:00Z"))
        assert row.status == "completed"
        assert await fired(room, row.run_id) == ["t#1"]


async def test_what_is_no_moment_fails_the_run() -> None:
    async with opened(ScriptedModel()) as room:
        row = await room.run(timed(until="due"), {"due": "next week"})
        assert (row.status, row.error and row.error["code"]) == ("failed", "TIMER_INVALID")
        assert await fired(room, row.run_id) == []


async def test_a_waiting_run_has_no_driver_and_holds_up_nobody() -> None:
    async with opened(ScriptedModel(), active_runs=1) as room:
        waiting = [await room.start({**timed(delay_ms=HOUR_MS), "name": f"g{n}"}, {}) for n in range(5)]
        for run_id in waiting:
            await room.reaches(run_id, "waiting")
        await room.at_rest()
        assert (await room.run(timed(delay_ms=0))).status == "completed"


async def test_a_timer_survives_a_restart_and_fires_once_however_late(tmp_path: Path) -> None:
    clock = StillClock()
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        run_id = await room.start(timed(delay_ms=HOUR_MS), {})
        await room.reaches(run_id, "waiting")
    clock.at_ms += HOUR_MS - 1
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        await room.supervisor.ask(run_id, Expire())
        assert (await room.store.runs.get(run_id)).status == "waiting"
    clock.at_ms += 24 * HOUR_MS
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        assert (await room.ended(run_id)).status == "completed"
        assert await fired(room, run_id) == ["t#1"]
    clock.at_ms -= 10 * HOUR_MS
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        await room.at_rest()
        assert await fired(room, run_id) == ["t#1"]


async def test_a_clock_that_was_set_back_makes_a_timer_wait_and_does_no_harm(tmp_path: Path) -> None:
    clock = StillClock(10 * HOUR_MS)
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        run_id = await room.start(timed(delay_ms=HOUR_MS), {})
        await room.reaches(run_id, "waiting")
    clock.at_ms = HOUR_MS
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        await room.supervisor.ask(run_id, Expire())
        assert await fired(room, run_id) == []
        clock.at_ms = 11 * HOUR_MS
        room.shell.notify.gates.set()
        assert (await room.ended(run_id)).status == "completed"


async def test_a_timer_comes_while_a_call_of_the_same_run_is_under_way() -> None:
    gates = Gates("slow")
    graph = spec(
        passthrough("s"), llm("slow", output_key="x"), node("t", "timer", delay_ms=1), put("z", done=True),
        edges="s>slow s>t t>z slow>END z>END", output_key="done",
    )  # fmt: skip
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(graph)
        await gates.reached("slow")
        while "z#1" not in [firing for firing, _ in await room.started(run_id)]:
            await room.shell.notify.changed(run_id).wait()
        gates.open("slow")
        assert (await room.ended(run_id)).status == "completed"


async def test_a_cancel_ends_a_timer() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(timed(delay_ms=HOUR_MS), {})
        await room.reaches(run_id, "waiting")
        await room.data("graph_run_cancel", run_id=run_id, reason="enough")
        assert (await room.ended(run_id)).status == "cancelled"
        assert await room.store.runs.next_wake() is None


async def test_hundreds_of_timers_of_one_run_come_together() -> None:
    names = [f"t{n}" for n in range(300)]
    graph = spec(
        passthrough("s"), *(node(name, "timer", delay_ms=5) for name in names), put("z", done=True),
        edges=" ".join(f"s>{name} {name}>z" for name in names) + " z>END", output_key="done",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        row = await room.run(graph)
        assert row.status == "completed"
        assert len(await fired(room, row.run_id)) == 300


# -- messages ------------------------------------------------------------------------------------------------------


async def test_a_message_wakes_its_run_and_is_its_result() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(told(output_key="paid"), {})
        await room.reaches(run_id, "waiting")
        answer = await room.data("graph_run_signal", run_id=run_id, name="s", payload={"amount": 10**30})
        assert (answer["delivered"], answer["node_id"], answer["node_path"]) == (True, "s", "s#1")
        row = await room.ended(run_id)
        assert row.final_state == ({"amount": 10**30},)


async def test_a_message_survives_restarts_before_and_after_it_comes(tmp_path: Path) -> None:
    graph = spec(gate("g"), node("s", "signal", output_key="x"), edges="g>s s>END", output_key="x")
    async with opened(ScriptedModel(), tmp_path) as room:
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
        kept = await room.data("graph_run_signal", run_id=run_id, name="s", payload="early")
        assert kept == {
            "run_id": run_id, "name": "s", "delivered": False, "run": {"run_id": run_id, "status": "waiting"},
        }  # fmt: skip
    async with opened(ScriptedModel(), tmp_path) as room:
        assert (await room.store.runs.get(run_id)).status == "waiting", "a message opens no gate"
        (pending,) = await room.pending(run_id)
        await room.decide(pending["approval_id"])
        assert (await room.ended(run_id)).final_state == ("early",)


async def test_a_wait_for_a_message_survives_a_restart(tmp_path: Path) -> None:
    async with opened(ScriptedModel(), tmp_path) as room:
        run_id = await room.start(told(), {})
        await room.reaches(run_id, "waiting")
    async with opened(ScriptedModel(), tmp_path) as room:
        await room.data("graph_run_signal", run_id=run_id, name="s", payload=1)
        assert (await room.ended(run_id)).status == "completed"


async def test_ten_racing_senders_of_one_transient_message_one_is_heard() -> None:
    async with opened(ScriptedModel()) as room:
        graph = spec(node("s", "signal", buffer=False, output_key="x"), gate("g"), edges="s>g g>END", output_key="x")
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
        answers = await asyncio.gather(
            *(room.call("graph_run_signal", run_id=run_id, name="s", payload=n) for n in range(10))
        )
        (won,) = [n for n, answer in enumerate(answers) if answer["ok"]]
        assert {answer["error_code"] for answer in answers if not answer["ok"]} == {"SIGNAL_NOT_AWAITED"}
        assert (await room.state(run_id))["x"] == won
        assert len(await room.facts(run_id, e.SignalReceived)) == 1


async def test_one_key_sends_one_message_however_often_it_is_sent() -> None:
    async with opened(ScriptedModel()) as room:
        graph = spec(gate("g"), node("s", "signal"), edges="g>s s>END")
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
        sent = {"run_id": run_id, "name": "s", "payload": {"n": 1}, "idempotency_key": "once"}
        answers = [await room.call("graph_run_signal", **sent) for _ in range(3)]
        assert answers[0]["ok"]
        assert answers[1:] == answers[:1] * 2
        assert len(await room.facts(run_id, e.SignalReceived)) == 1
        other = await room.call("graph_run_signal", **{**sent, "payload": {"n": 2}})
        assert other["error_code"] == "IDEMPOTENCY_CONFLICT"
        assert len(await room.facts(run_id, e.SignalReceived)) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"run_id": "run-none"}, "RUN_NOT_FOUND"),
        ({"name": "t"}, "SIGNAL_NOT_FOUND"),
        ({"payload": "text"}, "INPUT_INVALID"),
        ({"name": ""}, "INVALID_ARGUMENT"),
        ({"name": "x" * 65}, "INVALID_ARGUMENT"),
    ],
)
async def test_a_message_that_is_refused_changes_nothing(change: dict[str, Any], code: str) -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(told(schema={"type": "object"}), {})
        await room.reaches(run_id, "waiting")
        before = await room.log(run_id)
        answer = await room.call("graph_run_signal", **{"run_id": run_id, "name": "s", "payload": {}, **change})
        assert answer["error_code"] == code
        assert await room.log(run_id) == before


async def test_a_run_that_has_ended_takes_no_message() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(told(), {})
        await room.reaches(run_id, "waiting")
        await room.data("graph_run_signal", run_id=run_id, name="s")
        before = await room.log((await room.ended(run_id)).run_id)
        assert (await room.call("graph_run_signal", run_id=run_id, name="s"))["error_code"] == "RUN_TERMINAL"
        assert await room.log(run_id) == before


async def test_a_message_reaches_a_run_in_which_a_call_is_under_way() -> None:
    gates = Gates("slow")
    graph = spec(
        passthrough("p"), llm("slow", output_key="y"), node("s", "signal", output_key="x"),
        edges="p>slow p>s slow>END s>END", output_key="x",
    )  # fmt: skip
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(graph)
        await gates.reached("slow")
        sent = await room.data("graph_run_signal", run_id=run_id, name="s", payload="in time")
        assert sent["run"]["status"] == "running"
        gates.open("slow")
        assert (await room.ended(run_id)).final_state == ("in time",)


async def test_who_waits_for_a_message_in_vain_goes_elsewhere_on_time() -> None:
    graph = spec(
        node("s", "signal", expiry_ms=20, on_expire={"goto": ["late"]}), put("late", x="late"), put("z", x="came"),
        edges="s>z z>END late>END", output_key="x",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        assert (await room.run(graph, {})).final_state == ("late",)


async def test_a_message_can_be_told_from_another_by_what_it_says() -> None:
    graph = spec(
        node("s", "signal", name="order", output_key="order"),
        router("r", rule("order.kind", "eq", "stop", "END"), default=["s"]),
        edges="s>r", output_key="order", max_iterations=500,
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(graph, {})
        for n in range(20):
            await room.data("graph_run_signal", run_id=run_id, name="order", payload={"n": n})
        await room.data("graph_run_signal", run_id=run_id, name="order", payload={"kind": "stop"})
        assert (await room.ended(run_id)).final_state == ({"kind": "stop"},)
        payloads = [fact.payload for fact in await room.facts(run_id, e.SignalReceived)]
        assert payloads == [*({"n": n} for n in range(20)), {"kind": "stop"}]
        outputs = [fact.output[0] for fact in await room.facts(run_id, e.NodeFinished) if fact.output]
        assert outputs == payloads


# -- what a run says it waits for ----------------------------------------------------------------------------------


async def test_a_run_says_what_it_waits_for() -> None:
    clock = StillClock()
    graph = spec(
        passthrough("p"), node("t", "timer", delay_ms=HOUR_MS), node("s", "signal", name="paid", expiry_ms=7),
        node("u", "signal"), gate("g"), edges="p>t p>s p>u p>g", output_key="x",
    )  # fmt: skip
    async with opened(ScriptedModel(), clock=clock) as room:
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        waits = [
            {"kind": "approval", "node_id": "g", **{k: pending[k] for k in ("approval_id", "how_to_decide")}},
            {"kind": "timer", "node_id": "t", "node_path": "t#1", "due_at_ms": 1_000_000 + HOUR_MS},
            {"kind": "signal", "node_id": "s", "node_path": "s#1", "name": "paid", "expires_at_ms": 1_000_007},
            {"kind": "signal", "node_id": "u", "node_path": "u#1", "name": "u"},
        ]
        assert (await room.data("graph_run_get", run_id=run_id))["waiting_for"] == waits
        waited = await room.data("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=0)
        assert (waited["timed_out"], waited["run"]["waiting_for"]) == (False, waits)


async def test_a_run_has_used_no_negative_time_under_an_earlier_clock(tmp_path: Path) -> None:
    clock = StillClock()
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        run_id = await room.start(timed(delay_ms=HOUR_MS), {})
        await room.reaches(run_id, "waiting")
    clock.at_ms -= HOUR_MS
    async with opened(ScriptedModel(), tmp_path, clock=clock) as room:
        assert (await room.data("graph_run_get", run_id=run_id))["usage"]["wall_clock_ms"] == 0


async def test_waiting_for_an_event_of_a_run_that_waits_for_the_clock_comes_back() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(timed(delay_ms=HOUR_MS), {})
        row = await room.reaches(run_id, "waiting")
        waited = await room.data("graph_run_wait", run_id=run_id, until="event", timeout_ms=10_000)
        assert (waited["status"], waited["timed_out"], waited["next_cursor"]) == ("waiting", False, row.seq)
        again = await room.data("graph_run_wait", run_id=run_id, until="event", cursor=row.seq, timeout_ms=0)
        assert (again["timed_out"], again["events"]) == (True, [])


async def test_a_wait_for_somebody_is_not_over_while_only_the_clock_is_waited_for() -> None:
    graph = spec(node("t", "timer", delay_ms=50), node("s", "signal"), edges="t>s s>END")
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(graph, {})
        waited = await room.data("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
        assert [one["kind"] for one in waited["run"]["waiting_for"]] == ["signal"]
        assert not waited["timed_out"]
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(timed(delay_ms=HOUR_MS), {})
        await room.reaches(run_id, "waiting")
        waited = await room.data("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=20)
        assert (waited["timed_out"], waited["status"]) == (True, "timeout")
