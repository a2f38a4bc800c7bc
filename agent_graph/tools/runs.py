"""The run tools: start, wait, get, list, cancel, resume."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field

from agent_graph.core.budgets import check
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.outcome import errors as handled_errors
from agent_graph.core.outcome import state
from agent_graph.core.run import Run
from agent_graph.engine.commands import Cancel, Resume
from agent_graph.errors import RunTerminal, StoreCorrupt
from agent_graph.store.base import TERMINAL, Answered, ApprovalRow, RunRow, RunStatus
from agent_graph.tools import pages, views
from agent_graph.tools.deps import Deps, local_user
from agent_graph.tools.history import event_page
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
from agent_graph.tools.policy import hold
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.signals import is_for_the_clock, waiting_for

PROGRESS_S = 10.0
"""Seconds between two signs of life while a call waits, at most."""
PAUSE_MS = 250
"""Milliseconds between two of them, at least."""


class StartParams(Params):
    graph_id: GraphId
    input: InputParam = ""
    graph_version: GraphVersion = ""
    thread_id: Annotated[str, Field(max_length=200, description="Your own name for related runs.")] = ""
    model: Annotated[str, Field(max_length=200, description="Model for nodes that name none.")] = ""
    budgets: BudgetsParam = Field(default_factory=lambda: None)  # null as a default is what some clients drop
    idempotency_key: Key = ""


@tool(
    "graph_run_start", StartParams, title="Start a run", open_world=True,
    description="""Start a run of a stored graph and answer its run_id at once; the run goes on by itself. Follow it
    with graph_run_wait, never by calling graph_run_get in a loop. Example: {"graph_id": "my_council", "input": "Should
    we adopt a monorepo?"}""",
)  # fmt: skip
async def graph_run_start(call: Call[StartParams]) -> JsonObject:
    args, deps = call.args, call.deps
    budgets = None if args.budgets is None else check(parsed_object(args.budgets, deps.limits))
    graph = await deps.catalog.get(args.graph_id, args.graph_version or None)
    value = parsed_object(args.input, deps.limits)
    held, policy = hold(deps, call.caller, graph, value, model=args.model, budgets=budgets)

    def answer(row: RunRow) -> Answered:
        return Answered(call.key, call.request_digest, _accepted(row, policy), row.run_id)

    row = await deps.supervisor.start(
        graph, value, thread_id=args.thread_id, model=args.model,
        started_by=call.caller.client, principal=call.caller.principal,
        started_as="" if call.caller.principal else local_user(), budgets=held, policy=policy,
        answer=answer if call.key else None, key=call.key,
    )  # fmt: skip
    return _accepted(row, policy)


def _accepted(row: RunRow, policy: JsonObject) -> JsonObject:
    return {
        "run_id": row.run_id, "status": "accepted", "graph_id": row.graph_id, "graph_version": row.graph_version,
        "thread_id": row.thread_id, **({"policy": policy} if policy else {}),
    }  # fmt: skip


class WaitParams(Params):
    run_id: RunId
    timeout_ms: Annotated[int, Field(ge=0, description="How long to wait at most; more than 45000 is 45000.")] = 30_000
    poll_interval_ms: Annotated[int, Field(description="Accepted for older clients; waking is by event.")] = 500
    until: Annotated[
        Literal["terminal", "waiting", "event"],
        Field(description="Answer when the run has ended, or waits for a person, or at the next event."),
    ] = "terminal"
    cursor: Annotated[int, Field(ge=0, description="Events from this seq on come with the answer.")] = 0


@tool(
    "graph_run_wait", WaitParams, title="Wait for a run", read_only=True, idempotent=True,
    description="""Wait up to 45 s for a run to end (until terminal), to end or need a person (waiting) or to move
    (event); answers the run, whom it waits for (run.waiting_for) and its new events. Use waiting where the graph has
    gates: terminal waits on while nobody decides. timed_out true means: call again with next_cursor. Status
    interrupted means that nothing moves the run now; its error says why. A wait never touches the run. Example:
    {"run_id": "run-...", "until": "waiting"}""",
)  # fmt: skip
async def graph_run_wait(call: Call[WaitParams]) -> JsonObject:
    args, deps = call.args, call.deps
    timeout_ms = min(args.timeout_ms, deps.limits.wait_ms)

    def reached(row: RunRow) -> bool:
        if row.status in TERMINAL or (args.until == "event" and row.seq > args.cursor):
            return True
        if row.status == "interrupted":  # and nobody moves it: waiting on would be in vain
            return not deps.supervisor.drives(args.run_id)
        return args.until == "waiting" and row.status == "waiting" and row.seq not in by_itself

    by_itself: set[int] = set()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    while True:
        left_ms = max(0, int((deadline - loop.time()) * 1000))
        row = await _wait(call, reached, left_ms)
        pending = await _pending(deps, args.run_id)
        if args.until != "waiting" or not reached(row) or not await is_for_the_clock(deps, row, pending):
            break
        by_itself.add(row.seq)
        if loop.time() >= deadline:
            break
    events, following = await event_page(
        deps, args.run_id, cursor=args.cursor, limit=100, max_bytes=deps.limits.result_bytes * 2 // 5
    )
    timed_out = not reached(row)
    body = views.run(row, storage=deps.store.storage, now_ms=deps.clock.now_ms())
    body["waiting_for"] = await waiting_for(deps, row, pending)
    return {
        "run_id": row.run_id, "run": body,
        "terminal": row.status in TERMINAL, "timed_out": timed_out, "status": "timeout" if timed_out else row.status,
        "events": list(events), "next_cursor": following,
    }  # fmt: skip


async def _wait(call: Call[WaitParams], reached: Any, timeout_ms: int) -> RunRow:
    """Wait for it; a client that wants to know is told how far the run is, when it moves and as a sign of life."""
    wait, run_id, tell = call.deps.supervisor.wait, call.args.run_id, call.caller.progress
    if tell is None:
        return await wait(run_id, timeout_ms=timeout_ms, until=reached)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    told, seen = 0, 0

    def moved(row: RunRow) -> bool:
        return reached(row) or row.seq > seen

    while True:
        stretch_ms = int(max(0.0, min(deadline - loop.time(), PROGRESS_S)) * 1000)
        row = await wait(run_id, timeout_ms=stretch_ms, until=moved)
        if reached(row) or loop.time() >= deadline:
            return row
        told, seen = max(told + 1, row.seq), row.seq
        await tell(told, f"run {row.status}: {row.seq} events so far")
        row = await wait(run_id, timeout_ms=min(stretch_ms, PAUSE_MS), until=reached)
        if reached(row):
            return row


class GetParams(Params):
    run_id: RunId
    include_state: Annotated[bool, Field(description="Also the whole state object.")] = False
    include_approvals: Annotated[bool, Field(description="Also the approvals that wait for a decision.")] = True


@tool(
    "graph_run_get", GetParams, title="Get a run", read_only=True, idempotent=True,
    description="""One run: status, times, usage, error, pending approvals, what it waits for; once it has ended, its
    result, and in errors by node what failed while it went on. To wait for the end use graph_run_wait. Example:
    {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_get(call: Call[GetParams]) -> JsonObject:
    args, deps = call.args, call.deps
    row = await deps.store.runs.get(args.run_id)
    body = views.run(row, storage=deps.store.storage, now_ms=deps.clock.now_ms())
    pending = await _pending(deps, args.run_id)
    if args.include_approvals:
        body["pending_approvals"] = [views.approval(gate) for gate in pending]
    body["waiting_for"] = await waiting_for(deps, row, pending)
    folds = not row.first_seq  # of a pruned run, neither the state nor who was never reached can be told
    if folds and (args.include_state or row.status in TERMINAL):
        try:
            graph, run = await deps.supervisor.fold(args.run_id)
        except StoreCorrupt as damage:
            if args.include_state:
                raise
            return {**body, "damaged": damage.message}
        if row.status in TERMINAL and run.frame is not None:
            body["skipped"] = [node.id for node in graph.nodes if node.index not in run.frame.nth]
        if errors := handled_errors(run):
            body["errors"] = errors
        if args.include_state:
            body["state"] = state(run)
    return body


async def _pending(deps: Deps, run_id: str) -> tuple[ApprovalRow, ...]:
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
    "graph_run_list", ListParams, title="List runs", read_only=True, idempotent=True,
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
    "graph_run_cancel", CancelParams, title="Cancel a run", destructive=True, idempotent=True,
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


async def resume(call: Call[Any], run_id: str) -> JsonObject:
    """Drive an interrupted run on; the command line's `resume` (the tool comes with the whole contract)."""
    row = await call.deps.store.runs.get(run_id)
    if row.status in TERMINAL:
        raise RunTerminal(f"run {run_id} has {row.status}; what is consumed is consumed", run_id=run_id)
    await call.deps.supervisor.ask(run_id, Resume())
    return {"run_id": run_id, "resumed": row.status == "interrupted"}
