"""The approval tools: list, get, decide."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.run import Run
from agent_graph.engine.commands import Decide
from agent_graph.engine.rows import approval_row
from agent_graph.store.base import Answered
from agent_graph.tools import pages, views
from agent_graph.tools.params import Cursor, Key, Params
from agent_graph.tools.registry import Call, tool

ApprovalId = Annotated[str, Field(min_length=1, max_length=100, description="Id of an approval.")]


class ListParams(Params):
    run_id: Annotated[str, Field(max_length=100, description="Only approvals of this run.")] = ""
    status: Annotated[
        Literal["pending", "approved", "rejected", "changes_requested", "expired", "withdrawn", "all"],
        Field(description="Only approvals with this status."),
    ] = "pending"
    audience: Annotated[str, Field(max_length=200, description="Only approvals that name this audience.")] = ""
    limit: Annotated[int, Field(ge=1, le=200, description="Rows of one page.")] = 100
    cursor: Cursor = ""


@tool(
    "graph_approval_list", ListParams, title="List approvals", scope="runs:read", read_only=True, idempotent=True,
    description="""What waits for a person's decision (or was decided), oldest first, with the prompt and exactly what
    will happen if approved. Show these to your human. Example: {"status": "pending"}""",
)  # fmt: skip
async def graph_approval_list(call: Call[ListParams]) -> JsonObject:
    args, deps = call.args, call.deps
    statuses = () if args.status == "all" else (args.status,)
    rows, cursor = await pages.page(
        lambda limit: deps.store.approvals.list(
            run_id=args.run_id, statuses=statuses, audience=args.audience, now_ms=deps.clock.now_ms(), limit=limit,
            cursor=args.cursor or None,
        ),
        views.approval, limit=args.limit, limits=deps.limits,
    )  # fmt: skip
    return {"approvals": rows, "next_cursor": cursor, "truncated": cursor is not None}


class GetParams(Params):
    approval_id: ApprovalId


@tool(
    "graph_approval_get", GetParams, title="Get an approval", scope="runs:read", read_only=True, idempotent=True,
    description="""One approval: prompt, subject (exactly what will happen if approved) and its digest, votes, status.
    Example: {"approval_id": "apr-..."}""",
)  # fmt: skip
async def graph_approval_get(call: Call[GetParams]) -> JsonObject:
    row = await call.deps.store.approvals.get(call.args.approval_id, now_ms=call.deps.clock.now_ms())
    return {"approval": views.approval(row)}


class DecideParams(Params):
    approval_id: ApprovalId
    decision: Annotated[
        Literal["approve", "reject", "request_changes"], Field(description="One of the approval's allowed_decisions.")
    ]
    decided_by: Annotated[str, Field(min_length=1, max_length=200, description="The person whose decision this is.")]
    decision_note: Annotated[str, Field(max_length=10_000, description="Why, or what to change.")] = ""
    idempotency_key: Key = ""


@tool(
    "graph_approval_decide", DecideParams, title="Decide an approval", scope="approvals:decide", destructive=True,
    description="""Record a person's decision on a pending approval; the run goes on at once. Relay your human's word,
    never decide yourself. The first decision counts, later ones are refused and change nothing. Example:
    {"approval_id": "apr-...", "decision": "approve", "decided_by": "Ada"}""",
)  # fmt: skip
async def graph_approval_decide(call: Call[DecideParams]) -> JsonObject:
    args, deps = call.args, call.deps
    row = await deps.store.approvals.get(args.approval_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)

    def view(run: Run) -> JsonObject:
        gate = approval_row(graph, run, run.gates[args.approval_id])
        return {
            "run_id": run.run_id,
            "approval": views.approval(gate),
            "run": {"run_id": run.run_id, "status": run.status},
        }

    said: list[JsonObject] = []

    def answered(run: Run) -> Answered | None:  # called before the run moves on: a repeated call is told the same
        said.append(view(run))
        return call.answered(said[-1], run_id=run.run_id)

    command = Decide(args.approval_id, args.decision, args.decision_note, args.decided_by, call.caller.via, answered,
                     call.caller.principal)  # fmt: skip
    await deps.supervisor.ask(row.run_id, command)
    return said[-1]
