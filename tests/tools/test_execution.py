"""graph_execute: a result in one call, a run id where it takes longer, and never a run that hangs on its caller."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.limits import DEFAULTS
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.tools.deps import Caller
from tests.fakes.held import Held
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, gated, keep


async def test_a_short_graph_gives_its_result_in_one_call(tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    envelope: Any = await tools.envelope("graph_execute", graph_id="echo", input="hello")
    answer = envelope["data"]
    assert envelope["run_id"] == answer["run_id"]
    assert (answer["terminal"], answer["timed_out"], answer["status"]) == (True, False, "completed")
    got = await tools.ok("graph_run_get", run_id=answer["run_id"])
    assert {name: value for name, value in answer.items() if name not in ("terminal", "timed_out")} == got
    assert got["final_state"] == "Looks sound."


async def test_async_answers_as_a_start_does(tools: Tools) -> None:
    created = await tools.ok("graph_create", spec=echo())
    answer = await tools.ok("graph_execute", graph_id="echo", input="hello", mode="async", thread_id="t")
    assert answer == {
        "run_id": answer["run_id"], "status": "accepted", "graph_id": "echo",
        "graph_version": created["graph_version"], "thread_id": "t",
    }  # fmt: skip


async def test_MC05_what_takes_longer_hands_back_its_run_id_and_others_are_answered_meanwhile() -> None:
    held = Held()
    async with opened(held.model, limits=replace(DEFAULTS, wait_ms=150)) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        begun = time.monotonic()
        executing = asyncio.create_task(tools.ok("graph_execute", graph_id="echo"))
        await held.asked.wait()
        run_id = (await tools.ok("graph_run_list"))["runs"][0]["run_id"]
        await tools.ok("graph_run_get", run_id=run_id)
        assert time.monotonic() - begun < 0.15
        answer = await executing
        assert (answer["run_id"], answer["timed_out"], answer["terminal"]) == (run_id, True, False)
        assert (answer["status"], answer["success"]) == ("running", False)
        held.go.set()
        assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


async def test_a_run_that_waits_for_a_person_is_answered_at_once(tools: Tools) -> None:
    await tools.ok("graph_create", spec=gated())
    answer = await tools.ok("graph_execute", graph_id="gated", input={"draft": "x"})
    assert (answer["status"], answer["terminal"], answer["timed_out"]) == ("waiting", False, False)
    assert [gate["node_id"] for gate in answer["pending_approvals"]] == ["gate"]


async def test_a_run_that_nothing_moves_is_answered_at_once() -> None:
    error = {"code": "MODEL_UNREACHABLE", "message": "nobody answers"}
    async with opened(ScriptedModel([], default=Reply(error=error))) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        answer = await tools.ok("graph_execute", graph_id="echo")
        assert (answer["status"], answer["timed_out"]) == ("interrupted", False)
        assert answer["error"]["code"] == "MODEL_UNREACHABLE"


async def test_whoever_ends_the_call_ends_the_waiting_and_not_the_run() -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        executing = asyncio.create_task(tools.ok("graph_execute", graph_id="echo", idempotency_key="k"))
        await held.asked.wait()
        executing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await executing
        held.go.set()
        again = await tools.ok("graph_execute", graph_id="echo", idempotency_key="k")
        assert (again["status"], again["final_state"]) == ("completed", "at last")
        assert len((await tools.ok("graph_run_list"))["runs"]) == 1


async def test_progress_is_told_while_it_waits() -> None:
    held = Held()
    told: list[int] = []

    async def tell(count: int, message: str) -> None:
        told.append(count)
        held.go.set()

    async with opened(held.model) as deps:
        await Tools(deps).ok("graph_create", spec=echo())
        answer = await Tools(deps, Caller("assistant", "a test", tell)).ok("graph_execute", graph_id="echo")
        assert answer["status"] == "completed"
        assert told == sorted(set(told)) != []


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_the_same_key_is_the_same_run_and_gives_its_result(tools: Tools, mode: str) -> None:
    await tools.ok("graph_create", spec=echo())
    call = {"graph_id": "echo", "input": "x", "mode": mode, "idempotency_key": "k"}
    first = await tools.ok("graph_execute", **call)
    await tools.ok("graph_run_wait", run_id=first["run_id"])
    before = await tools.everything()
    assert await tools.ok("graph_execute", **call) == first
    assert await tools.everything() == before
    refusal = await tools.refused("graph_execute", **{**call, "input": "y"})
    assert refusal["error_code"] == "IDEMPOTENCY_CONFLICT"


@pytest.mark.parametrize("modes", [("sync", "async"), ("async", "sync"), (None, "async")])
async def test_the_same_key_is_the_same_run_however_it_is_to_be_answered(
    tools: Tools, modes: tuple[str | None, str]
) -> None:
    await tools.ok("graph_create", spec=echo())
    first, again = [
        await tools.ok("graph_execute", graph_id="echo", idempotency_key="k", **({"mode": mode} if mode else {}))
        for mode in modes
    ]
    assert first["run_id"] == again["run_id"]
    await tools.ok("graph_run_wait", run_id=first["run_id"])
    assert len((await tools.ok("graph_run_list"))["runs"]) == 1


async def test_racing_calls_with_one_key_are_one_run(tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    answers = await asyncio.gather(*(tools.ok("graph_execute", graph_id="echo", idempotency_key="k") for _ in range(5)))
    assert {answer["run_id"] for answer in answers} == {answers[0]["run_id"]}
    assert {answer["final_state"] for answer in answers} == {"Looks sound."}


async def test_reproduction_22_what_a_sync_call_answers_is_on_the_disk_by_then(tmp_path: Path) -> None:
    async with opened(folder=tmp_path) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        answer = await tools.ok("graph_execute", graph_id="echo", input="x")
        assert (answer["storage"], answer["status"]) == ("durable", "completed")
        with sqlite3.connect(f"file:{tmp_path / 'agent-graph.db'}?mode=ro", uri=True) as another:
            query = "SELECT status, final_state, seq FROM runs WHERE run_id = ?"
            status, result, seq = another.execute(query, (answer["run_id"],)).fetchone()
            (events,) = another.execute("SELECT count(*) FROM events").fetchone()
        another.close()
        assert (status, result, events) == ("completed", '"Looks sound."', seq)


@pytest.mark.parametrize("tool", ["graph_execute", "graph_run_start"])
async def test_a_dry_run_says_what_it_would_take_and_starts_nothing(tools: Tools, tool: str) -> None:
    created = await tools.ok("graph_create", spec=echo(budgets={"max_nodes": 3}))
    before = await tools.everything()
    answer = await tools.ok(
        tool, graph_id="echo", input="x", thread_id="t", dry_run=True, budgets={"max_llm_calls": 2}, idempotency_key="k"
    )
    assert answer == {
        "status": "dry_run", "graph_id": "echo", "graph_version": created["graph_version"], "thread_id": "t",
        "budgets": {"max_nodes": 3, "max_llm_calls": 2}, "forecast": answer["forecast"],
    }  # fmt: skip
    assert answer["forecast"]["worst_case"]["llm_calls"] == {"worst": 2, "likely": 1, "least": 1}
    assert await tools.everything() == before
    await tools.ok("graph_run_start", graph_id="echo", idempotency_key="k")  # the key was not used up


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("tool", ["graph_execute", "graph_run_start"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"graph_id": "nobody"}, "GRAPH_NOT_FOUND"),
        ({"graph_id": "keep", "input": {"__x": 1}}, "RESERVED_KEY"),
        ({"graph_id": "keep", "budgets": {"max_nodes": 0}}, "INVALID_BUDGETS"),
        ({"graph_id": "keep", "executor": "caller"}, "CAPABILITY_MISSING"),
        ({"graph_id": "keep", "executor": "mixed"}, "CAPABILITY_MISSING"),
        ({"graph_id": "keep", "executor": "nobody"}, "INVALID_ARGUMENT"),
        ({"graph_id": "keep", "mode": "later"}, "INVALID_ARGUMENT UNKNOWN_ARGUMENT"),
    ],
    ids=lambda value: value.partition(" ")[0] if isinstance(value, str) else "-",
)
async def test_what_a_start_refuses_a_dry_run_refuses(
    tools: Tools, tool: str, arguments: Any, code: str, dry_run: bool
) -> None:
    await tools.ok("graph_create", spec=keep())
    refusal = await tools.refused(tool, **arguments, dry_run=dry_run)
    assert refusal["error_code"] in code.split()
    assert refusal["retryable"] is False


async def test_a_dry_run_is_refused_where_there_is_no_room() -> None:
    held = Held()
    async with opened(held.model, limits=replace(DEFAULTS, active_runs=1, queued_runs=1)) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        await tools.run("echo")
        await tools.run("echo")
        await held.asked.wait()
        assert (await tools.refused("graph_run_start", graph_id="echo", dry_run=True))["error_code"] == "RUN_CAPACITY"
        held.go.set()
