"""`fork` and `compare`: a new run that begins with another's, and where two runs part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_graph.cli import sources
from agent_graph.cli.desk import Desk, key
from agent_graph.cli.options import AsJson, DataDir, Host, Model, OutFile, Provider, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, refuse, say, table
from agent_graph.cli.running import BUDGET, check_output, see
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact
from agent_graph.errors import InvalidArgument

DIFFERS = 1
SET = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A key of the state; the value is JSON, or else a text."),
]
OUTPUT_OF = Annotated[
    list[str] | None,
    typer.Option("--output-of", metavar="NODE=TEXT", help="What an llm node says next, without being asked."),
]
MODEL_OF = Annotated[
    list[str] | None, typer.Option("--model-of", metavar="NODE=MODEL", help="The model an llm node asks.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("fork")(fork)
    app.command("compare")(compare)


def fork(
    run_id: Annotated[str, typer.Argument(metavar="RUN", show_default=False)],
    *, before: Annotated[str, typer.Option(metavar="NODE", help="Before this node's firing.")] = "",
    nth: Annotated[int, typer.Option(min=0, help="With --before: which firing, from 1; 0 = the latest.")] = 0,
    at: Annotated[int, typer.Option(metavar="SEQ", min=-1, help="After this event; 0: all from the start.",
                                    show_default=False)] = -1,
    set_: SET = None, patch: Annotated[Path | None, typer.Option(metavar="FILE", help="A JSON Patch of the state.",
                                                                 show_default=False)] = None,
    frame: Annotated[str, typer.Option(metavar="PATH", help="Change the state of this open frame, as map#1[2].")] = "",
    output_of: OUTPUT_OF = None, model_of: MODEL_OF = None,
    graph_version: Annotated[str, typer.Option(metavar="VERSION", help="Go on in another version of the graph.")] = "",
    budget: BUDGET = None, output: OutFile = None, as_json: AsJson = False, model: Model = "", ollama_host: Host = "",
    provider: Provider = "", data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Start a new run with what another has done, from a point on; none of it is paid again."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        settings = settings_of(data_dir, **flags)
        check_output(output)
        asked: JsonObject = {
            "run_id": run_id, "before": before, "nth": nth, "at": at, "graph_version": graph_version,
            "patch": _patch(set_ or [], patch, settings.limits), "frame": frame,
            "outputs": dict(sources.pairs(output_of or [], option="output-of")),
            "models": dict(sources.pairs(model_of or [], option="model-of")), "model": model,
            **sources.read_budgets(budget or []), "idempotency_key": key(),
        }  # fmt: skip
        async with Desk(settings, drives=True, remark=say, sends=("model",) if model else ()) as desk:
            answer = await desk.call("graph_run_fork", asked)
            if not answer["ok"]:
                return refuse(answer, as_json=as_json)
            data: Any = answer["data"]
            taken = data["taken_over"]
            say(f"takes over {taken['events']} events: {taken['llm_calls']} model call(s) are not paid again")
            if data["asks"]:
                say(f"{len(data['asks'])} decision(s) are asked anew before it goes on")
            return await see(desk, answer, as_json=as_json, output=output)

    finish(work(), as_json=as_json)


def _patch(given: list[str], file: Path | None, limits: Any) -> list[JsonValue]:
    """The steps of a file, and one for each key that is set."""
    from agent_graph.core.jsonvalue import parse_json
    from agent_graph.errors import AgentGraphError

    steps: list[JsonValue] = []
    if file is not None:
        read = sources.read_json(str(file), max_bytes=limits.input_bytes, max_depth=limits.json_depth)
        if not isinstance(read, list):
            raise InvalidArgument(f"{file} holds no JSON Patch: that is a list of steps", argument="patch")
        steps += read
    for name, text in sources.pairs(given, option="set").items():
        try:
            value: JsonValue = parse_json(text, max_bytes=limits.input_bytes, max_depth=limits.json_depth)
        except AgentGraphError:
            value = text
        steps.append({"op": "add", "path": "/" + name.replace("~", "~0").replace("/", "~1"), "value": value})
    return steps


def compare(
    a: Annotated[str, typer.Argument(metavar="RUN", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="RUN", show_default=False)],
    *, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Compare two runs, firing by firing; the exit code is 1 where they differ."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call("graph_run_compare", {"run_id": a, "other_run_id": b, "limit": 200})
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer)
        else:
            give("\n".join(_compared(data)))
        return DONE if data["same"] else DIFFERS

    finish(work(), as_json=as_json)


def _compared(data: Any) -> list[str]:
    if not data["same_graph"]:
        say("they are runs of different graphs: firings are matched by the names of their nodes")
    elif not data["same_version"]:
        say("they are runs of different versions of the graph")
    first = data["first_divergence"]
    where = f" at {first['node_path']}" if first and first["node_path"] else ""
    lines = ["same" if data["same"] else f"they part{where}: {', '.join(first['differs'])}", ""]
    rows = [
        (row["node_path"], ", ".join(row["differs"]) or "same", _side(row["a"]), _side(row["b"]))
        for row in data["nodes"]
    ]
    lines.append(table(rows, head=("FIRING", "DIFFERS", data["a"]["run_id"], data["b"]["run_id"])))
    for name in ("a", "b"):
        used = data[name]["usage"]
        lines.append(f"{name}  {data[name]['status']}, {used['llm_calls']} model call(s), {used['wall_clock_ms']} ms")
    if data["state_patch"]:
        more = "" if data["state_patch_complete"] else " (and more)"
        lines += ["", f"state{more}:", *(compact(step) for step in data["state_patch"])]
    return lines


def _side(side: Any) -> str:
    if side is None:
        return "-"
    told = f"{side['status']}, {side['llm_calls']} call(s), {side['tokens']} tokens"
    return told + (", taken over" if side.get("taken_over") else "")
