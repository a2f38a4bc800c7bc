"""graph_run_start, _wait, _get, _list, _cancel: what they answer, what they refuse, and that nothing hangs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from agent_graph.core.jsonvalue import size
from agent_graph.core.limits import DEFAULTS
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.tools.deps import Caller
from tests.fakes.held import Held
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, gated, keep

RUN = {
    "run_id", "status", "success", "graph_id", "graph_version", "thread_id", "storage", "started_at", "finished_at",
    "started_at_ms", "finished_at_ms", "usage", "budget",
}  # fmt: skip


async def test_start_answers_at_once(tools: Tools) -> None:
    created = await tools.ok("graph_create", spec=echo())
    envelope: Any = await tools.envelope("graph_run_start", graph_id="echo", input="hello", thread_id="t1")
    assert envelope["data"] == {
        "run_id": envelope["run_id"], "status": "accepted", "graph_id": "echo",
        "graph_version": created["graph_version"], "thread_id": "t1",
    }  # fmt: skip


async def test_a_run_from_start_to_end(tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    run_id = await tools.run("echo", "hello")
    waited = await tools.ok("graph_run_wait", run_id=run_id)
    assert set(waited) >= {"run", "terminal", "timed_out", "status", "events", "next_cursor"}
    assert (waited["terminal"], waited["timed_out"], waited["status"]) == (True, False, "completed")
    assert [event["seq"] for event in waited["events"]] == list(range(waited["next_cursor"]))
    run = await tools.ok("graph_run_get", run_id=run_id)
    assert set(run) == RUN | {"pending_approvals", "waiting_for", "skipped", "final_state"}
    assert (run["success"], run["final_state"], run["storage"]) == (True, "Looks sound.", "volatile")
    assert set(run["usage"]) == {"llm_calls", "prompt_tokens", "completion_tokens", "nodes", "wall_clock_ms"}
    assert run["usage"]["llm_calls"] == 1
    assert run["started_at"].endswith("Z")
    assert run["finished_at_ms"] >= run["started_at_ms"]


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({"topic": "x"}, {"topic": "x"}),
        ('{"topic": "x"}', {"topic": "x"}),
        ("plain text", "plain text"),
        ("{curly but no json", "{curly but no json"),
        (["a", 1], ["a", 1]),
    ],
)
async def test_MC01_an_input_may_be_an_object_its_text_or_plain_text(tools: Tools, given: Any, state: Any) -> None:
    await tools.ok("graph_create", spec=keep())
    assert (await tools.ended("keep", given))["final_state"] == state


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


SCHEMA = {"type": "object", "required": ["topic"], "properties": {"topic": {"type": "string"}}}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"graph_id": "nobody"}, "GRAPH_NOT_FOUND"),
        ({"graph_id": "echo", "graph_version": "sha256:" + "0" * 64}, "GRAPH_VERSION_NOT_FOUND"),
        ({}, "INVALID_ARGUMENT"),
        ({"graph_id": 7}, "INVALID_ARGUMENT"),
        ({"graph_id": "echo", "inputs": "x"}, "UNKNOWN_ARGUMENT"),
        ({"graph_id": "echo", "budgets": {"llm_calls": 1}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": [1]}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": "max_nodes"}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"max_nodes": True}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"max_nodes": 2.0}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"max_nodes": 0}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"max_nodes": -1}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"max_nodes": "3"}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"max_nodes": None}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"max_tokens": 10**15 + 1}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "budgets": {"on_budget": {"goto": ["a"]}}}, "INVALID_BUDGETS"),
        ({"graph_id": "bounded", "budgets": {"on_budget": "pause"}}, "INVALID_BUDGETS"),
        ({"graph_id": "echo", "input": {"__run": 1}}, "RESERVED_KEY"),
        ({"graph_id": "echo", "input": "x" * 10_000_000}, "INPUT_TOO_LARGE"),
        ({"graph_id": "echo", "input": "x" * (DEFAULTS.input_bytes + 1)}, "INPUT_TOO_LARGE"),
        ({"graph_id": "echo", "input": {"deep": _nested(10_000)}}, "INPUT_TOO_DEEP"),
        ({"graph_id": "echo", "input": "\ud83d"}, "INPUT_INVALID"),
        ({"graph_id": "echo", "input": {"\udc00": 1}}, "INPUT_INVALID"),
        ({"graph_id": "echo", "input": float("inf")}, "INPUT_INVALID"),
        ({"graph_id": "strict", "input": {"topic": 7}}, "INPUT_INVALID"),
        ({"graph_id": "strict", "input": "text"}, "INPUT_INVALID"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
async def test_start_refuses_and_makes_no_run(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    await tools.ok("graph_create", spec=echo())
    await tools.ok("graph_create", spec=echo("strict", input_schema=SCHEMA))
    await tools.ok("graph_create", spec=echo("bounded", budgets={"max_nodes": 3}))
    refusal = await tools.refused("graph_run_start", **arguments)
    assert refusal["error_code"] == code
    assert refusal["retryable"] is False


async def test_an_unknown_argument_is_refused_with_the_one_that_was_meant(tools: Tools) -> None:
    refusal = await tools.refused("graph_run_start", graph_idd="echo")
    assert "graph_id" in refusal["error"]
    assert refusal["details"]["argument"] == "graph_idd"


async def test_a_refusal_for_capacity_leaves_no_run() -> None:
    held = Held()
    async with opened(held.model, limits=replace(DEFAULTS, active_runs=1, queued_runs=1)) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        await tools.run("echo")
        queued = await tools.run("echo")
        await held.asked.wait()
        refusal = await tools.refused("graph_run_start", graph_id="echo", input="one more")
        assert (refusal["error_code"], refusal["retryable"]) == ("RUN_CAPACITY", True)
        held.go.set()
        assert (await tools.ok("graph_run_wait", run_id=queued))["status"] == "completed"


async def test_MC05_a_wait_that_times_out_says_so_and_the_run_goes_on() -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo")
        waited = await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=20)
        assert (waited["status"], waited["timed_out"], waited["terminal"]) == ("timeout", True, False)
        assert (waited["run"]["run_id"], waited["run"]["status"]) == (run_id, "running")
        held.go.set()
        rest = await tools.ok("graph_run_wait", run_id=run_id, cursor=waited["next_cursor"])
        assert rest["status"] == "completed"
        assert rest["events"][0]["seq"] == waited["next_cursor"]


async def test_MC05_a_wait_is_clamped_and_others_answer_meanwhile() -> None:
    held = Held()
    async with opened(held.model, limits=replace(DEFAULTS, wait_ms=150)) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo")
        begun = time.monotonic()
        waits = [
            asyncio.create_task(tools.ok("graph_run_wait", run_id=run_id, timeout_ms=600_000, poll_interval_ms=1))
            for _ in range(5)
        ]
        await tools.ok("graph_run_get", run_id=run_id)
        answered = time.monotonic() - begun
        waited = await asyncio.gather(*waits)
        assert answered < 0.15
        assert {one["status"] for one in waited} == {"timeout"}
        assert time.monotonic() - begun < 5


async def test_a_wait_until_the_next_event_and_until_somebody_must_decide(tools: Tools) -> None:
    await tools.ok("graph_create", spec=gated())
    run_id = await tools.run("gated", {"draft": "hello"})
    moved = await tools.ok("graph_run_wait", run_id=run_id, until="event")
    assert moved["events"]
    waiting = await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    assert (waiting["status"], waiting["terminal"], waiting["timed_out"]) == ("waiting", False, False)
    run = await tools.ok("graph_run_get", run_id=run_id)
    (pending,) = run["pending_approvals"]
    told = {name: pending[name] for name in ("approval_id", "how_to_decide")}
    assert run["waiting_for"] == [{"kind": "approval", "node_id": "gate", **told}]
    assert waiting["run"]["waiting_for"] == run["waiting_for"]
    ended = await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=0)
    assert (ended["timed_out"], ended["run"]["waiting_for"]) == (True, run["waiting_for"])
    assert "pending_approvals" not in await tools.ok("graph_run_get", run_id=run_id, include_approvals=False)


@pytest.mark.parametrize("until", ["terminal", "waiting"])
async def test_nobody_waits_for_a_run_that_nothing_moves(until: str) -> None:
    error = {"code": "MODEL_UNREACHABLE", "message": "nobody answers"}
    async with opened(ScriptedModel([], default=Reply(error=error))) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo")
        for _ in range(2):
            waited = await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=40_000, until=until)
            assert (waited["status"], waited["terminal"], waited["timed_out"]) == ("interrupted", False, False)
            assert waited["run"]["error"]["code"] == "MODEL_UNREACHABLE"


async def test_progress_rises_while_a_call_waits_and_stops_with_the_answer() -> None:
    held = Held()
    told: list[tuple[int, str]] = []

    async def tell(count: int, message: str) -> None:
        told.append((count, message))
        held.go.set()

    async with opened(held.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo")
        listening = Tools(deps, Caller("assistant", "a test", tell))
        waited = await listening.ok("graph_run_wait", run_id=run_id)
        assert waited["status"] == "completed"
        counts = [count for count, _ in told]
        assert counts
        assert counts == sorted(set(counts))
        assert "events so far" in told[0][1]


@pytest.mark.parametrize("tool", ["graph_run_wait", "graph_run_get", "graph_run_state", "graph_run_events"])
async def test_an_unknown_run_is_not_found(tools: Tools, tool: str) -> None:
    assert (await tools.refused(tool, run_id="run-none"))["error_code"] == "RUN_NOT_FOUND"
    assert (await tools.refused(tool))["error_code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("graph_run_wait", {"timeout_ms": -1}),
        ("graph_run_wait", {"until": "forever"}),
        ("graph_run_wait", {"cursor": -1}),
        ("graph_run_get", {"include_state": "yes"}),
        ("graph_run_cancel", {}),
        ("graph_run_cancel", {"reason": ""}),
    ],
)
async def test_arguments_of_a_wrong_kind_are_refused(tools: Tools, tool: str, arguments: dict[str, Any]) -> None:
    await tools.ok("graph_create", spec=keep())
    run = await tools.ended("keep")
    refusal = await tools.refused(tool, run_id=run["run_id"], **arguments)
    assert refusal["error_code"] == "INVALID_ARGUMENT"


async def test_cancel_ends_a_run_and_withdraws_its_approvals(tools: Tools) -> None:
    await tools.ok("graph_create", spec=gated())
    run_id = await tools.run("gated", {"draft": "hello"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    answer = await tools.ok("graph_run_cancel", run_id=run_id, reason="wrong question")
    assert answer == {
        "run_id": run_id, "status": "cancellation_requested", "reason": "wrong question",
        "effective_at_boundary": False, "terminal": False,
    }  # fmt: skip
    assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "cancelled"
    withdrawn = await tools.ok("graph_approval_list", run_id=run_id, status="withdrawn")
    assert len(withdrawn["approvals"]) == 1


async def test_cancel_closes_the_call_in_flight() -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo")
        await held.asked.wait()
        await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
        assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "cancelled"


async def test_cancel_of_a_run_that_has_ended_changes_nothing(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run = await tools.ended("keep")
    before = await tools.everything()
    answer = await tools.ok("graph_run_cancel", run_id=run["run_id"], reason="too late")
    assert (answer["status"], answer["terminal"]) == ("completed", True)
    assert await tools.everything() == before


async def test_cancel_of_an_unknown_run(tools: Tools) -> None:
    assert (await tools.refused("graph_run_cancel", run_id="run-none", reason="x"))["error_code"] == "RUN_NOT_FOUND"


async def test_runs_are_listed_newest_first_and_filtered(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    await tools.ok("graph_create", spec=gated())
    first = (await tools.ended("keep"))["run_id"]
    second = await tools.run("gated", {"draft": "x"}, thread_id="t")
    await tools.ok("graph_run_wait", run_id=second, until="waiting")
    data = await tools.ok("graph_run_list")
    assert set(data) == {"runs", "next_cursor", "truncated"}
    assert [row["run_id"] for row in data["runs"]] == [second, first]
    for filters in ({"status": "waiting"}, {"graph_id": "gated"}, {"thread_id": "t"}):
        assert [row["run_id"] for row in (await tools.ok("graph_run_list", **filters))["runs"]] == [second]
    page = await tools.ok("graph_run_list", limit=1)
    assert page["truncated"] is True
    rest = await tools.ok("graph_run_list", limit=1, cursor=page["next_cursor"])
    assert [row["run_id"] for row in rest["runs"]] == [first]


@pytest.mark.parametrize("arguments", [{"status": "finished"}, {"limit": 0}, {"limit": 201}, {"cursor": "x"}])
async def test_list_refuses(tools: Tools, arguments: dict[str, Any]) -> None:
    assert (await tools.refused("graph_run_list", **arguments))["error_code"] == "INVALID_ARGUMENT"


async def test_a_failed_run_tells_its_error_and_what_was_never_reached() -> None:
    error = {"code": "MODEL_REFUSED", "message": "no"}
    async with opened(ScriptedModel([], default=Reply(error=error))) as deps:
        tools = Tools(deps)
        spec = echo()
        spec["nodes"].append({"id": "after", "type": "passthrough"})
        spec["edges"] = [{"from": "say", "to": "after"}]
        await tools.ok("graph_create", spec=spec)
        run = await tools.ended("echo", "x")
        assert (run["status"], run["success"], run["error"]["code"]) == ("failed", False, "MODEL_REFUSED")
        assert run["skipped"] == ["after"]
        listed = await tools.ok("graph_run_list", status="failed")
        assert listed["runs"][0]["error"]["code"] == "MODEL_REFUSED"


async def test_MC08_answers_fit_whatever_the_state_holds_unless_a_person_asks() -> None:
    async with opened(ScriptedModel([], default=Reply(text="w" * 200_000))) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run = await tools.ended("echo", "x")
        for name, arguments in (
            ("graph_run_get", {"include_state": True}), ("graph_run_state", {}),
            ("graph_run_events", {"cursor": 3}), ("graph_run_wait", {}), ("graph_run_state", {"include_history": True}),
        ):  # fmt: skip
            envelope: Any = await tools.envelope(name, run_id=run["run_id"], **arguments)
            assert size(envelope) <= DEFAULTS.result_bytes, name
            assert "200000 characters in all" in str(envelope)
        whole: Any = await Tools(deps, Caller("cli")).ok("graph_run_get", run_id=run["run_id"])
        assert len(whole["final_state"]) == 200_000


async def test_a_start_whose_caller_leaves_is_finished_all_the_same(tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    for delay in range(20):
        call = asyncio.create_task(tools.envelope("graph_run_start", graph_id="echo", input="x"))
        for _ in range(delay):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await tools.ok("graph_run_wait", run_id=await tools.run("echo"))
    for row in (await tools.ok("graph_run_list"))["runs"]:
        assert (await tools.ok("graph_run_wait", run_id=row["run_id"]))["status"] == "completed"
