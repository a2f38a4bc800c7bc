"""END_RUN, mutex and merge each through the engine: calls are closed, holders let go, restarts change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_graph.core import events as e
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, Room, asked, opened
from tests.specs import gate, join, llm, node, passthrough, put, spec


async def holders(room: Room, run_id: str) -> list[str]:
    return [fact.firing for fact in await room.facts(run_id, e.MutexGranted)]


async def test_the_end_of_the_run_closes_the_calls_under_way() -> None:
    gates = Gates("fast", "slow")
    graph = spec(
        passthrough("s"), llm("fast", output_key="x"), llm("slow"), gate("g"), node("t", "timer", delay_ms=3_600_000),
        edges="s>fast s>slow s>g s>t fast>END_RUN slow>END g>END t>END", output_key="x",
    )  # fmt: skip
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(graph)
        await gates.reached("fast")
        await gates.reached("slow")
        gates.open("fast")
        row = await room.ended(run_id)
        assert (row.status, row.final_state) == ("completed", ("fine: fast",))
        await room.at_rest()
        assert gates.cancelled == ["slow"], "down to the socket"
        assert await room.pending(run_id) == []
        assert await room.store.runs.next_wake() is None
        run = await room.data("graph_run_get", run_id=run_id)
        assert (run["skipped"], run["waiting_for"]) == ([], [])
        (approval,) = (await room.data("graph_approval_list", run_id=run_id, status="all"))["approvals"]
        assert approval["status"] == "withdrawn"


async def test_one_model_call_at_a_time_under_one_mutex() -> None:
    running, most = 0, 0

    async def answer(call: Any) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        running -= 1
        return "ok"

    names = [f"n{i}" for i in range(20)]
    graph = spec(
        passthrough("s"), *(llm(name, mutex="m") for name in names), edges=" ".join(f"s>{name}" for name in names),
        output_key="x",
    )  # fmt: skip
    async with opened(ScriptedModel(answer)) as room:
        row = await room.run(graph, {"x": 1})
        assert row.status == "completed"
        assert most == 1
        order = await holders(room, row.run_id)
        assert sorted(order) == sorted(f"{name}#1" for name in names)
        finished = [fact.firing for fact in await room.facts(row.run_id, e.NodeFinished)]
        assert finished[1:] == order


async def test_a_holder_survives_a_restart_and_so_does_the_line(tmp_path: Path) -> None:
    graph = spec(
        passthrough("s"), gate("g", mutex="m"), llm("a", mutex="m"), llm("b", mutex="m"), edges="s>g s>a s>b",
        output_key="x",
    )  # fmt: skip
    model = ScriptedModel([Reply(text="ok")])
    async with opened(model, tmp_path) as room:
        run_id = await room.start(graph, {"x": 1})
        await room.reaches(run_id, "waiting")
    async with opened(model, tmp_path) as room:
        assert asked(model, "a", "b") == [0, 0]
        (pending,) = await room.pending(run_id)
        await room.decide(pending["approval_id"])
        assert (await room.ended(run_id)).status == "completed"
        assert await holders(room, run_id) == ["g#1", "a#1", "b#1"]
        assert asked(model, "a", "b") == [1, 1]


async def test_a_node_that_merges_each_goes_on_with_the_first_branch() -> None:
    gates = Gates("slow")
    graph = spec(
        passthrough("s"), llm("slow", output_key="slow"), put("fast", fast=1),
        {"id": "each", "type": "llm", "config": {"prompt": "each {slow?}", "merge": "each"}},
        edges="s>slow s>fast slow>each fast>each each>END", output_key="x",
    )  # fmt: skip
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(graph, {"x": 1})
        await gates.reached("slow")
        while "each#2.1" not in [fact.firing for fact in await room.facts(run_id, e.NodeFinished)]:
            await room.shell.notify.changed(run_id).wait()
        gates.open("slow")
        assert (await room.ended(run_id)).status == "completed"
        assert [fact.firing for fact in await room.facts(run_id, e.NodeFinished)][-1] == "each#1.1"


async def test_the_first_of_three_providers_wins_and_the_calls_to_the_others_are_closed() -> None:
    gates = Gates("one", "two", "fast")
    names = ("one", "two", "fast")
    graph = spec(
        passthrough("s"), *(llm(name, output_key=name) for name in names),
        join("j", [*names], "best", "first_non_null", wait="any", on_missing="skip"), llm("use", "use {best}"),
        edges=" ".join(f"s>{name} {name}>j" for name in names) + " j>use use>END",
    )  # fmt: skip
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(graph)
        for name in names:
            await gates.reached(name)
        gates.open("fast")
        row = await room.ended(run_id)
        assert (row.status, row.final_state) == ("completed", ("fine: use fine: fast",))
        await room.at_rest()
        assert sorted(gates.cancelled) == ["one", "two"], "down to the socket"
        (closed,) = await room.facts(run_id, e.JoinClosed)
        assert (closed.firing, closed.edges, closed.short) == ("s#1/j#1", ("fast",), False)
        assert (await room.data("graph_run_get", run_id=run_id))["skipped"] == []
        assert await room.state(run_id) == {"fast": "fine: fast", "best": "fine: fast"}


async def test_a_race_in_which_a_person_waits_survives_a_restart(tmp_path: Path) -> None:
    graph = spec(
        passthrough("s"), gate("g"), node("w", "signal"), join("j", ["g", "w"], "got", "collect_object", wait="any",
                                                                on_missing="skip"),
        edges="s>g s>w g>j w>j j>END", output_key="got",
    )  # fmt: skip
    async with opened(ScriptedModel(), tmp_path) as room:
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
    async with opened(ScriptedModel(), tmp_path) as room:
        sent = await room.data("graph_run_signal", run_id=run_id, name="w", payload="now")
        assert (sent["node_id"], sent["node_path"]) == ("w", "s#1/w#1")
        row = await room.ended(run_id)
        assert row.final_state == ({"w": "now"},)
        (gone,) = (await room.data("graph_approval_list", run_id=run_id, status="all"))["approvals"]
        assert (gone["status"], gone["node_path"], gone["node_id"]) == ("withdrawn", "s#1/g#1", "g")
