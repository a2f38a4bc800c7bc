"""Approvals as the engine lives them: decidable when visible, decided once, expired on time, never confused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.engine.clock import SystemClock
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.store.connection import on_thread
from tests.engine.room import Room, opened
from tests.sizes import size
from tests.specs import gate, join, llm, passthrough, put, spec

GATED = spec(put("a", seen=1), gate("h"), put("z", done=True), edges="a>h h>z z>END", output_key="done")


async def decide_as_soon_as_seen(room: Room, run_id: str) -> None:
    seen: list[dict[str, object]] = []
    while not seen:
        seen = await room.pending(run_id)
    answer = await room.decide(str(seen[0]["approval_id"]))
    assert answer["ok"], answer


async def test_AP07_a_decision_in_the_moment_the_gate_is_seen_is_never_lost() -> None:
    runs = size(200, 200)
    async with opened(ScriptedModel(), active_runs=64) as room:
        await room.create(GATED)

        async def one() -> str:
            run_id = (await room.data("graph_run_start", graph_id="case", input={}))["run_id"]
            await decide_as_soon_as_seen(room, run_id)
            return str(run_id)

        for _ in range(0, runs, 50):
            ids = await asyncio.gather(*(one() for _ in range(50)))
            for run_id in ids:
                row = await room.ended(run_id)
                assert (row.status, row.final_state) == ("completed", (True,))


async def test_AP08_of_ten_racing_deciders_one_wins_and_nine_learn_who() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(GATED, {})
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        answers = await asyncio.gather(
            *(
                room.decide(pending["approval_id"], "approve" if n % 2 else "reject", decided_by=f"person {n}")
                for n in range(10)
            )
        )
        (won,) = [answer for answer in answers if answer["ok"]]
        lost = [answer for answer in answers if not answer["ok"]]
        assert {answer["error_code"] for answer in lost} == {"APPROVAL_ALREADY_DECIDED"}
        winner = won["data"]["approval"]["decision"]
        assert [answer["details"]["decision"] for answer in lost] == [winner] * 9
        row = await room.ended(run_id)
        assert row.status == ("completed" if winner["decision"] == "approve" else "failed")
        assert len(await room.facts(run_id, e.ApprovalDecided)) == 1
        ran = [firing for firing, _ in await room.started(run_id)].count("z#1")
        assert ran == (winner["decision"] == "approve")


async def test_AP08_the_same_decision_under_one_key_gives_the_first_answer_every_time() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(GATED, {})
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        answers = await asyncio.gather(*(room.decide(pending["approval_id"], idempotency_key="yes") for _ in range(10)))
        await room.ended(run_id)
        answers.append(await room.decide(pending["approval_id"], idempotency_key="yes"))
        assert answers[0]["ok"]
        assert all(answer == answers[0] for answer in answers)
        assert len(await room.facts(run_id, e.ApprovalVoted)) == 1
        other = await room.decide(pending["approval_id"], "reject", idempotency_key="yes")
        assert other["error_code"] == "IDEMPOTENCY_CONFLICT"


async def test_a_key_used_for_something_else_costs_the_run_nothing() -> None:
    """The refusal meets the run between two commits: its other branch goes on, its call is not made again."""
    from tests.engine.room import Gates

    gates = Gates("side")
    model = ScriptedModel(gates)
    graph = spec(
        passthrough("s"), gate("h"), llm("side", output_key="text"), join("j"),
        edges="s>h s>side h>j side>j j>END", output_key="text",
    )  # fmt: skip
    async with opened(model) as room:
        run_id = await room.start(graph, {})
        await gates.reached("side")
        (pending,) = await room.pending(run_id)
        answers = await asyncio.gather(
            *(
                room.decide(pending["approval_id"], decided_by=f"person {n}", idempotency_key="one")
                for n in range(6)
            )
        )  # fmt: skip
        assert sum(answer["ok"] for answer in answers) == 1
        assert {a["error_code"] for a in answers if not a["ok"]} == {"IDEMPOTENCY_CONFLICT"}
        gates.open("side")
        assert (await room.ended(run_id)).status == "completed"
        assert model.count("side") == 1
        assert await room.started(run_id) == [("s#1", 1), ("h#1", 1), ("side#1", 1), ("j#1", 1)]
        assert not await room.facts(run_id, e.RunInterrupted)


async def test_AP01_one_gate_of_two_decided_leaves_the_other_pending() -> None:
    graph = spec(
        passthrough("s"), gate("h1"), gate("h2"), put("t1", a=1), put("t2", b=2),
        join("j", ["a", "b"], "both", "all_success"), edges="s>h1 s>h2 h1>t1 h2>t2 t1>j t2>j j>END", output_key="both",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
        first, second = await room.pending(run_id)
        assert (first["node_id"], second["node_id"]) == ("h1", "h2")
        await room.decide(first["approval_id"])
        await room.supervisor.wait(run_id, timeout_ms=5000, until=lambda row: row.status == "waiting")
        got = await room.data("graph_run_get", run_id=run_id, include_state=True)
        assert (got["status"], got["state"]["a"]) == ("waiting", 1)
        assert [each["node_id"] for each in got["pending_approvals"]] == ["h2"]
        assert "j#1" not in [firing for firing, _ in await room.started(run_id)]
        await room.decide(second["approval_id"])
        row = await room.ended(run_id)
        assert row.final_state == ({"all_success": True, "values": [1, 2]},)
        assert (await room.data("graph_run_get", run_id=run_id))["pending_approvals"] == []
        assert [firing for firing, _ in await room.started(run_id)].count("j#1") == 1


AP04 = spec(
    passthrough("s"), llm("a", "draft", output_key="ra"), gate("h"), llm("b", "send", output_key="rb"),
    llm("c", "side", output_key="rc"), edges="s>a a>h h>b b>END s>c c>END", output_key="rb",
)  # fmt: skip


@pytest.mark.parametrize("restarted", [False, True])
async def test_AP04_what_was_done_before_the_pause_is_not_done_again(tmp_path: Path, restarted: bool) -> None:
    model = ScriptedModel([Reply(text="fine")])
    async with opened(model, tmp_path) as room:
        run_id = await room.start(AP04)
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        if not restarted:
            await room.decide(pending["approval_id"])
            await room.ended(run_id)
    if restarted:
        async with opened(model, tmp_path) as room:
            assert await room.pending(run_id) == [pending]
            await room.decide(pending["approval_id"])
            await room.ended(run_id)
    async with opened(model, tmp_path) as room:
        assert [model.count(prompt) for prompt in ("draft", "side", "send")] == [1, 1, 1]
        assert len(await room.facts(run_id, e.ApprovalOpened)) == 1
        assert {attempt for _, attempt in await room.started(run_id)} == {1}


async def test_AP13_a_gate_lets_its_own_run_go_and_no_other() -> None:
    graph = spec(gate("h"), put("z", done=True), edges="h>z z>END", output_key="who")
    async with opened(ScriptedModel()) as room:
        await room.create(graph)
        ids = [
            (await room.data("graph_run_start", graph_id="case", input={"who": who}, thread_id="same"))["run_id"]
            for who in ("first", "second", "third")
        ]
        gates = []
        for run_id in ids:
            await room.reaches(run_id, "waiting")
            gates += await room.pending(run_id)
        assert len({each["approval_id"] for each in gates}) == 3
        await room.decide(gates[0]["approval_id"])
        assert (await room.ended(ids[0])).final_state == ("first",)
        assert (await room.store.runs.get(ids[1])).status == "waiting"
        assert await room.pending(ids[1]) == [gates[1]]
        await room.data("graph_run_cancel", run_id=ids[2], reason="stop")
        await room.ended(ids[2])
        before = await room.log(ids[2])
        refused = await room.decide(gates[2]["approval_id"])
        assert refused["error_code"] == "APPROVAL_WITHDRAWN"
        assert await room.log(ids[2]) == before
        assert [each["run_id"] for each in (await room.data("graph_approval_list"))["approvals"]] == [ids[1]]


async def test_a_gate_nobody_looks_at_expires_on_time_and_is_no_rejection() -> None:
    graph = spec(
        gate("h", expiry_ms=60, on_reject=["sorry"]), put("z", done=True), put("sorry", done=False),
        edges="h>z z>END sorry>END", output_key="done",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(graph, {})
        row = await room.ended(run_id)
        assert (row.status, row.error and row.error["code"]) == ("failed", "APPROVAL_EXPIRED")
        (opened_event,) = [event for event in await room.log(run_id) if isinstance(event.fact, e.ApprovalOpened)]
        (expired,) = [event for event in await room.log(run_id) if isinstance(event.fact, e.ApprovalExpired)]
        assert 60 <= expired.at_ms - opened_event.at_ms < 2000
        listed = (await room.data("graph_approval_list", status="expired"))["approvals"]
        assert [each["status"] for each in listed] == ["expired"]
        assert "sorry#1" not in [firing for firing, _ in await room.started(run_id)]
        late = await room.decide(listed[0]["approval_id"])
        assert late["error_code"] == "APPROVAL_EXPIRED"


async def test_a_gate_that_expires_first_wakes_the_timer_although_others_came_before() -> None:
    async with opened(ScriptedModel()) as room:
        slow = await room.start(spec(gate("h"), edges="h>END", name="slow", output_key="h"), {})
        await room.reaches(slow, "waiting")
        quick = await room.start(spec(gate("h", expiry_ms=30), edges="h>END", name="quick", output_key="h"), {})
        assert (await room.ended(quick)).status == "failed"
        assert (await room.store.runs.get(slow)).status == "waiting"


async def test_a_gate_whose_time_ended_while_nobody_was_there_is_expired_at_the_next_start(tmp_path: Path) -> None:
    graph = spec(gate("h", expiry_ms=1), edges="h>END", output_key="h")
    early = StillClock(1_000_000)
    async with opened(ScriptedModel(), tmp_path, clock=early) as room:
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
    async with opened(ScriptedModel(), tmp_path, clock=StillClock(2_000_000)) as room:
        row = await room.ended(run_id)
        assert (row.status, row.error and row.error["code"]) == ("failed", "APPROVAL_EXPIRED")


async def test_a_damaged_run_does_not_keep_the_gates_of_others_from_expiring(tmp_path: Path) -> None:
    async with opened(ScriptedModel(), tmp_path) as room:
        damaged = await room.start(spec(gate("h", expiry_ms=100), edges="h>END", name="first", output_key="h"), {})
        await room.reaches(damaged, "waiting")
        await spoil(room, damaged)
        sound = await room.start(spec(gate("h", expiry_ms=200), edges="h>END", name="second", output_key="h"), {})
        row = await room.ended(sound)
        assert (row.status, row.error and row.error["code"]) == ("failed", "APPROVAL_EXPIRED")
        assert (await room.store.runs.get(damaged)).status == "waiting"


async def spoil(room: Room, run_id: str) -> None:
    """Change the run's first event behind the store's back."""
    database: Any = room.store.database  # type: ignore[attr-defined]  # only SQLite has one
    change = (
        "UPDATE events SET body = replace(body, 'accepted', 'accepteX') "
        "WHERE event_no = (SELECT run_no << 32 FROM runs WHERE run_id = ?)"
    )
    await on_thread(database._writer, lambda connection: connection.execute(change, (run_id,)).fetchone())


class StillClock:
    """A clock that stands where it is put."""

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return self.at_ms


async def test_a_decision_after_the_time_is_refused_even_before_the_timer_has_come() -> None:
    clock = StillClock(1_000_000)
    async with opened(ScriptedModel(), clock=clock) as room:
        run_id = await room.start(spec(gate("h", expiry_ms=1000), edges="h>END", output_key="h"), {})
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        clock.at_ms += 1000
        assert (await room.decide(pending["approval_id"]))["error_code"] == "APPROVAL_EXPIRED"
        assert await room.pending(run_id) == []
        room.shell.notify.gates.set()
        assert (await room.ended(run_id)).status == "failed"


def test_the_clock_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5_000_000_000, 1_000_000_000, 6_000_000_000, 6_000_000_000])
    ticks = iter([100, 1_000_000, 8_000_000, 8_000_000, 10_500_000])
    monkeypatch.setattr("agent_graph.engine.clock.time.time_ns", lambda: next(times))
    monkeypatch.setattr("agent_graph.engine.clock.time.monotonic_ns", lambda: next(ticks))
    clock = SystemClock()
    assert [clock.now_ms() for _ in range(4)] == [5000, 5007, 6000, 6002], "set back, it goes on from where it was"


async def test_a_change_asked_for_opens_a_new_round_and_the_old_one_stays_decided() -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(GATED, {})
        await room.reaches(run_id, "waiting")
        (first,) = await room.pending(run_id)
        await room.decide(first["approval_id"], "request_changes", decision_note="shorter")
        await room.supervisor.wait(run_id, timeout_ms=5000, until=lambda row: row.status == "waiting")
        (second,) = await room.pending(run_id)
        assert second["approval_id"] != first["approval_id"]
        assert (await room.decide(first["approval_id"]))["error_code"] == "APPROVAL_ALREADY_DECIDED"
        await room.decide(second["approval_id"])
        assert (await room.ended(run_id)).status == "completed"


async def test_a_decision_the_gate_does_not_take_changes_nothing() -> None:
    graph = spec(gate("h", allowed_decisions=["approve"]), edges="h>END", output_key="h")
    async with opened(ScriptedModel()) as room:
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        before = await room.log(run_id)
        assert (await room.decide(pending["approval_id"], "reject"))["error_code"] == "APPROVAL_DECISION_NOT_ALLOWED"
        assert (await room.decide("apr-none"))["error_code"] == "APPROVAL_NOT_FOUND"
        assert await room.log(run_id) == before
        assert await room.pending(run_id) == [pending]
