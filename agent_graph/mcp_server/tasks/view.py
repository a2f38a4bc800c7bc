"""A run as a task: made of what the tools answer, so that a client sees of a task what it may see of the run."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.mcp_server.answers import answer
from agent_graph.mcp_server.faults import protocol_error
from agent_graph.mcp_server.tasks.asking import may_answer, questions
from agent_graph.tools import registry, views
from agent_graph.tools.deps import Caller, Deps

POLL_MS: Final = 1_000
"""How often a client should ask."""
Status: TypeAlias = Literal["working", "input_required", "completed", "cancelled"]
"""Of a task. ``failed`` is for faults of the protocol alone: a run that failed is a completed task whose result says
so."""
ENDED: Final[dict[str, Status]] = {"completed": "completed", "failed": "completed", "cancelled": "cancelled"}


async def bare(deps: Deps, run_id: str, *, caller: Caller) -> JsonObject:
    """The task without what only some states have. Raises `MCPError` where there is no such run for this caller."""
    row = await _data(deps, "graph_status", {"resource": "run", "run_id": run_id}, caller)
    status: Status = ENDED.get(row["status"], "working")
    return {
        "taskId": run_id, "status": status, "statusMessage": f"the run is {row['status']}",
        "createdAt": row["created_at"], "lastUpdatedAt": row["finished_at"] or await _moved(deps, row, caller),
        "ttlMs": None, "pollIntervalMs": POLL_MS,
    }  # fmt: skip


async def detailed(deps: Deps, run_id: str, *, caller: Caller, asks: bool) -> JsonObject:
    """The task whole: with its result, or with what it waits for. With `asks` the client can put a form before its
    human."""
    run = await _data(deps, "graph_run_get", {"run_id": run_id}, caller)
    body = await bare(deps, run_id, caller=caller)
    if body["status"] == "completed":
        return {**body, "result": _result(run)}
    if body["status"] == "working":
        pending = [one for one in run["pending_approvals"] if asks and await may_answer(deps, one, caller)]
        asked = questions(pending)
        body["statusMessage"] = _words(run)
        if asked:
            return {**body, "status": "input_required", "inputRequests": asked}
    return body


def _result(run: Any) -> JsonObject:
    """What the call that made the task would have answered, had it waited as long."""
    result = answer(registry.success({**run, "terminal": True, "timed_out": False}))
    body: JsonObject = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return body


def _words(run: Any) -> str:
    """Where the run is, and what somebody has to do so that it goes on."""
    waits = []
    for one in run["waiting_for"]:
        match one["kind"]:
            case "approval":
                waits.append(f"a decision about {one['approval_id']} (graph_approval_get, graph_approval_decide)")
            case "signal":
                waits.append(f"the message {one['name']!r} (graph_run_signal)")
            case _:
                waits.append(f"the clock, until {views.rfc3339(one['due_at_ms'])}")
    said = f"the run is {run['status']}"
    if run.get("error"):
        said += f": {run['error'].get('message', '')}"
    return f"{said}; it waits for {', '.join(waits)}" if waits else said


async def _moved(deps: Deps, row: Any, caller: Caller) -> str:
    """When the run last moved."""
    run_id = row["run_id"]
    count = (await _data(deps, "graph_status", {"resource": "events", "run_id": run_id}, caller))["events"]
    page = await _data(deps, "graph_run_events", {"run_id": run_id, "cursor": max(0, count - 1)}, caller)
    last = [event["at_ms"] for event in page["events"]]
    return views.rfc3339(last[-1]) or "" if last else str(row["created_at"])


async def _data(deps: Deps, tool: str, given: JsonObject, caller: Caller) -> Any:
    envelope = await registry.call(deps, tool, given, caller=caller)
    if not envelope["ok"]:
        raise protocol_error(envelope, taskId=str(given["run_id"]))
    return envelope["data"]
