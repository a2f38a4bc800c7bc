"""The program that chaos kills: owns a folder, starts the runs of its list, decides what waits, sees them all end.

``python chaos_program.py FOLDER OLLAMA_URL TAG...``; a tag is SHAPE-NUMBER and the run's idempotency key. It prints one
JSON line for being ready, for each run it has an id of, and for each that has ended; and ends when all have.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

from agent_graph.app import open_app
from agent_graph.settings import load
from agent_graph.store.base import TERMINAL, RunRow
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import call
from tests.process.shapes import PARTS, SHAPES, decides, tells

import_module("agent_graph.tools.toolsets")
ME = Caller("assistant", "test")
WAIT_MS = 45_000


def say(event: str, **rest: Any) -> None:
    print(json.dumps({"event": event, **rest}), flush=True)


async def ask(deps: Deps, tool: str, /, **arguments: Any) -> Any:
    envelope: Any = await call(deps, tool, arguments, caller=ME)
    assert envelope["ok"], envelope
    return envelope["data"]


async def begun(deps: Deps, tag: str) -> str:
    """The id of the run under this key, which is started if it is not there."""
    known = await deps.store.requests.get(tag)
    if known is not None:
        return known.run_id
    shape = tag.partition("-")[0]
    for graph in (*PARTS, SHAPES[shape]):
        await ask(deps, "graph_create", spec=graph)
    started = await ask(deps, "graph_run_start", graph_id=shape, input={"tag": tag}, idempotency_key=tag)
    return str(started["run_id"])


async def see_through(deps: Deps, tag: str) -> None:
    run_id = await begun(deps, tag)
    say("started", tag=tag, run_id=run_id)

    seen = -1

    def wants_something(row: RunRow) -> bool:
        return row.status in TERMINAL or (row.status == "waiting" and row.seq != seen)

    while True:
        row = await deps.supervisor.wait(run_id, timeout_ms=WAIT_MS, until=wants_something)
        if row.status in TERMINAL:
            say("ended", tag=tag, status=row.status)
            return
        seen = row.seq
        for wait in (await ask(deps, "graph_run_get", run_id=run_id))["waiting_for"]:
            if wait["kind"] == "signal":
                message = {"name": wait["name"], "payload": tells(wait["name"])}
                await ask(deps, "graph_run_signal", run_id=run_id, idempotency_key=f"{tag} {wait['name']}", **message)
        for gate in (await ask(deps, "graph_approval_list", run_id=run_id))["approvals"]:
            decision = decides(gate["node_id"], gate["graph_id"])
            await ask(
                deps, "graph_approval_decide", approval_id=gate["approval_id"], decision=decision, decided_by="Ada"
            )


async def main(folder: str, url: str, *tags: str) -> None:
    settings = load({"data_dir": folder, "provider": "ollama", "ollama_host": url, "model": "fake"}, environ={})
    async with open_app(settings, recover=True) as deps:
        say("ready")
        await asyncio.gather(*(see_through(deps, tag) for tag in tags))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
