"""`graph_approval_request`: a gate of one's own, placed before a node of a run that is under way."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from agent_graph.core import barriers
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.run import Run
from agent_graph.engine.commands import PlaceGate
from agent_graph.errors import RunTerminal
from agent_graph.store.base import TERMINAL, Answered
from agent_graph.tools.params import Key, Params, RunId
from agent_graph.tools.registry import Call, tool

WEEK_MS = 7 * 86_400_000
YEAR_MS = 366 * 86_400_000


Decision: TypeAlias = Literal["approve", "reject"]
BOTH: Final[tuple[Decision, ...]] = ("approve", "reject")


class RequestParams(Params):
    run_id: RunId
    at: Annotated[str, Field(min_length=1, max_length=64, description="Id of the node that is to wait.")]
    prompt: Annotated[str, Field(min_length=1, max_length=10_000, description="What the person is asked.")]
    audience: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=20, description="For whom it is.")
    ] = Field(default_factory=list)
    allowed_decisions: Annotated[
        list[Decision], Field(min_length=1, max_length=2, description="What they can choose.")
    ] = Field(default_factory=lambda: [*BOTH])
    expiry_ms: Annotated[int, Field(ge=1, le=YEAR_MS, description="How long it waits for a decision.")] = WEEK_MS
    idempotency_key: Key = ""


@tool(
    "graph_approval_request", RequestParams, title="Put a gate before a node", scope="runs:write",
    description="""Have a live run ask a person before a node: each run of that node which has not begun waits for a
    decision (graph_approval_list shows it once the run is there), then begins or fails with APPROVAL_REJECTED. What has
    begun goes on. Use it when your human wants to look before a step. Example: {"run_id": "run-...", "at": "gate",
    "prompt": "May it go on?"}""",
)  # fmt: skip
async def graph_approval_request(call: Call[RequestParams]) -> JsonObject:
    args, deps = call.args, call.deps
    row = await deps.store.runs.get(args.run_id)
    if row.status in TERMINAL:
        raise RunTerminal(f"run {args.run_id} has {row.status}; nothing begins there any more", status=row.status)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    said: list[JsonObject] = []

    def answered(run: Run) -> Answered | None:
        said.append({
            "run_id": run.run_id, "at": args.at, "stopped": [*barriers.barred(run, args.at)],
            "run": {"run_id": run.run_id, "status": run.status},
        })  # fmt: skip
        return call.answered(said[-1], run_id=run.run_id)

    command = PlaceGate(
        graph, args.at, args.prompt, args.expiry_ms, tuple(args.audience), tuple(args.allowed_decisions),
        call.caller.principal or call.caller.client, call.caller.via, answered,
    )  # fmt: skip
    await deps.supervisor.ask(args.run_id, command)
    return said[-1]
