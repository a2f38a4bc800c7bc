"""`serve` and `tokens create|list|revoke`: the server over HTTP, and who may come in."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, Host, Model, Provider, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, refuse, say, table
from agent_graph.core.jsonvalue import JsonObject

tokens = typer.Typer(help="Who may come in over HTTP.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Who it is for.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("serve")(serve)
    app.add_typer(tokens, name="tokens")


def serve(
    *, host: Annotated[str, typer.Option("--host", help="The address to listen on.", show_default="127.0.0.1")] = "",
    port: Annotated[str, typer.Option("--port", help="Its port; 0 takes a free one.", show_default="8765")] = "",
    auth: Annotated[
        str, typer.Option("--auth", help="required, or none on the loopback address.", show_default="required")
    ] = "",
    toolsets: Annotated[str, typer.Option(help="The tools an assistant is shown, by comma.")] = "",
    model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Serve the tools over HTTP, for several people or machines, and the console in a browser; /healthz and /metrics
    tell how it goes."""
    from agent_graph.console.serving import beside
    from agent_graph.errors import AgentGraphError
    from agent_graph.mcp_server.http.serving import main
    from agent_graph.settings import load

    flags = {
        "data_dir": data_dir, "model": model, "ollama_host": ollama_host, "provider": provider, "toolsets": toolsets,
        "http_host": host, "http_port": port, "http_auth": auth,
    }  # fmt: skip
    try:
        settings = load(flags)
    except AgentGraphError as refusal:
        say(f"{refusal.code}: {refusal.message}")
        raise typer.Exit(refusal.exit_code) from None
    raise typer.Exit(main(settings, beside=beside))


@tokens.command("create")
def create(
    name: Name,
    *, scopes: Annotated[
        str, typer.Option(help="By comma: runs:read, runs:write, approvals:decide, admin.")
    ] = "runs:read,runs:write,approvals:decide",
    expires: Annotated[int, typer.Option("--expires", metavar="DAYS", min=0, help="0: not by itself.")] = 0,
    as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Make a token and print it, this once."""
    asked: JsonObject = {"name": name, "scopes": [one.strip() for one in scopes.split(",")], "days": expires}

    def shown(data: Any) -> str:
        say(f"token {data['token_id']} of {name}; it is not shown again")
        return str(data["token"])

    _do("graph_token_create", asked, shown, as_json=as_json, data_dir=data_dir)


@tokens.command("list")
def list_(*, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Show the tokens that were made, without their secrets."""
    _do("graph_token_list", {}, lambda data: _table(data["tokens"]), as_json=as_json, data_dir=data_dir)


@tokens.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME|ID", help="A token, or all of a name.", show_default=False)],
    *, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Take tokens back; they let nobody in from now on."""

    def shown(data: Any) -> str:
        return "\n".join(f"revoked {one['token_id']} of {one['name']}" for one in data["revoked"]) or "none was valid"

    _do("graph_token_revoke", {"name": name}, shown, as_json=as_json, data_dir=data_dir)


def _do(tool: str, asked: JsonObject, shown: Any, *, as_json: bool, data_dir: str) -> None:
    """Call a tool, through the owner of the data folder if that is another process, and print what it says."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call(tool, asked)
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        if as_json:
            give_json(answer)
        else:
            give(shown(answer["data"]))
        return DONE

    finish(work(), as_json=as_json)


def _table(rows: Any) -> str:
    from agent_graph.tools.views import rfc3339

    if not rows:
        return "no token; make one: agent-graph tokens create NAME"
    return table(
        [
            (row["token_id"], row["name"], row["status"], " ".join(row["scopes"]), rfc3339(row["expires_at_ms"]) or "-")
            for row in rows
        ],
        head=("ID", "NAME", "STATUS", "SCOPES", "EXPIRES"),
    )
