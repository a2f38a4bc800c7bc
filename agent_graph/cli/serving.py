"""`mcp`, `daemon`, `call`, `status`, `local` and `version`: the server, its tools, and what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_graph.cli import sources
from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, Host, IdleMs, Model, Provider, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, one_line, refuse, say
from agent_graph.core.jsonvalue import parse_json
from agent_graph.errors import InputInvalid, InvalidArgument

if TYPE_CHECKING:
    from agent_graph.settings import Settings

local = typer.Typer(help="The embedded model.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("mcp")(mcp)
    app.command("daemon")(daemon)
    app.command("call")(call)
    app.command("status")(status)
    app.add_typer(local, name="local")
    app.command("version")(version)


def mcp(
    *, toolsets: Annotated[str, typer.Option(help="The tools an assistant is shown, by comma.")] = "",
    in_process: Annotated[bool, typer.Option("--in-process", help="Own the data folder, without a daemon.")] = False,
    model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "", idle_ms: IdleMs = "",
) -> None:  # fmt: skip
    """Serve the tools to an assistant over MCP, on standard input and output, through the folder's daemon."""
    from agent_graph.mcp_server import proxy, proxy_arguments, serve

    flags = {
        "data_dir": data_dir, "model": model, "ollama_host": ollama_host, "provider": provider, "toolsets": toolsets,
        "daemon_idle_ms": idle_ms,
    }  # fmt: skip
    settings = _settings(flags)
    if in_process or settings.volatile:
        raise typer.Exit(serve.main(settings))
    raise typer.Exit(proxy.serve(proxy_arguments.Arguments(flags)))


def daemon(
    *, stop: Annotated[bool, typer.Option("--stop", help="End the folder's daemon.")] = False,
    model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "", idle_ms: IdleMs = "",
    socket: Annotated[str, typer.Option(help="Listen here too.", show_default=False)] = "",
) -> None:  # fmt: skip
    """Own the data folder and serve any number of assistants over it; `agent-graph mcp` starts it by itself."""
    from agent_graph.mcp_server import daemon_process

    flags = {
        "data_dir": data_dir, "model": model, "ollama_host": ollama_host, "provider": provider,
        "daemon_idle_ms": idle_ms,
    }  # fmt: skip
    if stop:
        raise typer.Exit(daemon_process.stop(_settings(flags)))
    raise typer.Exit(daemon_process.start(flags, detached=False, socket_path=socket))


def _settings(flags: dict[str, str]) -> Settings:
    """The settings in force; ends the command where they cannot be read."""
    from agent_graph.errors import AgentGraphError
    from agent_graph.settings import load

    try:
        return load(flags)
    except AgentGraphError as refusal:
        say(f"{refusal.code}: {refusal.message}")
        raise typer.Exit(refusal.exit_code) from None


def call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", show_default=False)],
    arguments: Annotated[str, typer.Argument(metavar="JSON|-", help="Its arguments, an object.")] = "{}",
    *, as_json: AsJson = True, model: Model = "", ollama_host: Host = "", provider: Provider = "",
    data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Call a tool and print its envelope; a run it starts goes on in this process unless another owns the folder."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        settings = settings_of(data_dir, **flags)
        most, depth = 2 * max(settings.limits.spec_bytes, settings.limits.input_bytes), settings.limits.json_depth + 4
        if arguments == sources.STDIN:
            given = sources.read_json(arguments, max_bytes=most, max_depth=depth)
        else:
            given = parse_json(arguments, max_bytes=most, max_depth=depth)
        if not isinstance(given, dict):
            raise InputInvalid("a tool's arguments are a JSON object")
        async with Desk(settings, drives=True, remark=say) as desk:
            answer = await desk.call(tool, given, again="idempotency_key" in given)
            if not answer["ok"]:
                return refuse(answer, as_json=True)
            give_json(answer)
            return DONE

    finish(work(), as_json=as_json)


def status(
    *, as_json: AsJson = False, model: Model = "", ollama_host: Host = "", provider: Provider = "",
    data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Show the data folder, the model host, the runs and the settings in force with their sources."""
    flags = {"model": model, "ollama_host": ollama_host, "provider": provider}

    async def work() -> int:
        async with Desk(settings_of(data_dir, **flags), drives=False, remark=say) as desk:
            answer = await desk.call("graph_status", {})
            owner = "this process" if desk.owns else "another process, through its socket"
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        if as_json:
            give_json(answer)
        else:
            give(_standing(answer["data"], owner))
        return DONE

    finish(work(), as_json=as_json)


def _standing(data: Any, owner: str) -> str:
    from agent_graph.tools.load import said_of

    runs = ", ".join(f"{count} {name}" for name, count in data["runs"].items() if count) or "none"
    lines = [
        f"agent-graph {data['version']}",
        f"data folder  {data['data_dir']} ({data['storage']}; owned by {owner})",
        f"model        {_answering(data['provider'])}",
        *(
            f"host {name:<8}{_answering(health)}{' (the default)' if health['default'] else ''}"
            for name, health in data["hosts"].items()
        ),
        f"runs         {runs}",
        f"load         {said_of(data['capacity'])}",
        *(() if data["store"]["ok"] else (f"store        {data['store']['error_code']}: {data['store']['error']}",)),
        "settings",
    ]
    for name, setting in data["settings"].items():
        if name not in ("limits", "hosts", "redaction"):
            value = setting["value"]
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines.append(f"  {name:<20} {shown or '-':<32} {setting['source']}")
    for name, limit in data["settings"]["limits"].items():
        if limit["source"] != "default":
            lines.append(f"  limits.{name:<13} {limit['value']:<32} {limit['source']}")
    for name, rules in data["settings"]["redaction"].items():
        if rules:
            lines.append(f"  redaction.{name:<10} {', '.join(rules)}")
    return "\n".join(lines)


def _answering(health: Any) -> str:
    """A host's health as one line."""
    if not health["ok"]:
        return one_line(f"{health['error_code']}: {health['error']}")
    default = f", default {health['default_model']}" if health["default_model"] else ""
    names = ", ".join(health["models"]) or "none"
    return one_line(f"{health['provider']} at {health['host']}{default}; models: {names}")


@local.command("setup")
def setup(*, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Fetch the embedded model's weights into the data folder and check them; harmless when they are there."""

    async def work() -> int:
        from agent_graph.app import set_up_local

        settings = settings_of(data_dir)
        if settings.volatile:
            raise InvalidArgument("the weights need a data folder, and :memory: is none", argument="data_dir")
        path = await set_up_local(settings, tell=say)
        if as_json:
            give_json({"ok": True, "data": {"weights": str(path)}})
        else:
            say(f"the embedded model is ready: {path}")
        return DONE

    finish(work(), as_json=as_json)


def version(*, as_json: AsJson = False) -> None:
    """Print the version."""

    async def work() -> int:
        from agent_graph import __version__

        if as_json:
            give_json({"ok": True, "data": {"version": __version__}})
        else:
            give(f"agent-graph {__version__}")
        return DONE

    finish(work(), as_json=as_json)
