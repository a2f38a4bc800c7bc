"""`graph_run_checkpoint`: the snapshot that is kept of a run, checked against its own digest and the run's events."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent_graph.core import checkpoint
from agent_graph.core.jsonvalue import JsonObject, digest
from agent_graph.core.outcome import state
from agent_graph.core.run import Run
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.errors import CheckpointIntegrityFailure, CheckpointNotFound
from agent_graph.store.base import Snapshot
from agent_graph.tools.deps import Deps
from agent_graph.tools.drawing import facts
from agent_graph.tools.params import Params, RunId
from agent_graph.tools.registry import Call, tool


class CheckpointParams(Params):
    run_id: RunId
    seq: Annotated[
        int, Field(ge=-1, description="Only the snapshot after the event with this seq; -1 = the latest.")
    ] = -1


@tool(
    "graph_run_checkpoint", CheckpointParams, title="Check a run's snapshot", scope="runs:read", read_only=True,
    idempotent=True,
    description="""The snapshot that is kept of a run (the latest, made every 64 events or so): after which event, its
    size and digest. It is checked against its digest and against the run's events before this answers; a short run
    has none (CHECKPOINT_NOT_FOUND). For the state itself use graph_run_state. Example: {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_checkpoint(call: Call[CheckpointParams]) -> JsonObject:
    args, deps = call.args, call.deps
    kept = await deps.store.checkpoints.latest(args.run_id)
    if args.seq not in (-1, kept.seq):
        message = f"only the latest snapshot is kept: of run {args.run_id} the one after event {kept.seq}"
        raise CheckpointNotFound(message, run_id=args.run_id, seq=args.seq, latest=kept.seq)
    said = await _by_events(deps, kept)
    read = await _by_snapshot(deps, kept)
    if read is not None and known(read) != known(said):
        raise CheckpointIntegrityFailure(
            f"The snapshot of run {args.run_id} and its events say different things. The events hold.",
            run_id=args.run_id,
            seq=kept.seq,
        )
    return {
        "run_id": args.run_id, "seq": kept.seq, "at_ms": said.at_ms, "status": said.status, "digest": kept.digest,
        "verified": True, "state_digest": digest(state(said)), "readable": read is not None, "bytes": kept.kept_bytes,
        "events_since": kept.events - 1 - kept.seq,
    }  # fmt: skip


def known(run: Run) -> tuple[object, ...]:
    """What a fold knows, without what only its driver cares for."""
    gates = sorted((gate.approval_id, gate.status, len(gate.votes)) for gate in run.gates.values())
    firings = sorted((firing.path, firing.attempt, len(firing.answers)) for firing in run.running)
    told = (run.run_id, run.graph_version, run.input, run.seq, run.lifecycle, run.error, run.cancel_reason)
    return (*told, run.usage, gates, firings, digest(state(run)))


async def _by_events(deps: Deps, kept: Snapshot) -> Run:
    row = await deps.store.runs.get(kept.run_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    run = new_run()
    async for event in facts(deps.store, kept.run_id, until_seq=kept.seq):
        evolve(graph, run, event)
    return run


async def _by_snapshot(deps: Deps, kept: Snapshot) -> Run | None:
    """None for one that another version of the program wrote: it is passed over, and the events are read."""
    row = await deps.store.runs.get(kept.run_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    try:
        return checkpoint.load(graph, kept.data)
    except ValueError:
        return None
