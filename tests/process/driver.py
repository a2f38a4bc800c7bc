"""The program that is killed: owns a folder, drives what is unfinished there, starts one run if told to.

``python driver.py FOLDER OLLAMA_URL [GRAPH_FILE QUESTION]`` prints one JSON line per step: ``ready`` once it owns the
folder, ``started`` with the run's id, ``answered`` for every model's answer that is durable, ``ended`` for every run
that reaches its end. It ends when all have, or on a refusal, which it prints.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_graph.app import open_app
from agent_graph.errors import AgentGraphError
from agent_graph.settings import load
from agent_graph.store.base import TERMINAL, RunRow
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import call

import_module("agent_graph.tools.graphs")
import_module("agent_graph.tools.runs")
WAIT_MS = 45_000


def say(event: str, **rest: Any) -> None:
    print(json.dumps({"event": event, **rest}), flush=True)


async def follow(deps: Deps, run_id: str) -> None:
    """Tell of a run's answers, from the first, until it has ended."""
    cursor = 0

    def moved(row: RunRow) -> bool:
        return row.seq > cursor or row.status in TERMINAL

    while True:
        row = await deps.supervisor.wait(run_id, timeout_ms=WAIT_MS, until=moved)
        for stored in await deps.store.runs.events(run_id, first_seq=cursor, limit=1000):
            cursor = stored.seq + 1
            if stored.body["type"] == "model_answered":
                say("answered", firing=stored.body["firing"])
        if row.status in TERMINAL:
            break
    say("ended", run_id=run_id, status=row.status)


async def main(folder: str, url: str, *begin: str) -> None:
    settings = load({"data_dir": folder, "provider": "ollama", "ollama_host": url, "model": "fake"}, environ={})
    me = Caller("cli", "driver")
    try:
        async with open_app(settings, recover=True) as deps:
            say("ready")
            if begin:
                spec = json.loads(Path(begin[0]).read_text(encoding="utf-8"))  # noqa: ASYNC240  (before anything runs)
                created = await call(deps, "graph_create", {"spec": spec}, caller=me)
                assert created["ok"], created
                started = await call(deps, "graph_run_start", {"graph_id": spec["name"], "input": begin[1]}, caller=me)
                say("started", run_id=started["run_id"])
            rows, _ = await deps.store.runs.list()
            for row in rows:
                await follow(deps, row.run_id)
    except AgentGraphError as refusal:
        say("refused", code=refusal.code, message=refusal.message)


asyncio.run(main(*sys.argv[1:]))
