"""`approvals`: what waits for a person, the decision, and what was decided."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_graph.cli.asking import described
from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, Host, Limit, Model, OutFile, Provider, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, one_line, refuse, say, table
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import InvalidArgument, StoreBusy

if TYPE_CHECKING:
    from agent_graph.engine.approvers import Proof
    from agent_graph.settings import Settings

APPROVAL = Annotated[str, typer.Argument(metavar="APPROVAL", show_default=False)]
RUN = Annotated[str, typer.Option("--run", metavar="RUN", help="Only those of this run.")]
GRAPH = Annotated[str, typer.Option("--graph", metavar="GRAPH", help="Only those of runs of this graph.")]
NOTE = Annotated[str, typer.Option(help="Why, or what to change.")]
BY = Annotated[str, typer.Option(help="Whose decision it is; you, when left out.")]
INSTEAD_OF = Annotated[str, typer.Option("--for", metavar="NAME", help="In whose place it is decided.")]
APPROVER = Annotated[
    str,
    typer.Option("--approver", metavar="NAME", help="Prove to be NAME by the secret; without a terminal from stdin."),
]
DIGEST = Annotated[str, typer.Option("--digest", help="Of the subject you saw: refused when it has changed.")]
SUBJECT = Annotated[
    str, typer.Option("--subject", metavar="FILE", help="With edit: what is to be in its place; - reads stdin.")
]
PATCH = Annotated[
    str, typer.Option("--patch", metavar="JSON|@FILE", help="With edit: a JSON Patch (RFC 6902) on the subject.")
]
HEAD: Final = ("APPROVAL", "STATUS", "GRAPH", "NODE", "WHAT IS ASKED")
LOOK_AGAIN_S: Final = 1.0
group = typer.Typer(
    help="What waits for a person: list, show, decide, log.", no_args_is_help=True, rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="approvals")


@group.command("list")
def list_(
    *, run_id: RUN = "", graph: GRAPH = "",
    status: Annotated[str, typer.Option(help="Only those with this status, or all.")] = "pending",
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and tell what comes and goes, until Ctrl-C.")] = False,
    limit: Limit = 100, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """List what waits for a decision, oldest first."""
    asked: JsonObject = {"run_id": run_id, "graph_id": graph, "status": status, "limit": limit}

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call("graph_approval_list", asked)
            if not answer["ok"]:
                return refuse(answer, as_json=as_json)
        if watch:
            return await _watch(settings_of(data_dir), asked, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer)
            return DONE
        none = "nothing waits for a decision" if status == "pending" and not run_id + graph else "no approvals match"
        give(table(map(_row, data["approvals"]), head=HEAD) or none)
        return DONE

    finish(work(), as_json=as_json)


def _row(gate: Any) -> tuple[str, ...]:
    return gate["approval_id"], gate["status"], gate["graph_id"], gate["node_id"], one_line(gate["prompt"], 60)


async def _watch(settings: Settings, asked: JsonObject, *, as_json: bool) -> int:
    """A line for each approval that comes or changes. Nobody is told by another process's folder, so it looks, and
    lets go of the folder in between: others decide meanwhile."""
    from agent_graph.core.jsonvalue import compact

    known: dict[str, str] = {}
    while True:
        async with Desk(settings, drives=False, remark=say) as desk:
            shown = {str(gate["approval_id"]): gate async for gate in _every(desk, {**asked, "limit": 200})}
            for name in [name for name in known if name not in shown]:
                gone: Any = await desk.call("graph_approval_get", {"approval_id": name})
                del known[name]
                if gone["ok"]:
                    shown[name] = gone["data"]["approval"]
        for name, gate in shown.items():
            if known.get(name) != gate["status"]:
                give(compact(gate) if as_json else "  ".join(_row(gate)))
            if asked["status"] in (gate["status"], "all"):
                known[name] = str(gate["status"])
        await asyncio.sleep(LOOK_AGAIN_S)


async def _every(desk: Desk, asked: JsonObject) -> AsyncIterator[Any]:
    """The approvals of all pages."""
    cursor = ""
    while True:
        answer: Any = await desk.call("graph_approval_list", {**asked, "cursor": cursor})
        if not answer["ok"]:
            raise StoreBusy(str(answer["error"]))
        for gate in answer["data"]["approvals"]:
            yield gate
        cursor = answer["data"]["next_cursor"] or ""
        if not cursor:
            return


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
    lines = [f"Its digest: {gate['subject_digest']}"]
    if "original_subject" in gate:
        from agent_graph.cli.edits import differing

        lines += ["It was edited:", differing(gate["original_subject"], gate["subject"])]
    if gate["status"] != "pending":
        lines.append(f"It is {gate['status']}.")
    for vote in gate["votes"]:
        note = f": {one_line(vote['decision_note'])}" if vote.get("decision_note") else ""
        principal, asker = vote.get("principal", vote["decided_by"]), vote.get("on_behalf_of")
        who = one_line(vote["decided_by"]) + ("" if principal == vote["decided_by"] else f" as {one_line(principal)}")
        who += f" for {one_line(asker)}" if asker else ""
        lines.append(f"{vote['decision']} by {who} ({vote['via']}){note}")
    if gate["status"] == "pending":
        lines.append(
            f"To decide: agent-graph approvals decide {gate['approval_id']} {'|'.join(gate['allowed_decisions'])}"
        )
    return "\n".join(lines)


@group.command("decide")
def decide(
    approval: APPROVAL,
    decision: Annotated[str, typer.Argument(metavar="approve|reject|request_changes|edit", show_default=False)],
    *, note: NOTE = "", by: BY = "", instead_of: INSTEAD_OF = "", approver: APPROVER = "", digest: DIGEST = "",
    subject: SUBJECT = "", patch: PATCH = "",
    as_json: AsJson = False, model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Decide; the run goes on at once, in the process that owns the data folder or in this one."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        from agent_graph.cli import watching
        from agent_graph.cli.progress import now_ms, view

        since_ms = now_ms()
        async with Desk(settings_of(data_dir, **flags), drives=True, remark=say) as desk:
            seen = await desk.call("graph_approval_get", {"approval_id": approval})
            asked: JsonObject = {}
            proof: Proof | None = None
            if seen["ok"]:  # else the decision is refused with what is wrong
                asked, proof = await _asked(
                    desk, seen, decision, subject=subject, patch=patch, digest=digest, approver=approver
                )
            answer = await watching.decide(
                desk, approval, decision, note=note, by=by or (proof.name if proof else ""), proof=proof,
                more={**asked, **({"on_behalf_of": instead_of} if instead_of else {})},
            )  # fmt: skip
            if not answer["ok"]:
                return refuse(answer, as_json=as_json)
            data: Any = answer["data"]
            run_id = data["run"]["run_id"]
            if as_json:
                give_json(answer)
                return DONE
            say(f"{approval}: {_came_to(data['approval'])}")
            if not desk.owns:
                say(f"{run_id} goes on in the process that owns the data folder")
                return DONE
            return await watching.see_through(desk, run_id, view=view(since_ms=since_ms), as_json=False)

    finish(work(), as_json=as_json)


async def _asked(
    desk: Desk, seen: Any, decision: str, *, subject: str, patch: str, digest: str, approver: str
) -> tuple[JsonObject, Proof | None]:
    """What goes with the decision: the patch of an edit, of which subject it is, and who proves to be there."""
    from agent_graph.cli.edits import difference, patch_for
    from agent_graph.cli.proving import proof_for

    gate = seen["data"]["approval"]
    more: JsonObject = {"subject_digest": digest} if digest else {}
    if decision == "edit" and gate["status"] == "pending":
        steps = await patch_for(gate["subject"], patch=patch, replacement=subject, limits=desk.settings.limits)
        if shown := difference(gate["subject"], steps):
            say(shown)
        more = {"patch": list(steps), "subject_digest": digest or gate["subject_digest"]}
    elif subject or patch:
        raise InvalidArgument("--subject and --patch belong to the decision edit", argument="patch")
    return more, await proof_for(desk.settings, gate, approver=approver)


def _came_to(gate: Any) -> str:
    if gate["status"] != "pending":
        return str(gate["status"])
    return f"your vote is kept; {gate['quorum']} people have to approve"


@group.command("log")
def log(
    *, run_id: RUN = "", graph: GRAPH = "",
    form: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
    output: OutFile = None, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """What was asked and decided, by whom and by which way, oldest first."""

    async def work() -> int:
        from agent_graph.tools import audit

        if form not in ("table", "csv", "json"):
            raise InvalidArgument("--format is table, csv or json", argument="format")
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            asked: JsonObject = {"run_id": run_id, "graph_id": graph, "status": "all", "limit": 200}
            rows = audit.lines([gate async for gate in _every(desk, asked)])
        if as_json:
            give_json({"ok": True, "data": {"log": list(rows)}}, to=output)
        else:
            _give_log(rows, form, output)
        return DONE

    finish(work(), as_json=as_json)


def _give_log(rows: list[JsonObject], form: str, output: Path | None) -> None:
    from agent_graph.cli.output import pretty
    from agent_graph.tools import audit

    if form == "csv":
        give(audit.as_csv(rows), to=output)
    elif form == "json":
        give(pretty(list(rows)), to=output)
    else:
        names = ("at", "graph_id", "node_path", "approval_id", "what", "decision", "by", "via", "note")
        heads = [name.partition("_")[0].upper() for name in names]
        shown = ([one_line(str(row.get(name, "")), 60) for name in names] for row in rows)
        give(table(shown, head=heads) or "nothing was asked", to=output)
