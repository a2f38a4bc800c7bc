"""`graph_run_fork`: a new run that begins with what another has done, changed or not, and pays for none of it again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from agent_graph.core import events as e
from agent_graph.core import fork_questions, forking
from agent_graph.core.budgets import check
from agent_graph.core.fork_changes import Changes
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.run import ON_FORK
from agent_graph.engine.intake import new_id
from agent_graph.engine.rows import usage
from agent_graph.errors import InvalidArgument
from agent_graph.store.base import Answered, RunRow
from agent_graph.tools.deps import local_user
from agent_graph.tools.graphs import OptionalGraphId
from agent_graph.tools.params import (
    BudgetsParam,
    GraphVersion,
    JsonObjectParam,
    Key,
    Params,
    PatchParam,
    RunId,
    parsed_object,
)
from agent_graph.tools.policy import hold
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.replaying import checked


class ForkParams(Params):
    run_id: RunId
    before: Annotated[
        str, Field(max_length=1000, description="Fork before this node's firing: its id, or the path of one firing.")
    ] = ""
    nth: Annotated[int, Field(ge=0, description="With a node id: which firing, from 1; 0 = the latest.")] = 0
    at: Annotated[int, Field(ge=-1, description="Fork after the event with this seq; 0 = all from the start.")] = -1
    failed: Annotated[bool, Field(description="Fork before the firing that failed the run.")] = False
    patch: Annotated[PatchParam, Field(description="JSON Patch (RFC 6902) of the state at that point.")] = Field(
        default_factory=list
    )
    frame: Annotated[
        str, Field(max_length=1000, description="Patch the state of this open frame (sub#1, map#1[2]), not the run's.")
    ] = ""
    outputs: Annotated[
        JsonObjectParam, Field(description='What llm nodes say next, without being asked: {"draft": "New text"}.')
    ] = Field(default_factory=dict)
    models: Annotated[JsonObjectParam, Field(description='Models that llm nodes ask: {"draft": "llama3.2:3b"}.')] = (
        Field(default_factory=dict)
    )
    graph_id: OptionalGraphId = ""
    graph_version: GraphVersion = ""
    model: Annotated[str, Field(max_length=200, description="Model for nodes that name none; empty = as before.")] = ""
    budgets: BudgetsParam = Field(default_factory=lambda: None)  # null as a default is what some clients drop
    thread_id: Annotated[str, Field(max_length=200, description="Your own name for related runs.")] = ""
    dry_run: Annotated[bool, Field(description="Only say what would be taken over, and who would be asked.")] = False
    idempotency_key: Key = ""


@tool(
    "graph_run_fork", ForkParams, title="Fork a run", scope="runs:write", open_world=True, toolset="test",
    description="""Start a new run that begins with another's recorded events (nothing of them is paid again), from
    before a node, after an event, or before the firing that failed; optionally with a patched state, given outputs,
    other models, or another version of the graph. Gates nobody had decided ask anew; if anything is changed, decided
    ones do too before it goes on. Example: {"run_id": "run-...", "before": "pass"}""",
)  # fmt: skip
async def graph_run_fork(call: Call[ForkParams]) -> JsonObject:
    args, deps = call.args, call.deps
    row = await deps.store.runs.get(args.run_id)
    origin, log = await checked(deps, row)
    point = _point(args, log)
    graph = await _graph(call, origin)
    begun: Any = log[0].fact
    last: Any = next((one.fact for one in reversed(log) if isinstance(one.fact, e.RunForked) and one.fact.model), begun)
    model = args.model or last.model
    models = _models(args)
    budgets = None if args.budgets is None else check(parsed_object(args.budgets, deps.limits))
    held, policy = hold(
        deps, call.caller, with_models(graph, models), begun.input, model=model, budgets=budgets
    )  # fmt: skip
    bounds = deps.supervisor.check(graph, begun.input, budgets=held)
    now_ms = deps.clock.now_ms()
    forker = fork_questions.Forker(
        new_id(now_ms), call.caller.via, call.caller.client, call.caller.principal,
        "" if call.caller.principal else local_user(), args.thread_id, bounds, policy,
        decides=call.caller.may("approvals:decide"), proven=await _is_proven(call),
    )  # fmt: skip
    redactor = deps.supervisor.shell.redactor
    changes = Changes(
        tuple(map(redactor.members, args.patch)), redactor.members(args.outputs), models, args.model, args.frame
    )  # fmt: skip
    made = await asyncio.to_thread(
        forking.fork, graph, log, point, origin=origin, forker=forker, changes=changes, now_ms=now_ms
    )
    if args.dry_run:
        deps.supervisor.check_capacity()
        return {**_told(made, policy), "run_id": "", "status": "dry_run", "asks": [], "questions": len(_asks(made))}

    def answer(row: RunRow) -> Answered:
        return Answered(call.key, call.request_digest, _told(made, policy), row.run_id)

    await deps.supervisor.begin(
        graph, made.run, made.log, answer=answer if call.key else None, key=call.key
    )  # fmt: skip
    return _told(made, policy)


async def _is_proven(call: Call[ForkParams]) -> bool:
    """Whether a shell or a browser is taken for a person at gates closed to models: as `approvals._check_person`."""
    return bool(call.caller.approver) or not await call.deps.approvers.names()


def _point(args: ForkParams, log: list[e.Event]) -> forking.Point:
    if bool(args.before) + (args.at >= 0) + args.failed != 1:
        raise InvalidArgument("say from where, in one way: before, at, or failed", argument="before")
    if args.failed:
        return forking.failed(log)
    if args.before:
        return forking.before(log, args.before, nth=args.nth)
    return forking.at(log, args.at)


async def _graph(call: Call[ForkParams], origin: Graph) -> Graph:
    args = call.args
    if not (args.graph_id or args.graph_version):
        return origin
    return await call.deps.catalog.get(args.graph_id or origin.name, args.graph_version or None)


def _models(args: ForkParams) -> dict[str, str]:
    if wrong := [name for name, model in args.models.items() if not isinstance(model, str)]:
        raise InvalidArgument(f"models: the model of {wrong[0]!r} is named by a text", argument="models")
    return dict(args.models)


def with_models(graph: Graph, models: dict[str, str]) -> Graph:
    """The graph as if its nodes named these models themselves: what a policy is to look at. Nothing runs it."""
    if not models:
        return graph
    nodes = tuple(
        replace(node, config=replace(node.config, model=models[node.id]))
        if node.id in models and node.type == "llm" else node
        for node in graph.nodes
    )  # fmt: skip
    inner = {version: with_models(one, models) for version, one in graph.subgraphs.items()}
    return replace(graph, nodes=nodes, subgraphs=inner)


def _asks(made: forking.Made) -> list[JsonValue]:
    return [gate.approval_id for gate in made.run.open_approvals if gate.firing == ON_FORK]


def _told(made: forking.Made, policy: JsonObject) -> JsonObject:
    run, fork = made.run, made.run.fork
    assert fork is not None, "it was just forked"
    own = next(one.seq for one in reversed(made.log) if isinstance(one.fact, e.RunForked))
    body: JsonObject = {
        "run_id": run.run_id, "status": "accepted", "graph_id": made.graph.name, "graph_version": made.graph.version,
        "thread_id": run.thread_id, "forked_from": {"run_id": fork.run_id, "seq": fork.seq},
        "taken_over": {"events": own, **usage(run)["inherited"]},  # type: ignore[dict-item]  # an object
        "asks": _asks(made), **({"policy": policy} if policy else {}),
    }  # fmt: skip
    return body
