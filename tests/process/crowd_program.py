"""A program that is asked for more runs at once than it drives: prints one JSON object of what came of it.

``python crowd_program.py FOLDER RUNS BEYOND``: starts RUNS runs at the same moment while nothing is driven to its end,
then BEYOND more; lets the model answer, and waits until all have ended. ``crowd_program.py FOLDER RUNS -`` prints a
line when RUNS runs are started, and lets the model answer nothing; ``crowd_program.py FOLDER`` waits until all have
ended that are there.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_graph.app import open_app
from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.settings import Settings, load
from agent_graph.store.base import TERMINAL
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import call
from tests.process.shapes import FAN_OUT, says

import_module("agent_graph.tools.toolsets")
ME = Caller("assistant", "test")
STATUS = Path("/proc/self/status")


def memory_bytes(name: str) -> int:
    """``VmRSS`` or ``VmHWM`` (its peak) of this process."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text(encoding="ascii").splitlines())
    return int(lines[name].split()[0]) * 1024


async def ended(deps: Deps) -> dict[str, int]:
    while set(counts := await deps.store.runs.counts()) - TERMINAL:  # noqa: ASYNC110  (of many runs)
        await asyncio.sleep(0.05)
    return counts


def settings_for(folder: str, runs: int) -> Settings:
    return load({"data_dir": folder, "model": "fake"}, environ={"AGENT_GRAPH_LIMITS__QUEUED_RUNS": str(runs - 64)})


async def begin(deps: Deps, number: int) -> Any:
    body = {"graph_id": "fan_out", "input": {"tag": str(number)}, "idempotency_key": f"key-{number}"}
    return await call(deps, "graph_run_start", body, caller=ME)


async def hang(folder: str, runs: int) -> None:
    """Start the runs, say so, and wait to be killed."""
    async with open_app(settings_for(folder, runs), recover=True, model=ScriptedModel(_never, parallel=64)) as deps:
        await call(deps, "graph_create", {"spec": FAN_OUT}, caller=ME)
        started = await asyncio.gather(*(begin(deps, number) for number in range(runs)))
        print(json.dumps({"started": sum(each["ok"] for each in started), "load": deps.supervisor.load()}), flush=True)
        await asyncio.Event().wait()


async def _never(asked: CallModel) -> str:
    await asyncio.Event().wait()
    return ""


async def finish(folder: str) -> dict[str, Any]:
    """See every run through that is there; a third of those that wait are cancelled first."""

    async def answer(asked: CallModel) -> str:
        return says(str(asked.messages[-1]["content"]))

    async with open_app(settings_for(folder, 10_000), recover=True, model=ScriptedModel(answer, parallel=64)) as deps:
        queued, _ = await deps.store.runs.list(statuses=("accepted",), limit=200)
        cancelled = [row.run_id for row in queued[::3]]
        for run_id in cancelled:
            await call(deps, "graph_run_cancel", {"run_id": run_id, "reason": "no use"}, caller=ME)
        counts = await ended(deps)
        await deps.supervisor.rest()
        return {"counts": counts, "cancelled": len(cancelled), "load": deps.supervisor.load()}


async def main(folder: str, runs: int, beyond: int) -> dict[str, Any]:
    opened = asyncio.Event()

    async def answer(asked: CallModel) -> str:
        await opened.wait()
        return says(str(asked.messages[-1]["content"]))

    settings = settings_for(folder, runs)
    model = ScriptedModel(answer, parallel=64)
    async with open_app(settings, recover=True, model=model) as deps:

        async def start(number: int) -> Any:
            return await begin(deps, number)

        await call(deps, "graph_create", {"spec": FAN_OUT}, caller=ME)
        opened.set()
        await start(-1)  # everything that is imported and prepared once
        await ended(deps)
        opened.clear()
        idle = memory_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # noqa: ASYNC240  (no peak before this)
        began = time.monotonic()
        accepted = await asyncio.gather(*(start(number) for number in range(runs)))
        started_ms = int((time.monotonic() - began) * 1000)
        load_then = deps.supervisor.load()
        refused = await asyncio.gather(*(start(number) for number in range(runs, runs + beyond)))
        again = await asyncio.gather(*(start(number) for number in range(0, runs, 97)))
        rows = sum((await deps.store.runs.counts()).values())
        opened.set()
        counts = await ended(deps)
        await deps.supervisor.rest()
        return {
            "accepted": Counter(str(each.get("error_code", "ok")) for each in accepted), "load": load_then,
            "refused": Counter(str(each.get("error_code", "ok")) for each in refused), "rows": rows,
            "same": [each["run_id"] for each in again] == [accepted[n]["run_id"] for n in range(0, runs, 97)],
            "counts": counts, "load_after": deps.supervisor.load(), "calls": len(model.calls), "started_ms": started_ms,
            "took_ms": int((time.monotonic() - began) * 1000), "idle_bytes": idle,
            "over_idle_bytes": memory_bytes("VmHWM") - idle, "cpu_ms": int(1000 * sum(os.times()[:2])),
        }  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case [folder]:
            print(json.dumps(asyncio.run(finish(folder))))
        case [folder, runs, "-"]:
            asyncio.run(hang(folder, int(runs)))
        case [folder, runs, beyond]:
            print(json.dumps(asyncio.run(main(folder, int(runs), int(beyond)))))
