"""`run` and `resume`: start a run, or go on with one, and see it through."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_graph.cli import sources
from agent_graph.cli.desk import Desk, key
from agent_graph.cli.findings import lines, refuse_graph
from agent_graph.cli.options import AsJson, DataDir, Host, Model, OutFile, Provider, settings_of
from agent_graph.cli.output import finish, refuse, say
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.errors import InvalidArgument

GRAPH = Annotated[
    str,
    typer.Argument(metavar="TEMPLATE|FILE|GRAPH", help="What to run; a file is JSON or YAML.", show_default=False),
]
TEXT = Annotated[
    str | None, typer.Argument(metavar="TEXT|-", help="The input; - reads it from stdin.", show_default=False)
]
PARAMS = Annotated[list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A template's parameter.")]
INPUT = Annotated[Path | None, typer.Option("--input", metavar="FILE", help="The input as JSON.", show_default=False)]

BUDGET = Annotated[
    list[str] | None,
    typer.Option("--budget", metavar="NAME=VALUE", help="What it may use: max_llm_calls=20, on_budget=pause ..."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("run")(run)
    app.command("resume")(resume)


def run(
    graph: GRAPH, text: TEXT = None, *, param: PARAMS = None, input_: INPUT = None, budget: BUDGET = None,
    output: OutFile = None,
    as_json: AsJson = False, thread_id: Annotated[str, typer.Option(help="Your name for related runs.")] = "",
    model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Run a template, a graph in a file or a stored graph: progress on stderr, the result alone on stdout."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        settings = settings_of(data_dir, **flags)
        check_output(output)
        budgets = sources.read_budgets(budget or [])
        source = sources.find(graph, param or [], limits=settings.limits, data_dir=settings.data_dir)
        if text is None and input_ is None and source.template:
            message = "give the text as the second argument, or - for standard input, or --input FILE.json"
            raise InvalidArgument(f"{graph} works on an input: {message}", argument="input")
        value = sources.read_input(text, input_, limits=settings.limits)
        async with Desk(settings, drives=True, remark=say, sends=("model",)) as desk:
            made = await sources.stored(desk, source, tell=say)
            if not made["ok"]:
                if made["error_code"] == "GRAPH_NOT_FOUND":
                    raise sources.unknown(graph, data_dir=settings.data_dir)
                return refuse_graph(made, source.document, as_json=as_json)
            _warn(source, made)
            more: JsonObject = {"thread_id": thread_id, "model": settings.model, **budgets}
            started = await _start(desk, made, value, more)
            return await see(desk, started, as_json=as_json, output=output)

    finish(work(), as_json=as_json)


def _warn(source: sources.Source, made: JsonObject) -> None:
    """The checker's warnings about a graph in a file, before anything is paid for."""
    data: Any = made["data"]
    if source.document is not None:
        for text in lines(source.document, data["warnings"]):
            say(text)


async def _start(desk: Desk, made: JsonObject, value: JsonValue, more: JsonObject) -> JsonObject:
    arguments: JsonObject = {
        "graph_id": made["graph_id"], "graph_version": made["graph_version"], "input": value, **more,
        "idempotency_key": key(),
    }  # fmt: skip
    return await desk.call("graph_run_start", arguments)


async def see(desk: Desk, started: JsonObject, *, as_json: bool, output: Path | None) -> int:
    """Watch the run that was started, to its end; the exit code."""
    from agent_graph.cli.progress import view
    from agent_graph.cli.watching import see_through

    if not started["ok"]:
        return refuse(started, as_json=as_json)
    run_id = str(started["run_id"])
    say(f"{run_id}")
    return await see_through(desk, run_id, view=view(), as_json=as_json, output=output)


def resume(
    run_id: Annotated[str, typer.Argument(metavar="RUN", show_default=False)],
    *, from_: Annotated[str, typer.Option("--from", metavar="failed", help="failed: a new run from before the firing "
                                          "that failed this one.", show_default=False)] = "",
    output: OutFile = None,
    as_json: AsJson = False, model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Go on with a run that was stopped, or watch one that goes on; what was answered is not asked again."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        settings = settings_of(data_dir, **flags)
        check_output(output)
        if from_ not in ("", "failed"):
            raise InvalidArgument("--from is failed; from elsewhere: agent-graph fork", argument="from")
        async with Desk(settings, drives=True, remark=say) as desk:
            if from_:
                answer = await desk.call("graph_run_fork", {"run_id": run_id, "failed": True, "idempotency_key": key()})
            else:
                answer = await desk.resume(run_id)
            return await see(desk, answer, as_json=as_json, output=output)

    finish(work(), as_json=as_json)


def check_output(path: Path | None) -> None:
    """Before anything is paid for: the result can be written there."""
    if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise InvalidArgument(f"{path} cannot be written", argument="output")
