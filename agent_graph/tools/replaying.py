"""`graph_run_replay`: checks a run's record against itself, or drives another graph with the answers it holds."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.following import Divergence, follow
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest, size
from agent_graph.core.outcome import final_state
from agent_graph.core.record import canonical_record
from agent_graph.core.replay import Replayed, replay
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.engine.receipts import check_ended
from agent_graph.errors import CheckpointIntegrityFailure, CheckpointNotFound, RunPruned, SourceAmbiguous, StoreCorrupt
from agent_graph.store.base import TERMINAL, RunRow
from agent_graph.tools.checkpoints import known
from agent_graph.tools.deps import Deps
from agent_graph.tools.drawing import facts
from agent_graph.tools.graphs import OptionalGraphId, SpecParam
from agent_graph.tools.keeping import OPERATOR
from agent_graph.tools.params import GraphVersion, Params, RunId
from agent_graph.tools.registry import Call, tool

LISTED = 50
"""Firings that an answer names of each kind."""
SHOWN_BYTES = 2_000
"""A fact that takes more is told by its digest."""


class ReplayParams(Params):
    run_id: RunId
    level: Annotated[
        Literal["verify", "replay"],
        Field(description="verify: the record against itself; replay: a graph with the recorded answers."),
    ] = "replay"
    spec: SpecParam = Field(default_factory=dict)
    graph_id: OptionalGraphId = ""
    graph_version: GraphVersion = ""


@tool(
    "graph_run_replay", ReplayParams, title="Replay a run", toolset=OPERATOR, read_only=True, idempotent=True,
    description="""Drive a recorded run's graph, or another one (spec, or graph_id), with the answers the run recorded:
    no model is asked, every decision is obeyed, what has no recorded answer is listed. Says where the way differs, or
    same. Level verify checks the record itself: its chain, its snapshot, and that it follows from its answers.
    Example: {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_replay(call: Call[ReplayParams]) -> JsonObject:
    args, deps = call.args, call.deps
    row = await deps.store.runs.get(args.run_id)
    graph, log = await recorded(deps, row)
    if args.level == "verify":
        return await _verified(deps, row, graph, log)
    other = await _graph(call, graph)
    try:
        done = await asyncio.to_thread(replay, other, log, recorded=graph)
    except ValueError as unfit:
        raise StoreCorrupt(f"the record of run {row.run_id} is not to be gone by: {unfit}", run_id=row.run_id) from None
    return told(row, done)


async def recorded(deps: Deps, row: RunRow) -> tuple[Graph, list[e.Event]]:
    """A run's graph and its whole log. Raises `RunPruned`."""
    if row.first_seq:
        raise RunPruned(f"the events of run {row.run_id} were pruned: nothing can be replayed", run_id=row.run_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    return graph, [event async for event in facts(deps.store, row.run_id)]


async def checked(deps: Deps, row: RunRow) -> tuple[Graph, list[e.Event]]:
    """As `recorded`, of a log that is what was written: its chain is whole, and what was sealed at its end is its end.

    Whatever is taken over from a log is vouched for anew by whoever takes it. Raises `StoreCorrupt`, and
    `ReceiptIntegrityFailure` for a chain that was made anew.
    """
    graph, log = await recorded(deps, row)
    damaged = await deps.store.runs.verify_chain(row.run_id)
    if damaged is not None:
        message = f"event {damaged} of run {row.run_id} is not what was written; put a copy of the database back"
        raise StoreCorrupt(message, run_id=row.run_id, seq=damaged, check="event chain")
    sealed = await deps.store.seals.of(row.run_id)
    if row.status in TERMINAL or sealed.seal is not None:
        await asyncio.to_thread(check_ended, sealed, deps.keys)
    return graph, log


async def _graph(call: Call[ReplayParams], own: Graph) -> Graph:
    args, catalog = call.args, call.deps.catalog
    if args.spec and args.graph_id:
        raise SourceAmbiguous("give spec or graph_id, not both")
    if args.spec:
        return (await catalog.check(args.spec)).graph
    if args.graph_id or args.graph_version:
        return await catalog.get(args.graph_id or own.name, args.graph_version or None)
    return own


def told(row: RunRow, done: Replayed) -> JsonObject:
    """A replay as the tool answers it."""
    run = done.run
    result = list(final_state(run))
    body: JsonObject = {
        "run_id": row.run_id, "level": "replay", "same": done.same, "graph_id": done.graph.name,
        "graph_version": done.graph.version, "recorded_status": row.status, "status": run.status,
        "same_result": result == list(row.final_state),
        "unanswered": [{"node_path": one.firing, "why": one.why} for one in done.unanswered[:LISTED]],
        "asked_otherwise": list(done.asked_otherwise[:LISTED]),
    }  # fmt: skip
    if done.divergence is not None:
        body["divergence"] = divergence(done.divergence)
    if not done.same and run.terminal and run.error is not None:
        body["error"] = run.error
    return body


def divergence(found: Divergence) -> JsonObject:
    """{seq, node_path, node_id, recorded, instead}: the facts there and here, null for none."""
    path = found.firing
    return {
        "seq": found.seq, "node_path": path, "node_id": path.rpartition("/")[2].partition("#")[0],
        "recorded": _fact(found.recorded), "instead": _fact(found.instead),
    }  # fmt: skip


def _fact(fact: e.Fact | None) -> JsonValue:
    if fact is None:
        return None
    stored: dict[str, Any] = e.to_json(fact)
    body: JsonObject = {name: list(one) if isinstance(one, tuple) else one for name, one in stored.items()}
    if size(body) <= SHOWN_BYTES:
        return body
    short: JsonObject = {name: body[name] for name in ("type", "firing", "targets") if name in body}
    return {**short, "digest": digest(body)}


# -- verify --------------------------------------------------------------------------------------------------------


async def _verified(deps: Deps, row: RunRow, graph: Graph, log: list[e.Event]) -> JsonObject:
    """Every check by its name: true, or what is wrong."""
    damaged = await deps.store.runs.verify_chain(row.run_id)
    record = await asyncio.to_thread(canonical_record, graph, log)
    followed = await asyncio.to_thread(follow, graph, log)
    broke = followed.divergence
    checks: JsonObject = {
        "chain": damaged is None or f"event {damaged} is not what was written",
        "follows": broke is None or f"event {broke.seq} does not follow from the ones before it",
        "row": _row_agrees(row, record),
        "snapshot": await _snapshot(deps, row, graph, log),
    }
    body: JsonObject = {
        "run_id": row.run_id, "level": "verify", "same": all(one in (True, "none") for one in checks.values()),
        "checks": checks, "record_digest": digest(record), "graph_id": graph.name, "graph_version": graph.version,
        "recorded_status": row.status, "status": followed.follower.run.status,
    }  # fmt: skip
    if broke is not None:
        body["divergence"] = divergence(broke)
    return body


def _row_agrees(row: RunRow, record: Any) -> JsonValue:
    if row.status in ("completed", "failed", "cancelled") and record["status"] != row.status:
        return f"the run's row says {row.status}, its events {record['status']}"
    return record["final_state"] == list(row.final_state) or "the result in the run's row is not that of its events"


async def _snapshot(deps: Deps, row: RunRow, graph: Graph, log: list[e.Event]) -> JsonValue:
    """Whether the run goes on from its snapshot as from its events; "none" where there is no snapshot to read."""
    try:
        kept = await deps.store.checkpoints.latest(row.run_id)
        run = checkpoint.load(graph, kept.data)
    except CheckpointNotFound:
        return "none"
    except CheckpointIntegrityFailure as damage:
        return damage.message
    except ValueError:  # of another version of the program, which passes it over
        return "none"
    again = new_run()
    for event in log:
        evolve(graph, again, event)
    for event in log[kept.seq + 1 :]:
        evolve(graph, run, event)
    return known(run) == known(again) or "the snapshot and the events say different things; the events hold"
