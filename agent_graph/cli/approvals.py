"""`approvals`: what waits for a person, and the decision."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agent_graph.cli.asking import described
from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, Host, Limit, Model, Provider, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, one_line, refuse, say, table
from agent_graph.core.jsonvalue import JsonObject

APPROVAL = Annotated[str, typer.Argument(metavar="APPROVAL", show_default=False)]
group = typer.Typer(help="What waits for a person: list, show, decide.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="approvals")


@group.command("list")
def list_(
    *, run_id: Annotated[str, typer.Option("--run", metavar="RUN", help="Only those of this run.")] = "",
    status: Annotated[str, typer.Option(help="Only those with this status, or all.")] = "pending",
    limit: Limit = 100, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """List what waits for a decision, oldest first."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            asked: JsonObject = {"run_id": run_id, "status": status, "limit": limit}
            answer = await desk.call("graph_approval_list", asked)
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer)
            return DONE
        rows = [
            (gate["approval_id"], gate["status"], gate["graph_id"], gate["node_id"], one_line(gate["prompt"], 60))
            for gate in data["approvals"]
        ]
        none = "nothing waits for a decision" if status == "pending" and not run_id else "no approvals match"
        give(table(rows, head=("APPROVAL", "STATUS", "GRAPH", "NODE", "WHAT IS ASKED")) or none)
        return DONE

    finish(work(), as_json=as_json)


@group.command("show")
def show(approval: APPROVAL, *, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Show exactly what is decided on."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call("graph_approval_get", {"approval_id": approval})
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer)
            return DONE
        gate = data["approval"]
        give(described(gate, whole=True) + "\n" + _standing(gate))
        return DONE

    finish(work(), as_json=as_json)


def _standing(gate: Any) -> str:
    if gate["status"] == "pending":
        return f"To decide: agent-graph approvals decide {gate['approval_id']} {'|'.join(gate['allowed_decisions'])}"
    lines = [f"It is {gate['status']}."]
    for vote in gate["votes"]:
        note = f": {one_line(vote['decision_note'])}" if vote.get("decision_note") else ""
        lines.append(f"{vote['decision']} by {one_line(vote['decided_by'])} ({vote['via']}){note}")
    return "\n".join(lines)


@group.command("decide")
def decide(
    approval: APPROVAL,
    decision: Annotated[str, typer.Argument(metavar="approve|reject|request_changes", show_default=False)],
    *, note: Annotated[str, typer.Option(help="Why, or what to change.")] = "",
    by: Annotated[str, typer.Option(help="Whose decision it is; you, when left out.")] = "",
    as_json: AsJson = False, model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Decide; the run goes on at once, in the process that owns the data folder or in this one."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        from agent_graph.cli import watching
        from agent_graph.cli.progress import now_ms, view

        since_ms = now_ms()
        async with Desk(settings_of(data_dir, **flags), drives=True, remark=say) as desk:
            answer = await watching.decide(desk, approval, decision, note=note, by=by)
            if not answer["ok"]:
                return refuse(answer, as_json=as_json)
            data: Any = answer["data"]
            run_id = data["run"]["run_id"]
            if as_json:
                give_json(answer)
                return DONE
            say(f"{approval}: {data['approval']['status']}")
            if not desk.owns:
                say(f"{run_id} goes on in the process that owns the data folder")
                return DONE
            return await watching.see_through(desk, run_id, view=view(since_ms=since_ms), as_json=False)

    finish(work(), as_json=as_json)
