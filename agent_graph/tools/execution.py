"""`graph_execute`: a start and a bounded wait in one call."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.store.base import TERMINAL
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.runs import StartParams, result_in_parts, started, told
from agent_graph.tools.waiting import see


class ExecuteParams(StartParams):
    mode: Annotated[
        Literal["sync", "async"],
        Field(description="sync waits for the end, 45 s at most; async answers at once, as graph_run_start does."),
    ] = "sync"


async def _again(call: Call[ExecuteParams], earlier: JsonObject) -> JsonObject:
    """The same run once more: who repeats a call whose answer was lost wants the result."""
    return earlier if call.args.mode == "async" else await _seen_through(call, str(earlier["run_id"]))


@tool(
    "graph_execute", ExecuteParams, title="Start a run and wait for it", scope="runs:write", open_world=True,
    again=_again, manner=("mode",), cancellable=True,
    description="""Start a run of a stored graph and wait up to 45 s for its result: for short graphs. What takes
    longer goes on by itself: timed_out true comes with the run_id, go on with graph_run_wait, do not start it anew. A
    run that waits for a person is answered at once, with its pending approvals. Example: {"graph_id": "my_council",
    "input": "Should we adopt a monorepo?"}""",
)  # fmt: skip
async def graph_execute(call: Call[ExecuteParams]) -> JsonObject:
    answer = await started(call)
    if call.args.mode == "async" or call.args.dry_run:
        return answer
    return await _seen_through(call, str(answer["run_id"]))


async def _seen_through(call: Call[ExecuteParams], run_id: str) -> JsonObject:
    """The run as `graph_run_get` has it, when it has ended, needs somebody, or the time is over."""
    limit_ms = call.deps.limits.wait_ms
    seen = await see(call, run_id, until="waiting", timeout_ms=limit_ms)
    body = result_in_parts(call, await told(call.deps, run_id))
    return {**body, "terminal": body["status"] in TERMINAL, "timed_out": seen.timed_out}
