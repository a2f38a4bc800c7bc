"""The run tools: start, get, list, cancel."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from agent_graph.core.budgets import check
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.outcome import errors as handled_errors
from agent_graph.core.outcome import state
from agent_graph.core.run import Run
from agent_graph.engine.commands import Cancel
from agent_graph.errors import CapabilityMissing, StoreCorrupt
from agent_graph.store.base import TERMINAL, Answered, ApprovalRow, RunRow, RunStatus
from agent_graph.tools import pages, views
from agent_graph.tools.deps import Deps, local_user
from agent_graph.tools.params import (
    BudgetsParam,
    Cursor,
    GraphId,
    GraphVersion,
    InputParam,
    Key,
    Limit,
    Params,
    RunId,
    parsed_object,
)
from agent_graph.tools.parts import Offset, part
from agent_graph.tools.policy import forecast, hold
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.signals import waiting_for


class StartParams(Params):
    graph_id: GraphId
    input: InputParam = ""
    graph_version: GraphVersion = ""
    thread_id: Annotated[str, Field(max_length=200, description="Your own name for related runs.")] = ""
    model: Annotated[str, Field(max_length=200, description="Model for nodes that name none.")] = ""
    budgets: BudgetsParam = Field(default_factory=lambda: None)  # null as a default is what some clients drop
    executor: Annotated[
        Literal["server", "caller", "mixed"],
        Field(description="Who calls the models: server is this program; the others are not available yet."),
    ] = "server"
    dry_run: Annotated[bool, Field(description="Only say whether it could start, and what it would take.")] = False
    idempotency_key: Key = ""


@tool(
    "graph_run_start", StartParams, title="Start a run", scope="runs:write", open_world=True,
    description="""Start a run of a stored graph and answer its run_id at once; the run goes on by itself. Follow it
    with graph_run_wait, never by calling graph_run_get in a loop. Example: {"graph_id": "my_council", "input": "Should
    we adopt a monorepo?"}""",
)  # fmt: skip
async def graph_run_start(call: Call[StartParams]) -> JsonObject:
    return await started(call)


async def started(call: Call[Any]) -> JsonObject:
    """Start a run, or with `dry_run` check all that a start checks; `call` has the arguments of `StartParams`."""
    args, deps = call.args, call.deps
    if args.executor != "server":
        message = f"runs with executor {args.executor} are not available yet; leave it out, and the run goes on here"
        raise CapabilityMissing(message, argument="executor")
    budgets = None if args.budgets is None else check(parsed_object(args.budgets, deps.limits))
    graph = await deps.catalog.get(args.graph_id, args.graph_version or None)
    value = parsed_object(args.input, deps.limits)
    held, policy = hold(deps, call.caller, graph, value, model=args.model, budgets=budgets)

    if args.dry_run:
        return await _dry(call, graph, value, held=held, policy=policy)

    def answer(row: RunRow) -> Answered:
        return Answered(call.key, call.request_digest, _accepted(row, policy), row.run_id)

    row = await deps.supervisor.start(
        graph, value, thread_id=args.thread_id, model=args.model,
        started_by=call.caller.client, principal=call.caller.principal,
        started_as="" if call.caller.principal else local_user(), budgets=held, policy=policy,
        answer=answer if call.key else None, key=call.key,
    )  # fmt: skip
    return _accepted(row, policy)


async def _dry(
    call: Call[Any], graph: Graph, value: JsonValue, *, held: JsonObject | None, policy: JsonObject
) -> JsonObject:
    """What a start would have answered, without a run."""
    call.deps.supervisor.check(graph, value, budgets=held)
    call.deps.supervisor.check_capacity()
    return {
        "status": "dry_run", "graph_id": graph.name, "graph_version": graph.version, "thread_id": call.args.thread_id,
        "budgets": {**graph.budgets, **(held or {})}, "forecast": await forecast(call.deps, graph, held),
        **({"policy": policy} if policy else {}),
    }  # fmt: skip


def _accepted(row: RunRow, policy: JsonObject) -> JsonObject:
    return {
        "run_id": row.run_id, "status": "accepted", "graph_id": row.graph_id, "graph_version": row.graph_version,
        "thread_id": row.thread_id, **({"policy": policy} if policy else {}),
    }  # fmt: skip


class GetParams(Params):
    run_id: RunId
    include_state: Annotated[bool, Field(description="Also the whole state object.")] = False
    include_approvals: Annotated[bool, Field(description="Also the approvals that wait for a decision.")] = True
    offset: Offset = 0


@tool(
    "graph_run_get", GetParams, title="Get a run", scope="runs:read", read_only=True, idempotent=True,
    description="""One run: status, times, usage, error, pending approvals, what it waits for; once it has ended, its
    result (a long text in parts, by offset), and
    in errors by node what failed while it went on. To wait for the end use graph_run_wait. Example:
    {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_get(call: Call[GetParams]) -> JsonObject:
    args = call.args
    body = await told(
        call.deps, args.run_id, include_state=args.include_state, include_approvals=args.include_approvals
    )
    return result_in_parts(call, body, offset=args.offset)


def result_in_parts(call: Call[Any], body: JsonObject, *, offset: int = 0) -> JsonObject:
    """A run whose result, if that is a long text, begins at `offset`. Raises `InvalidArgument`."""
    if "final_state" not in body and not offset:
        return body
    return {**body, **part(call, body.get("final_state"), offset=offset, name="final_state")}


async def told(deps: Deps, run_id: str, *, include_state: bool = False, include_approvals: bool = True) -> JsonObject:
    """A run as `graph_run_get` answers it. Raises `RunNotFound`; with the state `StoreCorrupt`."""
    row = await deps.store.runs.get(run_id)
    body = views.run(row, storage=deps.store.storage, now_ms=deps.clock.now_ms())
    pending = await pending_of(deps, run_id)
    if include_approvals:
        body["pending_approvals"] = [views.approval(gate, console=deps.console) for gate in pending]
    body["waiting_for"] = await waiting_for(deps, row, pending)
    folds = not row.first_seq  # of a pruned run, neither the state nor who was never reached can be told
    if folds and (include_state or row.status in TERMINAL):
        try:
            graph, run = await deps.supervisor.fold(run_id)
        except StoreCorrupt as damage:
            if include_state:
                raise
            return {**body, "damaged": damage.message}
        if row.status in TERMINAL and run.frame is not None:
            body["skipped"] = [node.id for node in graph.nodes if node.index not in run.frame.nth]
        if errors := handled_errors(run):
            body["errors"] = errors
        if include_state:
            body["state"] = state(run)
    return body


async def pending_of(deps: Deps, run_id: str) -> tuple[ApprovalRow, ...]:
    """The approvals of a run that wait for a decision."""
    pending, _ = await deps.store.approvals.list(
        run_id=run_id, statuses=("pending",), now_ms=deps.clock.now_ms(), limit=deps.limits.page
    )
    return pending


class ListParams(Params):
    status: Annotated[
        Literal["", "accepted", "running", "waiting", "interrupted", "completed", "failed", "cancelled"],
        Field(description="Only runs with this status; empty = all."),
    ] = ""
    graph_id: Annotated[str, Field(max_length=64, description="Only runs of this graph.")] = ""
    thread_id: Annotated[str, Field(max_length=200, description="Only runs with this thread_id.")] = ""
    limit: Limit = 50
    cursor: Cursor = ""


@tool(
    "graph_run_list", ListParams, title="List runs", scope="runs:read", read_only=True, idempotent=True,
    description="""Runs, newest first, filtered by status, graph or thread. Example: {"status": "waiting"}""",
)  # fmt: skip
async def graph_run_list(call: Call[ListParams]) -> JsonObject:
    args = call.args
    statuses: tuple[RunStatus, ...] = (args.status,) if args.status else ()
    rows, cursor = await pages.page(
        lambda limit: call.deps.store.runs.list(
            statuses=statuses, graph_id=args.graph_id, thread_id=args.thread_id, limit=limit,
            cursor=args.cursor or None,
        ),
        views.run_row, limit=args.limit, limits=call.deps.limits,
    )  # fmt: skip
    return {"runs": rows, "next_cursor": cursor, "truncated": cursor is not None}


class CancelParams(Params):
    run_id: RunId
    reason: Annotated[str, Field(min_length=1, max_length=1000, description="Why; kept in the run's events.")]
    idempotency_key: Key = ""


@tool(
    "graph_run_cancel", CancelParams, title="Cancel a run", scope="runs:write", destructive=True, idempotent=True,
    description="""End a run: calls in flight are closed, pending approvals withdrawn, what was finished stays. A run
    that has ended is left as it is. Example: {"run_id": "run-...", "reason": "wrong question"}""",
)  # fmt: skip
async def graph_run_cancel(call: Call[CancelParams]) -> JsonObject:
    args, deps = call.args, call.deps
    row = await deps.store.runs.get(args.run_id)
    if row.status in TERMINAL:
        return _cancelled(args, str(row.status), terminal=True)

    def view(run: Run) -> JsonObject:
        ended = run.terminal and run.cancel_reason is None  # by itself, just before
        return _cancelled(args, run.status if ended else "cancellation_requested", terminal=ended)

    def answered(run: Run) -> Answered:
        return Answered(call.key, call.request_digest, view(run), run.run_id)

    try:
        return view(await deps.supervisor.ask(args.run_id, Cancel(args.reason, answered if call.key else None)))
    except StoreCorrupt as damage:  # nothing can follow what cannot be read; but it must not be in the way for ever
        body = _cancelled(args, "cancelled", terminal=True)
        await deps.supervisor.write_off(args.run_id, damage, args.reason, call.answered(body, run_id=args.run_id))
        return body


def _cancelled(args: CancelParams, status: str, *, terminal: bool) -> JsonObject:
    return {
        "run_id": args.run_id, "status": status, "reason": args.reason, "effective_at_boundary": False,
        "terminal": terminal,
    }  # fmt: skip
