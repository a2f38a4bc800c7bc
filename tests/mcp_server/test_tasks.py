"""A run as a task of a client that knows tasks, message by message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult, Request, RequestParams, Result
from pydantic import Field

from agent_graph.app import open_app
from agent_graph.mcp_server.server import build
from agent_graph.mcp_server.tasks.serving import EXTENSION
from agent_graph.settings import load
from agent_graph.tools.deps import Deps
from tests.fakes.opened import Tools, opened
from tests.mcp_server.test_server import Held
from tests.mcp_server.wire import Wire, wired
from tests.tools.specs import echo, gated, keep

TASKS = {"extensions": {EXTENSION: {}}}
FORMS = {**TASKS, "elicitation": {"form": {}}}


@asynccontextmanager
async def asking(deps: Deps, capabilities: dict[str, Any] | None = None) -> AsyncIterator[Wire]:
    async with wired(deps, "auto") as wire:
        wire.capabilities = FORMS if capabilities is None else capabilities
        yield wire


async def executed(wire: Wire, **arguments: Any) -> Any:
    return (await wire.ask("tools/call", name="graph_execute", arguments=arguments))["result"]


async def got(wire: Wire, task_id: str) -> Any:
    return (await wire.ask("tasks/get", taskId=task_id))["result"]


async def until(wire: Wire, task_id: str, status: str) -> Any:
    """The task, asked for until it has this status."""
    while (task := await got(wire, task_id))["status"] != status:
        assert task["resultType"] == "complete"
        await asyncio.sleep(0)
    return task


async def test_a_call_that_would_wait_becomes_a_task_whose_id_is_the_runs() -> None:
    held = Held()
    async with opened(held.model) as deps, asking(deps) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        made = await executed(wire, graph_id="echo")
        assert made["resultType"] == "task"
        assert (made["status"], made["ttlMs"]) == ("working", None)
        assert made["pollIntervalMs"] > 0
        (run,) = (await tools.ok("graph_run_list"))["runs"]
        assert made["taskId"] == run["run_id"]
        task = await got(wire, run["run_id"])
        assert (task["resultType"], task["status"]) == ("complete", "working")
        assert task["createdAt"] == run["created_at"] <= task["lastUpdatedAt"]
        assert "result" not in task
        held.go.set()
        await tools.ok("graph_run_wait", run_id=run["run_id"])
        task = await got(wire, run["run_id"])
        assert task["status"] == "completed"
        result = task["result"]
        assert result["isError"] is False
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        data = result["structuredContent"]["data"]
        assert (data["status"], data["final_state"], data["terminal"], data["timed_out"]) == (
            "completed", "at last", True, False,
        )  # fmt: skip
        plain = (await tools.ok("graph_execute", graph_id="echo")).keys()
        assert data.keys() == plain, "the same as the call would have answered"


async def test_the_server_says_that_it_knows_tasks() -> None:
    async with opened() as deps, asking(deps) as wire:
        discovered = (await wire.ask("server/discover"))["result"]
        assert discovered["capabilities"]["extensions"][EXTENSION] == {}


@pytest.mark.parametrize("capabilities", [{}, {"extensions": {"io.example/other": {}}}, {"elicitation": {"form": {}}}])
async def test_a_client_that_did_not_declare_tasks_never_gets_one(capabilities: dict[str, Any]) -> None:
    async with opened() as deps, asking(deps, capabilities) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        result = await executed(wire, graph_id="echo")
        assert result["resultType"] == "complete"
        assert result["structuredContent"]["data"]["status"] == "completed"
        run_id = result["structuredContent"]["run_id"]
        before = await tools.everything()
        for method, more in (("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})):
            error = (await wire.ask(method, taskId=run_id, **more))["error"]
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        assert await tools.everything() == before


async def test_older_revisions_have_no_tasks() -> None:
    async with opened() as deps, wired(deps, "legacy") as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=keep())
        run_id = await tools.run("keep")
        assert (await wire.ask("tasks/get", taskId=run_id))["error"]["code"] == -32601
        result = await executed(wire, graph_id="keep")
        assert result["structuredContent"]["data"]["terminal"] is True


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"graph_id": "nobody"}, "GRAPH_NOT_FOUND"), ({}, "INVALID_ARGUMENT"), ({"graph": "x"}, "UNKNOWN_ARGUMENT"),
     ({"graph_id": "echo", "mode": "later"}, "INVALID_ARGUMENT")],
)  # fmt: skip
async def test_a_call_that_is_refused_is_no_task(arguments: dict[str, Any], code: str) -> None:
    async with opened() as deps, asking(deps) as wire:
        await Tools(deps).ok("graph_create", spec=echo())
        result = await executed(wire, **arguments)
        assert (result["resultType"], result["isError"]) == ("complete", True)
        assert result["structuredContent"]["error_code"] == code
        assert await deps.store.runs.counts() == {}


@pytest.mark.parametrize("arguments", [{"mode": "async"}, {"dry_run": True}])
async def test_a_call_that_answers_at_once_is_no_task(arguments: dict[str, Any]) -> None:
    async with opened() as deps, asking(deps) as wire:
        await Tools(deps).ok("graph_create", spec=keep())
        assert (await executed(wire, graph_id="keep", **arguments))["resultType"] == "complete"


async def test_the_same_key_is_the_same_task() -> None:
    async with opened() as deps, asking(deps) as wire:
        await Tools(deps).ok("graph_create", spec=keep())
        first = await executed(wire, graph_id="keep", idempotency_key="k")
        again = await executed(wire, graph_id="keep", idempotency_key="k")
        assert (again["resultType"], again["taskId"]) == ("task", first["taskId"])
        assert await deps.store.runs.counts() == {"completed": 1}


@pytest.mark.parametrize("tasks_first", [True, False])
async def test_the_same_key_is_the_same_run_for_a_client_that_knows_tasks_and_one_that_does_not(
    tasks_first: bool,
) -> None:
    async with opened() as deps, asking(deps) as wire:
        await Tools(deps).ok("graph_create", spec=keep())
        seen = set()
        for knows in (tasks_first, not tasks_first):
            wire.capabilities = FORMS if knows else {}
            result = await executed(wire, graph_id="keep", idempotency_key="k")
            seen.add(result["taskId"] if knows else result["structuredContent"]["run_id"])
        assert len(seen) == 1
        assert await deps.store.runs.counts() == {"completed": 1}


async def test_an_approval_is_a_question_to_the_human_and_the_answer_a_vote() -> None:
    async with opened() as deps, asking(deps) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated(allowed_decisions=["approve", "reject"]))
        task_id = (await executed(wire, graph_id="gated", input={"draft": "Dear {Dana}"}))["taskId"]
        task = await until(wire, task_id, "input_required")
        ((key, question),) = task["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        assert question["params"]["mode"] == "form"
        assert question["params"]["message"].startswith("May this be sent?\n\nDear {Dana}\n\n(sha256:")
        schema = question["params"]["requestedSchema"]
        assert schema["properties"]["decision"]["enum"] == ["approve", "reject"]
        assert schema["required"] == ["decision", "decided_by"]
        assert await got(wire, task_id) == task, "asked again until it is answered"

        ignored = {"nobody#0": {"action": "accept", "content": {"decision": "approve", "decided_by": "Eve"}},
                   key: {"action": "decline"}}  # fmt: skip
        assert (await wire.ask("tasks/update", taskId=task_id, inputResponses=ignored))["result"]["resultType"] == (
            "complete"
        )
        assert (await got(wire, task_id))["inputRequests"] == task["inputRequests"]

        said = {
            key: {"action": "accept", "content": {"decision": "approve", "decided_by": "Ada", "decision_note": "ok"}}
        }
        await wire.ask("tasks/update", taskId=task_id, inputResponses=said)
        done = await until(wire, task_id, "completed")
        assert done["result"]["structuredContent"]["data"]["status"] == "completed"
        (approval,) = (await tools.ok("graph_approval_list", status="all"))["approvals"]
        (voted,) = approval["votes"]
        assert (voted["decision"], voted["decided_by"], voted["decision_note"], voted["via"]) == (
            "approve", "Ada", "ok", "elicitation",
        )  # fmt: skip
        again = {key: {"action": "accept", "content": {"decision": "reject", "decided_by": "Bob"}}}
        assert "result" in await wire.ask("tasks/update", taskId=task_id, inputResponses=again), "answered before"
        assert (await tools.ok("graph_approval_list", status="all"))["approvals"] == [approval]


@pytest.mark.parametrize(
    "content", [{}, {"decision": "approve"}, {"decision": "perhaps", "decided_by": "Ada"}, "approve", None]
)
async def test_an_answer_that_is_none_is_refused_and_decides_nothing(content: Any) -> None:
    async with opened() as deps, asking(deps) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated())
        task_id = (await executed(wire, graph_id="gated", input={"draft": "x"}))["taskId"]
        task = await until(wire, task_id, "input_required")
        before = await tools.everything()
        (key,) = task["inputRequests"]
        said = {key: {"action": "accept", "content": content}}
        error = (await wire.ask("tasks/update", taskId=task_id, inputResponses=said))["error"]
        assert (error["code"], error["data"]["key"]) == (-32602, key)
        assert error["data"]["error_code"] == "INVALID_ARGUMENT"
        assert await tools.everything() == before


@pytest.mark.parametrize(("capabilities", "draft"), [(TASKS, "x"), (FORMS, "x" * 30_000)], ids=["no form", "too long"])
async def test_where_the_human_cannot_be_asked_the_task_says_what_to_call(capabilities: Any, draft: str) -> None:
    async with opened() as deps, asking(deps, capabilities) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated())
        task_id = (await executed(wire, graph_id="gated", input={"draft": draft}))["taskId"]
        await tools.ok("graph_run_wait", run_id=task_id, until="waiting")
        task = await got(wire, task_id)
        (approval,) = (await tools.ok("graph_approval_list"))["approvals"]
        assert task["status"] == "working"
        assert approval["approval_id"] in task["statusMessage"]
        assert "graph_approval_decide" in task["statusMessage"]
        assert "inputRequests" not in task


async def test_a_run_that_waits_for_a_message_says_so() -> None:
    spec = {
        "spec_version": "2", "name": "paid", "entry": "paid",
        "nodes": [{"id": "paid", "type": "signal", "config": {"output_key": "paid"}}], "edges": [],
    }  # fmt: skip
    async with opened() as deps, asking(deps) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=spec)
        task_id = (await executed(wire, graph_id="paid"))["taskId"]
        await tools.ok("graph_run_wait", run_id=task_id, until="waiting")
        task = await got(wire, task_id)
        assert (task["status"], task["statusMessage"]) == (
            "working", "the run is waiting; it waits for the message 'paid' (graph_run_signal)",
        )  # fmt: skip


async def test_a_failed_run_is_a_completed_task_whose_result_says_so() -> None:
    async with opened() as deps, asking(deps) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo(prompt="{no.such.value}"))
        task_id = (await executed(wire, graph_id="echo"))["taskId"]
        task = await until(wire, task_id, "completed")
        assert task["result"]["structuredContent"]["data"]["status"] == "failed"
        assert task["result"]["structuredContent"]["data"]["error"]["code"] == "PROMPT_VALUE_MISSING"


async def test_cancelling_a_task_cancels_the_run() -> None:
    held = Held()
    async with opened(held.model) as deps, asking(deps) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        task_id = (await executed(wire, graph_id="echo"))["taskId"]
        assert (await wire.ask("tasks/cancel", taskId=task_id))["result"]["resultType"] == "complete"
        task = await until(wire, task_id, "cancelled")
        assert "result" not in task
        assert (await tools.ok("graph_run_get", run_id=task_id))["status"] == "cancelled"
        assert "result" in await wire.ask("tasks/cancel", taskId=task_id), "a task that has ended is left as it is"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("task_id", ["run-none", "", "x" * 500])
async def test_an_unknown_task_is_an_error(method: str, task_id: str) -> None:
    async with opened() as deps, asking(deps) as wire:
        more = {"inputResponses": {}} if method == "tasks/update" else {}
        error = (await wire.ask(method, taskId=task_id, **more))["error"]
        assert (error["code"], error["data"]["taskId"]) == (-32602, task_id)


async def test_a_client_is_told_of_a_task_it_follows() -> None:
    held = Held()
    async with opened(held.model) as deps, asking(deps) as wire:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        task_id = (await executed(wire, graph_id="echo"))["taskId"]
        await wire.send("subscriptions/listen", 5, notifications={"taskIds": [task_id, "run-none"]})
        acknowledged = await wire.next()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"taskIds": [task_id]}
        held.go.set()
        while True:
            told = await wire.next()
            assert told["method"] == "notifications/tasks"
            assert told["params"].pop("_meta") == {"io.modelcontextprotocol/subscriptionId": 5}
            if told["params"]["status"] == "completed":
                break
        task = await got(wire, task_id)
        assert told["params"].pop("result")["structuredContent"] == task.pop("result")["structuredContent"]
        assert told["params"] == {name: task[name] for name in task if name not in ("resultType", "_meta")}
        await wire.send("notifications/cancelled", requestId=5)


async def test_only_a_client_that_declared_tasks_can_follow_them() -> None:
    async with opened() as deps, asking(deps, {}) as wire:
        error = (await wire.ask("subscriptions/listen", notifications={"taskIds": ["run-x"]}))["error"]
        assert error["code"] == -32021
        assert deps.supervisor.shell.notify.listeners == ()


async def test_a_task_is_there_after_a_restart_and_for_every_client(script: Path, tmp_path: Path) -> None:
    settings = load({"data_dir": str(tmp_path / "data")}, environ={"AGENT_GRAPH_SCRIPT": str(script)})
    async with open_app(settings) as deps, asking(deps) as wire:
        await Tools(deps).ok("graph_create", spec=gated())
        task_id = (await executed(wire, graph_id="gated", input={"draft": "x"}))["taskId"]
        before = await until(wire, task_id, "input_required")
    async with open_app(settings, recover=True) as deps, asking(deps) as wire:
        after = await until(wire, task_id, "input_required")
        assert (after["inputRequests"], after["createdAt"]) == (before["inputRequests"], before["createdAt"])
        (key,) = before["inputRequests"]
        said = {key: {"action": "accept", "content": {"decision": "approve", "decided_by": "Ada"}}}
        await wire.ask("tasks/update", taskId=task_id, inputResponses=said)
        await until(wire, task_id, "completed")


async def test_the_sdks_client_takes_a_task_and_finishes_it() -> None:
    class Task(Result):
        result_type: Literal["task"] = Field(default="task", alias="resultType")
        task_id: str = Field(alias="taskId")

    class Get(RequestParams):
        task_id: str

    class GetTask(Request[Get, Literal["tasks/get"]]):
        method: Literal["tasks/get"] = "tasks/get"
        params: Get

    class Got(Result):
        status: str
        result: Any = None

    async def resolve(task: Task, context: ClaimContext) -> CallToolResult:
        while True:
            found = await context.session.send_request(GetTask(params=Get(task_id=task.task_id)), Got)
            if found.status == "completed":
                return CallToolResult.model_validate(found.result)
            await asyncio.sleep(0)

    class Knows(ClientExtension):
        identifier = EXTENSION

        def claims(self) -> Any:
            return [ResultClaim(result_type="task", model=Task, resolve=resolve)]

    async with opened() as deps, Client(build(deps), extensions=[Knows()]) as client:
        await Tools(deps).ok("graph_create", spec=echo())
        result = await client.call_tool("graph_execute", {"graph_id": "echo"})
        assert result.structured_content["data"]["final_state"] == "Looks sound."
