"""`witness capture|show`: sources that runs can cite, sealed when they are captured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent_graph.cli.desk import Desk, key
from agent_graph.cli.options import AsJson, DataDir, OutFile, settings_of
from agent_graph.cli.output import DONE, finish, give, give_bytes, give_json, refuse, say
from agent_graph.cli.sources import STDIN, named, read_text
from agent_graph.core.jsonvalue import JsonObject

group = typer.Typer(help="Sources that runs can cite.", no_args_is_help=True, rich_markup_mode=None)
MEDIA: Final = {
    ".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html", ".htm": "text/html",
    ".csv": "text/csv", ".json": "application/json",
}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="witness")


@group.command("capture")
def capture(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A text, UTF-8; - reads stdin.", show_default=False)],
    *, locator: Annotated[
        str, typer.Option(help="Where it is from; it is never fetched.", show_default="the file's name")
    ] = "",
    media_type: Annotated[str, typer.Option(help="Its media type.", show_default="by the file's name")] = "",
    retrieved_at: Annotated[str, typer.Option(help="When it was read, RFC 3339.", show_default="now")] = "",
    as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Keep a text as a witness and print its id, which claims of a node with `evidence_required` name."""

    async def work() -> int:
        settings = settings_of(data_dir)
        asked: JsonObject = {
            "locator": locator or named(file), "content": read_text(file, limits=settings.limits),
            "media_type": media_type or MEDIA.get(Path(file).suffix.lower(), "text/plain"),
            "authority_class": "caller_supplied_unverified" if file == STDIN else "local_primary_capture",
            "retrieved_at": retrieved_at, "idempotency_key": key(),
        }  # fmt: skip
        async with Desk(settings, drives=False, remark=say) as desk:
            answer = await desk.call("graph_source_witness_capture", asked)
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer)
        else:
            say(f"{data['content_bytes']:,} bytes, {data['digest']}")
            give(data["witness_id"])
        return DONE

    finish(work(), as_json=as_json)


@group.command("show")
def show(
    witness_id: Annotated[str, typer.Argument(metavar="WITNESS", show_default=False)],
    *, output: OutFile = None, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Check a witness against its seal and print its content, byte for byte; what is known of it goes to stderr."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call("graph_source_witness_get", {"witness_id": witness_id})
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        if as_json:
            give_json(answer, to=output)
            return DONE
        say(f"{data['witness_id']} of {data['locator']}, {data['media_type']}, {data['content_bytes']:,} bytes")
        say(f"retrieved {data['retrieved_at']}, {data['authority_class']}; {data['digest']}")
        give_bytes(data["content"].encode(), to=output)
        return DONE

    finish(work(), as_json=as_json)
