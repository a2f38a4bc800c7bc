"""`runs`, `cancel` and `signal`: runs that are there."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_graph.cli.conversation import without_words, words
from agent_graph.cli.desk import Desk, key
from agent_graph.cli.event_log import event_line
from agent_graph.cli.options import AsJson, DataDir, Host, Limit, Model, Provider, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, one_line, pretty, refuse, say, table
from agent_graph.cli.sources import read_input
from agent_graph.core.issues import suggest
from agent_graph.core.jsonvalue import JsonObject, compact
from agent_graph.errors import InvalidArgument

SHOWN = 20
YEAR_9999_MS = 253_370_764_800_000
"""Node ids that a refusal lists."""
RUN = Annotated[str, typer.Argument(metavar="RUN", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("runs")(runs)
    app.command("cancel")(cancel)
    app.command("signal")(signal)


def runs(
    action: Annotated[str, typer.Argument(metavar="[show|pin|unpin]", show_default=False)] = "",
    run_id: Annotated[str, typer.Argument(metavar="RUN", show_default=False)] = "",
    *, node: Annotated[str, typer.Option(metavar="ID", help="With show: what this node did.")] = "",
    state: Annotated[bool, typer.Option("--state", help="With show: the whole state too.")] = False,
    at: Annotated[int, typer.Option("--at", metavar="SEQ", min=-1, help="With show: the state after this event.",
                                    show_default=False)] = -1,
    status: Annotated[str, typer.Option(help="Only runs with this status.")] = "",
    graph: Annotated[str, typer.Option(help="Only runs of this graph.")] = "",
    limit: Limit = 20, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """List the runs, newest first, show one of them, or keep it from `prune` (pin) or no longer (unpin)."""

    async def work() -> int:
        if action not in ("", "show", "pin", "unpin") or bool(action) != bool(run_id):
            hint = f"; to see one: agent-graph runs show {action}" if action.startswith("run-") else ""
            raise typer.BadParameter(f"say `runs`, or `runs show RUN`, `runs pin RUN`, `runs unpin RUN`{hint}")
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            if action in ("pin", "unpin"):
                return _pin(await desk.call("graph_run_pin", {"run_id": run_id, "pinned": action == "pin"}), as_json)
            if node:
                return await _node(desk, run_id, node, as_json=as_json)
            if run_id and at >= 0:
                return _state(await desk.call("graph_run_state", {"run_id": run_id, "at": at}), as_json)
            if run_id:
                return _show(await desk.call("graph_run_get", {"run_id": run_id, "include_state": state}), as_json)
            asked: JsonObject = {"status": status, "graph_id": graph, "limit": limit}
            return _list(await desk.call("graph_run_list", asked), as_json, filtered=bool(status or graph))

    finish(work(), as_json=as_json)


def _list(answer: JsonObject, as_json: bool, *, filtered: bool) -> int:
    if not answer["ok"]:
        return refuse(answer, as_json=as_json)
    data: Any = answer["data"]
    if as_json:
        give_json(answer)
        return DONE
    rows = [(run["run_id"], run["status"], run["graph_id"], moment(run["created_at_ms"])) for run in data["runs"]]
    give(table(rows, head=("RUN", "STATUS", "GRAPH", "CREATED")) or ("no runs match" if filtered else "no runs yet"))
    return DONE


def _pin(answer: JsonObject, as_json: bool) -> int:
    if not answer["ok"]:
        return refuse(answer, as_json=as_json)
    if as_json:
        give_json(answer)
    else:
        data: Any = answer["data"]
        say(f"{data['run_id']} is {'pinned' if data['pinned'] else 'not pinned'}")
    return DONE


def _state(answer: JsonObject, as_json: bool) -> int:
    if not answer["ok"]:
        return refuse(answer, as_json=as_json)
    if as_json:
        give_json(answer)
        return DONE
    data: Any = answer["data"]
    say(f"{data['run_id']} after event {data['state_version']}")
    give(pretty(data["value"]))
    return DONE


def _show(answer: JsonObject, as_json: bool) -> int:
    if not answer["ok"]:
        return refuse(answer, as_json=as_json)
    if as_json:
        give_json(answer)
        return DONE
    run: Any = answer["data"]
    usage = run["usage"]
    lines = [
        f"{run['run_id']}  {run['status']}",
        f"graph    {run['graph_id']} {run['graph_version']}",
        f"started  {moment(run['started_at_ms'])}",
        f"ended    {moment(run['finished_at_ms'])}",
        "usage    " + _counts(usage),
    ]
    if origin := run.get("forked_from"):
        lines.append(
            f"forked   from {origin['run_id']} after event {origin['seq']}, with {_counts(usage['inherited'])}"
        )
    lines += [f"budget   {_budget(name, counted)}" for name, counted in run["budget"].items()]
    if error := run.get("error"):
        lines.append(f"error    {error.get('code', '')}: {one_line(str(error.get('message', '')))}")
    lines += [
        f"failed   {node}: {'' if one['code'] == 'ITEMS_FAILED' else one['code'] + ' '}{one_line(str(one['message']))}"
        for node, one in run.get("errors", {}).items()
    ]
    lines += [f"waits    for {waited(one)}" for one in run.get("waiting_for", [])]
    lines += ["pinned   prune leaves it alone"] if run.get("pinned") else []
    lines += ["pruned   its events are kept no longer"] if run.get("pruned") else []
    if run.get("skipped"):
        lines.append(f"skipped  {', '.join(run['skipped'])}")
    for name, title in (("final_state", "result"), ("state", "state")):
        if name in run:
            lines += ["", f"{title}:", pretty(run[name])]
    give("\n".join(lines))
    return DONE


def _counts(usage: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in usage.items() if name != "inherited")


def _budget(name: str, counted: Any) -> str:
    if not isinstance(counted, dict) or "max" not in counted:  # what on_budget leads to
        return f"{name} {counted if isinstance(counted, str) else compact(counted)}"
    more = [f"{counted[key]} {word}" for key, word in (("reserved", "reserved"), ("recorded", "known"))
            if counted.get(key) and (key == "reserved" or counted["used"] == "unknown")]  # fmt: skip
    return f"{name} {counted['used']} of {counted['max']}" + (f" ({', '.join(more)})" if more else "")


async def _node(desk: Desk, run_id: str, node: str, *, as_json: bool) -> int:
    """The events of one node, whole."""
    found: list[JsonObject] = []
    cursor: Any = 0
    while True:
        answer = await desk.call("graph_run_events", {"run_id": run_id, "cursor": cursor, "limit": 200})
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        found += [event for event in data["events"] if event.get("node_id") == node]
        cursor = data["next_cursor"]
        if not data["truncated"]:
            break
    if not found:
        await _check_node(desk, run_id, node)
    if as_json:
        give_json({"ok": True, "data": {"run_id": run_id, "node_id": node, "events": list(found)}, "run_id": run_id})
    else:
        asked: Any = await desk.call("graph_run_state", {"run_id": run_id, "at": 0, "node": node})
        calls = {one["seq"]: one["messages"] for one in asked["data"]["calls"]} if asked["ok"] else {}
        lines = [
            line for event in found
            for line in (event_line(without_words(event), whole=True), *words(event, calls.get(event["seq"])))
        ]  # fmt: skip
        give("\n".join(lines) or f"{node} did nothing in this run")
    return DONE


async def _check_node(desk: Desk, run_id: str, node: str) -> None:
    """Raises `InvalidArgument` where the run's graph has no such node."""
    run: Any = await desk.call("graph_run_get", {"run_id": run_id})
    asked = {"graph_id": run["data"]["graph_id"], "graph_version": run["data"]["graph_version"]} if run["ok"] else {}
    graph: Any = await desk.call("graph_inspect", asked)
    known = [one["id"] for one in graph["data"]["nodes"]] if graph["ok"] else [node]
    if node not in known:
        listed = ", ".join(known[:SHOWN]) + (" ..." if len(known) > SHOWN else "")
        raise InvalidArgument(
            f"the graph of {run_id} has no node {node!r}{suggest(node, known) or ';'} it has {listed}", argument="node"
        )


def waited(one: Any) -> str:
    """What a run waits for, in words."""
    match one["kind"]:
        case "approval":
            return f"a decision on {one['approval_id']}"
        case "signal":
            until = f" until {moment(one['expires_at_ms'])}" if "expires_at_ms" in one else ""
            return f"a message {one['name']}{until} ({one['node_id']})"
        case _:
            return f"{moment(one['due_at_ms'])} ({one['node_id']})"


def moment(at_ms: int | None) -> str:
    """A time as people of this place read it."""
    if at_ms is None:
        return ""
    if at_ms >= YEAR_9999_MS:  # a timer may wait for later than a `datetime` can say
        return "after the year 9998"
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


# -- cancelling ----------------------------------------------------------------------------------------------------


def cancel(
    run_id: RUN,
    *, reason: Annotated[str, typer.Option(help="Why; kept in the run's events.", show_default=False)],
    as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """End a run: calls in flight are closed, what was finished stays."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=True, remark=say) as desk:
            asked: JsonObject = {"run_id": run_id, "reason": reason, "idempotency_key": key()}
            answer = await desk.call("graph_run_cancel", asked)
            if not answer["ok"]:
                return refuse(answer, as_json=as_json)
            data: Any = answer["data"]
            if as_json:
                give_json(answer)
            elif data["terminal"]:
                say(f"{run_id} has {data['status']} already; nothing was changed")
            else:
                say(f"{run_id} is cancelled")
            return DONE

    finish(work(), as_json=as_json)


# -- messages ------------------------------------------------------------------------------------------------------


def signal(
    run_id: RUN,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What a signal node waits for.", show_default=False)],
    text: Annotated[str | None, typer.Argument(metavar="TEXT|-", help="What it says; {...} is read as JSON, - is "
                                               "standard input.", show_default=False)] = None,
    *, input_: Annotated[Path | None, typer.Option("--input", metavar="FILE", help="What it says, as JSON.")] = None,
    as_json: AsJson = False, model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Send a message to a run; it goes on at once, in the process that owns the data folder or in this one."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        from agent_graph.cli.progress import now_ms, view
        from agent_graph.cli.watching import see_through

        settings, since_ms = settings_of(data_dir, **flags), now_ms()
        payload = read_input(text, input_, limits=settings.limits)
        async with Desk(settings, drives=True, remark=say) as desk:
            asked: JsonObject = {"run_id": run_id, "name": name, "payload": payload, "idempotency_key": key()}
            answer = await desk.call("graph_run_signal", asked)
            if not answer["ok"]:
                return refuse(answer, as_json=as_json)
            data: Any = answer["data"]
            if as_json:
                give_json(answer)
                return DONE
            if not data["delivered"]:
                say(f"nobody waits for {name} yet; it is kept")
                return DONE
            say(f"{data['node_id']} has it")
            if not desk.owns:
                say(f"{run_id} goes on in the process that owns the data folder")
                return DONE
            return await see_through(desk, run_id, view=view(since_ms=since_ms), as_json=False)

    finish(work(), as_json=as_json)
