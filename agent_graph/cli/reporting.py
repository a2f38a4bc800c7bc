"""`report`: a run as one page of HTML that needs nothing else."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, OutFile, settings_of
from agent_graph.cli.output import DONE, finish, give_bytes, give_json, refuse, say
from agent_graph.core.jsonvalue import JsonObject

RUN = Annotated[str, typer.Argument(metavar="RUN", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("report")(report)


def report(run_id: RUN, *, output: OutFile = None, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Make a page of a run, to be kept or handed on: its drawing, what went in and came out, votes, budget, receipt."""

    async def work() -> int:
        from agent_graph.console.desk import Turned
        from agent_graph.console.report.making import made

        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:

            async def ask(tool: str, arguments: JsonObject) -> Any:
                return await desk.call(tool, arguments)

            try:
                page, told = await made(ask, run_id, now_ms=time.time_ns() // 1_000_000)
            except Turned as turned:
                return refuse(turned.envelope(), as_json=as_json)
        data = page.encode("utf-8", "replace")
        if not as_json or output is not None:
            give_bytes(data, to=output)
        if not told.ended:
            say(f"the run has not ended ({told.run['status']}): the report says so")
        if as_json:
            body: JsonObject = {"run_id": run_id, "status": told.run["status"], "ended": told.ended, "bytes": len(data)}
            body |= {"html": page} if output is None else {"file": str(output)}
            give_json({"ok": True, "data": body})
        return DONE

    finish(work(), as_json=as_json)
