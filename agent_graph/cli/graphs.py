"""`render`, `graphs` and `schema`: graphs before they run."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Any

import typer

from agent_graph.cli import sources
from agent_graph.cli.desk import Desk
from agent_graph.cli.findings import refuse_graph
from agent_graph.cli.options import AsJson, DataDir, Limit, OutFile, settings_of
from agent_graph.cli.output import (
    DONE,
    finish,
    give,
    give_bytes,
    give_json,
    one_line,
    pretty,
    refuse,
    say,
    table,
)
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import InvalidArgument


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("render")(render)
    app.command("graphs")(graphs)
    app.command("schema")(schema)


def nowhere() -> Desk:
    """A desk for what needs no data folder."""
    return Desk(settings_of(":memory:"), drives=False, remark=say)


def render(
    graph: Annotated[
        str, typer.Argument(metavar="TEMPLATE|FILE|GRAPH", help="Draw it; files: JSON, YAML.", show_default=False)
    ] = "",
    *, run_id: Annotated[str, typer.Option("--run", metavar="RUN", help="Draw how this run went.")] = "",
    param: Annotated[list[str] | None, typer.Option("--param", metavar="NAME=VALUE")] = None,
    kind: Annotated[str, typer.Option("--format", help="mermaid, json; by the extra `draw` svg, png, ascii.")]
    = "mermaid",
    direction: Annotated[str, typer.Option(help="TD, LR, BT or RL.")] = "TD",
    details: Annotated[bool, typer.Option("--details", help="Show what the nodes are configured to do.")] = False,
    output: OutFile = None, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Draw a graph as Mermaid, or how a run of it went."""

    async def work() -> int:
        settings = settings_of(data_dir)
        arguments: JsonObject = {"format": kind, "direction": direction, "include_details": details}
        source = _drawn(graph, run_id, param or [], settings=settings)
        if source.spec is not None:
            arguments["spec"] = source.spec
        elif source.graph_id:
            arguments["graph_id"] = source.graph_id
        else:
            arguments["run_id"] = run_id
        desk = nowhere() if source.spec is not None else Desk(settings, drives=False, remark=say)
        async with desk:
            answer = await desk.call("graph_render", arguments)
        if not answer["ok"]:
            if source.graph_id and answer["error_code"] == "GRAPH_NOT_FOUND":
                raise sources.unknown(graph, data_dir=settings.data_dir)
            return refuse_graph(answer, source.document, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer, to=output)
        elif kind == "png":
            give_bytes(b64decode(data["data"]), to=output)
        else:
            give(pretty(data) if kind == "json" else data["text"], to=output)
        return DONE

    finish(work(), as_json=as_json)


def _drawn(graph: str, run_id: str, params: list[str], *, settings: Any) -> sources.Source:
    if bool(graph) == bool(run_id):
        raise InvalidArgument("name a graph, or a run with --run: one of them", argument="graph")
    if not graph:
        return sources.Source()
    return sources.find(graph, params, limits=settings.limits, data_dir=settings.data_dir)


def graphs(
    *, query: Annotated[str, typer.Option(help="Only those with this in id or description.")] = "",
    limit: Limit = 50, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """List the stored graphs."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call("graph_list", {"query": query, "limit": limit})
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer)
            return DONE
        rows = [
            (each["graph_id"], each["node_count"], each["graph_version"][:19], one_line(each["description"], 80))
            for each in data["graphs"]
        ]
        give(
            table(rows, head=("GRAPH", "NODES", "VERSION", "WHAT IT IS"))
            or ("no graphs match" if query else "no graphs yet")
        )
        return DONE

    finish(work(), as_json=as_json)


def schema(*, output: OutFile = None, as_json: AsJson = False) -> None:
    """Print the JSON Schema of a graph."""

    async def work() -> int:
        from agent_graph.core.spec import json_schema

        published = json_schema()
        give_json({"ok": True, "data": published} if as_json else published, to=output)
        return DONE

    finish(work(), as_json=as_json)
