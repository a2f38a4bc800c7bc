"""`replay`: a recorded run again, with the answers it recorded, through its own graph or another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agent_graph.cli import sources
from agent_graph.cli.desk import Desk, key
from agent_graph.cli.options import AsJson, DataDir, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, refuse, say
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import InvalidArgument
from agent_graph.settings import Settings

DIFFERS = 1
LEVEL = Annotated[
    str,
    typer.Option(
        metavar="verify|replay|rerun",
        help="verify: the record against itself; replay: a graph with the recorded answers; rerun: a new run, and "
        "models are asked.",
    ),
]
LEVELS = ("verify", "replay", "rerun")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("replay")(replay)


def replay(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", show_default=False)],
    *, graph: Annotated[str, typer.Option(metavar="FILE|GRAPH", help="Another graph to drive; a file is JSON or "
                                          "YAML.")] = "",
    level: LEVEL = "replay",
    as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Replay recorded runs: no model is asked. Says of each where its way differs, or that it is the same."""

    async def work() -> int:
        if level not in LEVELS:
            raise InvalidArgument(f"--level is {' or '.join(LEVELS)}", argument="level")
        if graph and level != "replay":
            raise InvalidArgument(f"{level} is about the recorded graph; leave --graph out", argument="graph")
        settings = settings_of(data_dir)
        if level == "rerun":
            return await _rerun(settings, runs, as_json=as_json)
        source: JsonObject = {}
        if graph:
            found = sources.find(graph, [], limits=settings.limits, data_dir=settings.data_dir)
            source = {"graph_id": found.graph_id} if found.spec is None else {"spec": found.spec}
        answers: list[JsonObject] = []
        async with Desk(settings, drives=False, remark=say) as desk:
            for run_id in runs:
                answer = await desk.call("graph_run_replay", {"run_id": run_id, "level": level, **source})
                if not answer["ok"]:
                    return refuse(answer, as_json=as_json)
                answers.append(answer)
        same = all(answer["data"]["same"] for answer in answers)  # type: ignore[call-overload,index]  # an object
        if as_json:
            many: JsonObject = {"ok": True, "data": {"replays": [answer["data"] for answer in answers]}}
            give_json(answers[0] if len(answers) == 1 else many)
        else:
            give("\n".join(_line(answer["data"]) for answer in answers))
        return DONE if same else DIFFERS

    finish(work(), as_json=as_json)


async def _rerun(settings: Settings, runs: list[str], *, as_json: bool) -> int:
    """A new run with the input of the recorded one, from its very beginning."""
    from agent_graph.cli.running import see

    if len(runs) != 1:
        raise InvalidArgument(
            "one run at a time is run again: it is a new one, and costs what it costs", argument="runs"
        )
    async with Desk(settings, drives=True, remark=say) as desk:
        asked: JsonObject = {"run_id": runs[0], "at": 0, "idempotency_key": key()}
        say("a new run with the same input: models are asked, and may say something else")
        return await see(desk, await desk.call("graph_run_fork", asked), as_json=as_json, output=None)


def _line(data: Any) -> str:
    said = f"{data['run_id']}  "
    if data["level"] == "verify":
        wrong = [f"{name}: {one}" for name, one in data["checks"].items() if one not in (True, "none")]
        return said + ("; ".join(wrong) or f"the record holds  {data['record_digest']}")
    lines = [said + ("same" if data["same"] else _differs(data["divergence"], data))]
    lines += [f"  no recorded answer: {one['node_path']} ({one['why']})" for one in data["unanswered"]]
    lines += [f"  answered another question: {path}" for path in data["asked_otherwise"]]
    return "\n".join(lines)


def _differs(found: Any, data: Any) -> str:
    where = found["node_path"] or "the run"
    was, now = data["recorded_status"], data["status"]
    ended = now if now == was else f"{was} -> {now}"
    return (
        f"differs at {where} (seq {found['seq']}): {_short(found['recorded'])} -> {_short(found['instead'])}; {ended}"
    )


def _short(fact: Any) -> str:
    if fact is None:
        return "nothing"
    targets = fact.get("targets")
    return f"{fact['type']}" + (f" to {', '.join(targets) or 'END'}" if targets is not None else "")
