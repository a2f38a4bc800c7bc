"""Messages from outside: the tool that sends one, and what a run waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.nesting import whole
from agent_graph.core.run import Run, Wait
from agent_graph.engine.commands import Signal
from agent_graph.store.base import Answered, ApprovalRow, RunRow
from agent_graph.tools import views
from agent_graph.tools.deps import Deps
from agent_graph.tools.params import ANY_JSON, Key, Params, RunId, parsed_object
from agent_graph.tools.registry import Call, tool

WAITED: frozenset[str] = frozenset({"signal", "timer"})
"""Node types that wait for something other than a person."""


class SignalParams(Params):
    run_id: RunId
    name: Annotated[str, Field(min_length=1, max_length=64, description="The name a signal node waits for.")]
    payload: Annotated[
        Any, WithJsonSchema({**ANY_JSON, "description": "What the message says; the node's output."})
    ] = ""
    idempotency_key: Key = ""


@tool(
    "graph_run_signal", SignalParams, title="Send a message to a run", scope="runs:write",
    description="""Send a named message to a run; the signal node that has waited for that name for longest goes on
    with its payload. When none waits yet the message is kept for the next (delivered false), or refused where the
    graph keeps none. It opens no approval. What a run waits for is in waiting_for of graph_run_get. Example: {"run_id":
    "run-...", "name": "payment", "payload": {"amount": 3}}""",
)  # fmt: skip
async def graph_run_signal(call: Call[SignalParams]) -> JsonObject:
    args, deps = call.args, call.deps
    row = await deps.store.runs.get(args.run_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    said: list[JsonObject] = []

    def answered(run: Run) -> Answered | None:  # called before the run moves on: a repeated call is told the same
        said.append(_view(run, args, taken))
        return call.answered(said[-1], run_id=run.run_id)

    payload = parsed_object(args.payload, deps.limits)
    taken: list[str] = []
    command = Signal(graph, args.name, payload, call.caller.client, call.caller.via, taken.append, answered)
    await deps.supervisor.ask(args.run_id, command)
    return said[-1]


def _view(run: Run, args: SignalParams, taken: Sequence[str]) -> JsonObject:
    firing = taken[-1]
    body: JsonObject = {"run_id": run.run_id, "name": args.name, "delivered": bool(firing)}
    if firing:
        body |= {"node_id": _node_of(firing), "node_path": firing}
    return {**body, "run": {"run_id": run.run_id, "status": run.status}}


# -- what a run waits for ------------------------------------------------------------------------------------------


async def waiting_for(deps: Deps, row: RunRow, pending: Sequence[ApprovalRow]) -> list[JsonValue]:
    """Decisions, with how each can be made, then messages and moments, each oldest first."""
    found: list[JsonValue] = [
        {
            "kind": "approval", "approval_id": gate.approval_id, "node_id": gate.node_id,
            "how_to_decide": views.way_to_decide(gate, console=deps.console),
        }
        for gate in pending
    ]  # fmt: skip
    if row.status not in ("waiting", "running") or row.first_seq:
        return found
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    if any(node.type in WAITED for one in whole(graph) for node in one.nodes):
        _, run = await deps.supervisor.fold(row.run_id)
        found += [_wait(path, wait) for path, wait in run.waits.items()]
    return found


async def is_for_the_clock(deps: Deps, row: RunRow, pending: Sequence[ApprovalRow]) -> bool:
    """A waiting run goes on by itself: nobody is to do anything but the clock."""
    if row.status != "waiting" or pending:
        return False
    waits: Any = await waiting_for(deps, row, pending)
    return bool(waits) and all(wait["kind"] == "timer" for wait in waits)


def _wait(path: str, wait: Wait) -> JsonObject:
    body: JsonObject = {"kind": "signal" if wait.name else "timer", "node_id": _node_of(path), "node_path": path}
    if not wait.name:
        return {**body, "due_at_ms": wait.due_ms}
    return {**body, "name": wait.name, **({} if wait.due_ms is None else {"expires_at_ms": wait.due_ms})}


def _node_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition("#")[0]
