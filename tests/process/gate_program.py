"""The program that is killed around a placed gate: ``python gate_program.py FOLDER LEDGER STEP [DECISION]``.

Every call of the model is a line of LEDGER before it is answered. The steps: ``place`` starts a run whose first call
never ends, and puts a gate before its second node; ``wait`` goes on until the run waits; ``decide`` decides, and lets
the second call never end; ``end`` sees the run to its end. Each says one line of JSON when it is there, and stays.
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
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.settings import load
from agent_graph.store.base import TERMINAL
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import call

for name in ("graphs", "runs", "approvals", "approval_request"):
    import_module(f"agent_graph.tools.{name}")
WAIT_MS = 45_000
SPEC = {
    "name": "g", "entry": "a", "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "END"}],
    "nodes": [
        {"id": "a", "type": "llm", "config": {"prompt": "draft it", "output_key": "draft"}},
        {"id": "b", "type": "llm", "config": {"prompt": "send {draft}", "output_key": "sent"}},
    ],
}  # fmt: skip
HANGS = {"place": "draft", "decide": "send"}


class Model:
    """Writes down what it is asked; one kind of call it never answers."""

    def __init__(self, ledger: Path, hangs: str) -> None:
        self._ledger = ledger
        self._hangs = hangs
        self.hanging = asyncio.Event()

    async def answer(self, asked: CallModel) -> Reply:
        said = str(asked.messages[-1]["content"])
        with self._ledger.open("a", encoding="utf-8") as ledger:
            ledger.write(f"{said.split(maxsplit=1)[0]}\n")
        if self._hangs and said.startswith(self._hangs):
            self.hanging.set()
            await asyncio.Event().wait()
        return Reply(text="done")


def say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


async def asked(deps: Deps, tool: str, **arguments: Any) -> Any:
    answer = await call(deps, tool, arguments, caller=Caller("cli", "program"))
    assert answer["ok"], answer
    return answer["data"]


async def main(folder: str, ledger: str, step: str, decision: str = "") -> None:
    model = Model(Path(ledger), HANGS.get(step, ""))
    settings = load({"data_dir": folder}, environ={})
    async with open_app(settings, recover=True, model=ScriptedModel(model.answer)) as deps:
        if step == "place":
            await asked(deps, "graph_create", spec=SPEC)
            run_id = (await asked(deps, "graph_run_start", graph_id="g", input="x"))["run_id"]
            await model.hanging.wait()
            await asked(deps, "graph_approval_request", run_id=run_id, at="b", prompt="May it be sent?")
            say(run_id=run_id)
        else:
            rows, _ = await deps.store.runs.list()
            await _go_on(deps, rows[0].run_id, step, decision, model)
        await asyncio.Event().wait()


async def _go_on(deps: Deps, run_id: str, step: str, decision: str, model: Model) -> None:
    if step == "end":
        row = await deps.supervisor.wait(run_id, timeout_ms=WAIT_MS, until=lambda row: row.status in TERMINAL)
        say(status=row.status, error=row.error)
        return
    await deps.supervisor.wait(run_id, timeout_ms=WAIT_MS, until=lambda row: row.status == "waiting")
    (approval,) = (await asked(deps, "graph_approval_list", run_id=run_id))["approvals"]
    if step == "decide":
        given = {"approval_id": approval["approval_id"], "decision": decision, "decided_by": "Ada"}
        await asked(deps, "graph_approval_decide", **given)
        if decision == "approve":
            await model.hanging.wait()
    say(approval_id=approval["approval_id"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
