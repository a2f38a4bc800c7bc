"""The program that is killed while a tool works: ``python tool_program.py FOLDER LEDGER first|again IDEMPOTENT``.

The tool writes a line into LEDGER, which is what it does to the world; the first program's never says more. Prints
``called`` when it has, and ``ended`` with the run's status and error.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_graph.app import open_app
from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.connections import Tool, ToolResult
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.settings import load
from agent_graph.store.base import TERMINAL
from agent_graph.tools.deps import Caller
from agent_graph.tools.registry import call

import_module("agent_graph.tools.graphs")
import_module("agent_graph.tools.runs")
SPEC = {
    "name": "g", "entry": "a", "edges": [{"from": "a", "to": "END"}],
    "nodes": [{"id": "a", "type": "llm", "config": {"prompt": "pay", "tools": ["bank/pay"]}}],
}  # fmt: skip


def say(event: str, **rest: Any) -> None:
    print(json.dumps({"event": event, **rest}), flush=True)


class Bank:
    name = "bank"

    def __init__(self, ledger: Path, *, hangs: bool, idempotent: bool) -> None:
        self._ledger, self._hangs, self._idempotent = ledger, hangs, idempotent

    async def tools(self) -> tuple[Tool, ...]:
        return (Tool("pay", idempotent=self._idempotent),)

    async def call(self, tool: str, arguments: JsonObject) -> ToolResult:
        with self._ledger.open("a", encoding="utf-8") as ledger:
            ledger.write(f"{tool} {json.dumps(arguments)}\n")
        if self._hangs:
            say("called")
            await asyncio.Event().wait()
        return ToolResult("paid")

    async def aclose(self) -> None:
        pass


async def answer(asked: CallModel) -> Reply:
    if asked.messages[-1]["role"] == "tool":
        return Reply(text="done")
    return Reply(tool_calls=({"name": "pay", "arguments": {"sum": 7}},))


async def main(folder: str, ledger: str, which: str, idempotent: str) -> None:
    bank = Bank(Path(ledger), hangs=which == "first", idempotent=idempotent == "yes")
    settings = load({"data_dir": folder}, environ={})
    me = Caller("cli", "program")
    async with open_app(settings, recover=True, model=ScriptedModel(answer), connections=[bank]) as deps:
        if which == "first":
            await call(deps, "graph_create", {"spec": SPEC}, caller=me)
            await call(deps, "graph_run_start", {"graph_id": "g", "input": "x"}, caller=me)
        rows, _ = await deps.store.runs.list()
        row = await deps.supervisor.wait(rows[0].run_id, timeout_ms=45_000, until=lambda row: row.status in TERMINAL)
        say("ended", status=row.status, error=row.error, calls=row.usage["llm_calls"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
