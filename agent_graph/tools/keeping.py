"""What the operator alone may do with stored runs: keep one from retention, take one out as a document, delete records.

The tools are in the toolset ``operator``, which no assistant is shown; the command line calls them, through the owner
of the data folder if that is another process.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from agent_graph import __version__
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.engine import retention
from agent_graph.errors import InvalidArgument, RunPruned, StoreCorrupt
from agent_graph.tools import views
from agent_graph.tools.params import Params, RunId
from agent_graph.tools.registry import Call, tool

OPERATOR = "operator"
FORMAT = "agent-graph-run/1"
PAGE = 1_000


class PinParams(Params):
    run_id: RunId
    pinned: Annotated[bool, Field(description="False lets retention have it again.")] = True


@tool(
    "graph_run_pin", PinParams, title="Pin a run", toolset=OPERATOR, idempotent=True,
    description="""Keep a run's record whatever the policy of retention says. Example: {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_pin(call: Call[PinParams]) -> JsonObject:
    args = call.args
    changed = await call.deps.store.runs.pin(args.run_id, pinned=args.pinned)
    return {"run_id": args.run_id, "pinned": args.pinned, "changed": changed}


class ExportParams(Params):
    run_id: RunId


@tool(
    "graph_run_export", ExportParams, title="Export a run", toolset=OPERATOR, read_only=True, idempotent=True,
    description="""A run as one document: its row, the version of its graph, every event as it is stored, every
    approval. Example: {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_export(call: Call[ExportParams]) -> JsonObject:
    run_id, store = call.args.run_id, call.deps.store
    row = await store.runs.get(run_id)
    if row.first_seq:
        raise RunPruned(f"the events of run {run_id} were pruned: there is nothing left to export", run_id=run_id)
    if (damaged := await store.runs.verify_chain(run_id)) is not None:
        message = f"event {damaged} of run {run_id} is not what was written; the run was left as it is"
        raise StoreCorrupt(message, run_id=run_id, seq=damaged)
    graph = await store.graphs.get(row.graph_id, row.graph_version)
    body = asdict(row)
    body["final_state"] = list(row.final_state)
    del body["first_seq"]
    return {
        "format": FORMAT, "program": f"agent-graph {__version__}", "exported_at_ms": call.deps.clock.now_ms(),
        "run_id": run_id, "run": body,
        "graph": {"graph_id": graph.graph_id, "graph_version": graph.graph_version, "spec": graph.spec},
        "approvals": await _approvals(call, run_id), "events": await _events(call, run_id, row.seq),
    }  # fmt: skip


async def _events(call: Call[ExportParams], run_id: str, count: int) -> list[JsonValue]:
    """The first `count`: a run that lives may have more by now."""
    found: list[JsonValue] = []
    while len(found) < count:
        limit = min(PAGE, count - len(found))
        found += [each.body for each in await call.deps.store.runs.events(run_id, first_seq=len(found), limit=limit)]
    return found


async def _approvals(call: Call[ExportParams], run_id: str) -> list[JsonValue]:
    found: list[JsonValue] = []
    cursor: str | None = None
    while True:
        rows, cursor = await call.deps.store.approvals.list(run_id=run_id, limit=PAGE, cursor=cursor)
        found += [views.approval(row) for row in rows]
        if cursor is None:
            return found


class PruneParams(Params):
    days: Annotated[int, Field(ge=0, description="Runs that ended more than so many days ago; 0 = no bound.")] = 0
    runs: Annotated[int, Field(ge=0, description="All but the so many that ended last; 0 = no bound.")] = 0
    bytes: Annotated[
        int, Field(ge=0, description="As many as it takes to bring the database to this size; 0 = no bound.")
    ] = 0
    run_ids: Annotated[list[str], Field(max_length=100_000, description="These runs.", default_factory=list)]
    forget: Annotated[
        bool, Field(description="Also the rows with the results, and the answers under idempotency keys.")
    ] = False
    dry_run: Annotated[bool, Field(description="Only say what would go.")] = False


@tool(
    "graph_store_prune", PruneParams, title="Prune the store", toolset=OPERATOR, destructive=True, idempotent=True,
    description="""Delete the records (events, snapshots, approvals) of runs that have ended and are not pinned; status
    and result stay. With days also captured sources as old that no run cites then. Example: {"days": 30, "dry_run":
    true}""",
)  # fmt: skip
async def graph_store_prune(call: Call[PruneParams]) -> JsonObject:
    args, deps = call.args, call.deps
    policy = retention.Policy(args.days, args.runs, args.bytes)
    if policy.keeps_all and not args.run_ids:
        raise InvalidArgument("say what may go: days, runs, bytes or run_ids", argument="days")
    for run_id in args.run_ids:
        await deps.store.runs.get(run_id)
    before = await deps.store.retention.space()
    planned = await retention.plan(
        deps.store, policy, now_ms=deps.clock.now_ms(), run_ids=args.run_ids, forget=args.forget
    )
    going: list[JsonObject] = [
        {"run_id": run.run_id, "graph_id": run.graph_id, "status": run.status, "finished_at_ms": run.finished_at_ms,
         "bytes": weight}
        for run, weight in zip(planned.runs, planned.weights, strict=True)
    ]  # fmt: skip
    body: JsonObject = {"dry_run": args.dry_run, "forget": args.forget, "runs": list(going), "bytes": planned.bytes}
    body["witnesses"] = [{"witness_id": witness_id, "bytes": size} for witness_id, size in planned.witnesses]
    body["witnesses_cited"] = planned.held
    body["kept"] = [*sorted({*args.run_ids} - {run.run_id for run in planned.runs})]
    after = before
    if not args.dry_run:
        done = await retention.prune(deps.store, planned, forget=args.forget)
        body["runs"] = [each for each in going if each["run_id"] in done.runs]
        sizes = dict(planned.witnesses)
        body["witnesses"] = [{"witness_id": one, "bytes": sizes[one]} for one in done.witnesses]
        after = done.space
    body.update(file_bytes_before=before.file_bytes, file_bytes=after.file_bytes, used_bytes=after.used_bytes)
    return body
