"""The approval tools: list, get, decide."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from agent_graph.core.approval import Ballot
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.run import Run
from agent_graph.engine.commands import Decide
from agent_graph.engine.rows import approval_row
from agent_graph.errors import ApproverRequired, InvalidArgument
from agent_graph.store.base import Answered, ApprovalRow
from agent_graph.tools import pages, views
from agent_graph.tools.params import Cursor, Key, Params, PatchParam
from agent_graph.tools.registry import Call, tool

ApprovalId = Annotated[str, Field(min_length=1, max_length=100, description="Id of an approval.")]


class ListParams(Params):
    run_id: Annotated[str, Field(max_length=100, description="Only approvals of this run.")] = ""
    status: Annotated[
        Literal["pending", "approved", "rejected", "changes_requested", "expired", "withdrawn", "all"],
        Field(description="Only approvals with this status."),
    ] = "pending"
    graph_id: Annotated[str, Field(max_length=64, description="Only approvals of runs of this graph.")] = ""
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
            run_id=args.run_id, graph_id=args.graph_id, statuses=statuses, audience=args.audience,
            now_ms=deps.clock.now_ms(), limit=limit, cursor=args.cursor or None,
        ),
        partial(views.approval, console=deps.console), limit=args.limit, limits=deps.limits,
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
    return {"approval": views.approval(row, console=call.deps.console)}


class DecideParams(Params):
    approval_id: ApprovalId
    decision: Annotated[
        Literal["approve", "reject", "request_changes", "edit"],
        Field(description="One of the approval's allowed_decisions."),
    ]
    decided_by: Annotated[str, Field(min_length=1, max_length=200, description="The person whose decision this is.")]
    decision_note: Annotated[str, Field(max_length=10_000, description="Why, or what to change.")] = ""
    patch: PatchParam = Field(default_factory=list)
    subject_digest: Annotated[
        str, Field(max_length=100, description="Of the subject that was seen: refused when it has changed since.")
    ] = ""
    on_behalf_of: Annotated[
        str, Field(max_length=200, description="Who asked decided_by to decide in their place; a note, no second vote.")
    ] = ""
    idempotency_key: Key = ""


@tool(
    "graph_approval_decide", DecideParams, title="Decide an approval", scope="approvals:decide", destructive=True,
    description="""Record a person's vote on a pending approval; once it is decided the run goes on. Relay your human's
    word, never decide yourself. edit approves the subject with a JSON Patch applied. Where a gate takes no word of a
    model (APPROVAL_CHANNEL_NOT_ALLOWED) tell your human how_to_decide. Later decisions are refused and change nothing.
    Example: {"approval_id": "apr-...", "decision": "approve", "decided_by": "Ada"}""",
)  # fmt: skip
async def graph_approval_decide(call: Call[DecideParams]) -> JsonObject:
    args, deps = call.args, call.deps
    if args.patch and args.decision != "edit":
        raise InvalidArgument("a patch belongs to the decision edit", argument="patch")
    row = await deps.store.approvals.get(args.approval_id)
    await _check_person(call, row)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)

    def view(run: Run) -> JsonObject:
        gate = approval_row(graph, run, run.gates[args.approval_id])
        return {
            "run_id": run.run_id,
            "approval": views.approval(gate, console=deps.console),
            "run": {"run_id": run.run_id, "status": run.status},
        }

    said: list[JsonObject] = []

    def answered(run: Run) -> Answered | None:  # called before the run moves on: a repeated call is told the same
        said.append(view(run))
        return call.answered(said[-1], run_id=run.run_id)

    ballot = Ballot(
        args.decision, args.decided_by, call.caller.via, note=args.decision_note,
        principal=call.caller.principal or call.caller.approver, client=call.caller.client,
        on_behalf_of=args.on_behalf_of, patch=tuple(args.patch), subject_digest=args.subject_digest,
        console=deps.console,
    )  # fmt: skip
    await deps.supervisor.ask(row.run_id, Decide(args.approval_id, ballot, answered))
    return said[-1]


async def _check_person(call: Call[DecideParams], row: ApprovalRow) -> None:
    """At a gate that is closed to models a shell or a browser has to prove that a person is there: an assistant can
    have either. Where nobody has set up a secret they are trusted. Raises `ApproverRequired`, `StoreUnusable`."""
    caller = call.caller
    closed = bool(row.channels) and "assistant" not in row.channels
    if not closed or caller.via not in ("cli", "console") or caller.approver or row.status != "pending":
        return
    if names := await call.deps.approvers.names():
        message = (
            "this gate is closed to models, so an approver's secret has to come with the decision:"
            f" agent-graph approvals decide {row.approval_id} {call.args.decision} --approver NAME asks for it"
        )
        raise ApproverRequired(message, approval_id=row.approval_id, approvers=list(names))
