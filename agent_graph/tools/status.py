"""The status tool: the server, or one thing in it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from agent_graph import __version__
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.models import Models
from agent_graph.errors import AgentGraphError, InvalidArgument, InvalidResource
from agent_graph.store.base import TERMINAL
from agent_graph.tools import views
from agent_graph.tools.deps import Deps
from agent_graph.tools.params import Params
from agent_graph.tools.registry import Call, tool

RESOURCES = ("server", "graph", "run", "events", "receipt", "templates")
HEALTH_S = 3.0
"""Seconds the model host has to say that it is there."""


class StatusParams(Params):
    resource: Annotated[str, Field(max_length=20, description="server, graph, run, events, receipt or templates.")] = (
        "server"
    )
    graph_id: Annotated[str, Field(max_length=64, description="For resource graph.")] = ""
    run_id: Annotated[str, Field(max_length=100, description="For resources run, events and receipt.")] = ""


@tool(
    "graph_status", StatusParams, title="Status", scope="runs:read", read_only=True, idempotent=True,
    description="""Is everything there: the server, its model host and models, limits, counts of runs; or a short word
    on one graph or run. Call it when a model cannot be reached. Example: {}""",
)  # fmt: skip
async def graph_status(call: Call[StatusParams]) -> JsonObject:
    args, deps = call.args, call.deps
    match args.resource:
        case "server":
            return await _server(deps, whole=call.caller.may("admin"))
        case "graph":
            row = await deps.store.graphs.get(_needed(args.graph_id, "graph_id"))
            return {"resource": "graph", **views.graph_row(row)}
        case "run":
            found = await deps.store.runs.get(_needed(args.run_id, "run_id"))
            return {"resource": "run", **views.run_row(found)}
        case "events":
            found = await deps.store.runs.get(_needed(args.run_id, "run_id"))
            return {"resource": "events", "run_id": found.run_id, "events": found.seq, "status": found.status}
        case "receipt":
            return await _receipt(deps, _needed(args.run_id, "run_id"))
        case "templates":
            return {"resource": "templates", "templates": list(deps.catalog.templates.all())}
        case _:
            known = ", ".join(RESOURCES)
            raise InvalidResource(f"there is no resource {args.resource!r}; there are {known}", known=list(RESOURCES))


async def _receipt(deps: Deps, run_id: str) -> JsonObject:
    """Whether there is a receipt: the run has ended, its chain of events is whole, and the folder has a key."""
    row = await deps.store.runs.get(run_id)
    kept = not row.first_seq
    whole = kept and await deps.store.runs.verify_chain(run_id) is None
    ready = row.status in TERMINAL and whole
    seal = (await deps.store.seals.of(run_id)).seal if ready else None
    return {
        "resource": "receipt", "run_id": run_id, "status": row.status, "ready": ready and deps.keys.mode == "keyed",
        "events": row.seq, "kept": kept, "chain_verified": whole, "sealed": seal is not None,
        "key_mode": deps.keys.mode,
    }  # fmt: skip


def _needed(value: str, name: str) -> str:
    if not value:
        raise InvalidArgument(f"this resource needs {name}", argument=name)
    return value


async def _server(deps: Deps, *, whole: bool) -> JsonObject:
    """`whole`: also where things lie on this machine and how it is set up."""
    limits = deps.limits
    return {
        "resource": "server", "version": __version__, "storage": deps.store.storage,
        **({"data_dir": deps.data_dir} if whole else {}), "store": _store(deps),
        "uptime_ms": deps.clock.now_ms() - deps.started_at_ms, **await _hosts(deps.models),
        "runs": dict(await deps.store.runs.counts()),
        "capacity": {
            "active_runs": limits.active_runs, "queued_runs": limits.queued_runs, **deps.supervisor.load(),
            "hosts": dict(deps.supervisor.shell.limiter.load()),
        },
        **(await _told(deps) if whole else {}), **({"settings": deps.settings()} if whole else {}),
    }  # fmt: skip


async def _told(deps: Deps) -> JsonObject:
    """How telling the outside goes, where somebody is told."""
    return {} if deps.outbox is None else {"notifications": await deps.outbox.state()}


async def _hosts(models: Models) -> JsonObject:
    provider, named = await asyncio.gather(model_host(models), named_hosts(models))
    return {"provider": provider, "hosts": dict(named)}


def _store(deps: Deps) -> JsonObject:
    """Whether the files of the store are still there."""
    try:
        deps.store.check()
    except AgentGraphError as error:
        return {"ok": False, "error_code": error.code, "error": error.message}
    return {"ok": True}


async def model_host(models: Models) -> JsonObject:
    """The health of the host that is asked where none is named, asked now; one that is away is no error."""
    return await _health(models, models.default_host)


async def named_hosts(models: Models) -> dict[str, JsonObject]:
    """The health of each host that the settings name, all asked at once; `default` tells which needs no prefix."""
    found = await asyncio.gather(*(_health(models, name) for name in models.names))
    return {
        name: {**health, "default": name == models.default_host}
        for name, health in zip(models.names, found, strict=True)
    }


async def _health(models: Models, name: str) -> JsonObject:
    try:
        async with asyncio.timeout(HEALTH_S):
            chosen = await models.find() if name == models.default_host else await models.host(name)
            listed = await chosen.client.models()
    except AgentGraphError as error:
        return {"ok": False, "error_code": error.code, "error": error.message}
    except TimeoutError:
        return {"ok": False, "error_code": "MODEL_UNREACHABLE", "error": f"no answer within {HEALTH_S:.0f} s"}
    return {
        "ok": True, "provider": chosen.client.provider, "host": chosen.client.host, "default_model": chosen.model,
        "models": [model.name for model in listed],
    }  # fmt: skip
