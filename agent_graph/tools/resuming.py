"""`graph_run_resume`: has an interrupted run driven on."""

from __future__ import annotations

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.run import Run
from agent_graph.engine.commands import Resume
from agent_graph.errors import RunTerminal
from agent_graph.store.base import TERMINAL, Answered
from agent_graph.tools.params import Key, Params, RunId
from agent_graph.tools.registry import Call, tool


class ResumeParams(Params):
    run_id: RunId
    idempotency_key: Key = ""


@tool(
    "graph_run_resume", ResumeParams, title="Resume a run", scope="runs:write", idempotent=True, open_world=True,
    description="""Have an interrupted run go on now, for example when its model host is back; what was answered is
    not asked again. On a live run it changes nothing and says so (resumed false); a run that has ended is refused.
    Example: {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_resume(call: Call[ResumeParams]) -> JsonObject:
    run_id, deps = call.args.run_id, call.deps
    row = await deps.store.runs.get(run_id)
    if row.status in TERMINAL:
        message = f"run {run_id} has {row.status}; what is consumed is consumed"
        raise RunTerminal(message, run_id=run_id, status=row.status)
    said: list[JsonObject] = []

    def answered(run: Run) -> Answered | None:
        said.append({"run_id": run_id, "resumed": row.status == "interrupted", "status": run.status})
        return call.answered(said[-1], run_id=run_id)

    await deps.supervisor.ask(run_id, Resume(answered))
    return said[-1]
