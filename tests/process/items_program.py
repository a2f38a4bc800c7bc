"""A fan-out over a list in a process of its own, told as one JSON line: ``python items_program.py FOLDER COUNT``.

{status, events, peak_bytes (the process's peak memory), snapshots, snapshot_bytes, elapsed_ms}.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib import import_module
from typing import Any

from agent_graph.app import open_app
from agent_graph.core import checkpoint
from agent_graph.settings import load
from agent_graph.tools.deps import Caller
from agent_graph.tools.registry import call
from tests.process.crowd_program import memory_bytes

import_module("agent_graph.tools.graphs")
import_module("agent_graph.tools.runs")
ITEMS: dict[str, Any] = {
    "name": "items", "entry": "m", "output_key": "all",
    "nodes": [
        {"id": "m", "type": "parallel", "config": {
            "for_each": {"path": "xs"}, "entry": "t", "join": "j", "output_key": "all"}},
        {"id": "t", "type": "state_transform", "config": {
            "operations": [{"op": "copy", "from": "item", "path": "n"}, {"op": "increment", "path": "n"}]}},
        {"id": "j", "type": "join", "config": {"inputs": ["n"], "mode": "first_non_null"}},
    ],
    "edges": [{"from": "t", "to": "j"}, {"from": "j", "to": "END"}],
}  # fmt: skip
WAIT_MS = 45_000
written: list[int] = []


async def main(folder: str, count: int) -> None:
    plain = checkpoint.dump

    def weighed(run: Any) -> bytes:
        data = plain(run)
        written.append(len(data))
        return data

    checkpoint.dump = weighed
    me = Caller("cli", "items")
    settings = load({"data_dir": folder, "provider": "ollama", "model": "fake"}, environ={})
    async with open_app(settings, recover=True) as deps:
        assert (await call(deps, "graph_create", {"spec": ITEMS}, caller=me))["ok"]
        begun = time.monotonic()
        started = await call(
            deps, "graph_run_start", {"graph_id": "items", "input": {"xs": [*range(count)]}}, caller=me
        )
        run_id = started["data"]["run_id"]
        row = await deps.store.runs.get(run_id)
        while row.status not in ("completed", "failed"):
            row = await deps.supervisor.wait(run_id, timeout_ms=WAIT_MS)
        elapsed_ms = int(1000 * (time.monotonic() - begun))
        results = row.final_state[0] if row.final_state else None
        assert results == [*range(1, count + 1)], row
        print(json.dumps({
            "status": row.status, "events": row.seq, "peak_bytes": memory_bytes("VmHWM"), "snapshots": len(written),
            "snapshot_bytes": sum(written), "elapsed_ms": elapsed_ms,
        }))  # fmt: skip


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
