"""The options that many commands share, and the settings they make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from agent_graph.cli.output import log_to_stderr

if TYPE_CHECKING:
    from agent_graph.settings import Settings

DataDir: TypeAlias = Annotated[
    str, typer.Option("--data-dir", help="The data folder; :memory: keeps nothing.", show_default=False)
]
Model: TypeAlias = Annotated[
    str, typer.Option("--model", help="The model of every node that names none.", show_default=False)
]
Host: TypeAlias = Annotated[str, typer.Option("--ollama-host", help="Where Ollama listens.", show_default=False)]
Provider: TypeAlias = Annotated[
    str, typer.Option("--provider", help="auto, ollama, openai, embedded or scripted.", show_default=False)
]
IdleMs: TypeAlias = Annotated[
    str, typer.Option("--idle-ms", help="Without clients and work for so long, the daemon ends.", show_default=False)
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the tool's envelope on standard output and nothing else.")
]
OutFile: TypeAlias = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write the result to this file.", show_default=False)
]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many at most.")]


def settings_of(data_dir: str = "", *, model: str = "", ollama_host: str = "", provider: str = "") -> Settings:
    """The settings in force under these flags; the log goes to stderr from here on. Raises `SettingInvalid`."""
    from agent_graph.settings import load

    settings = load({"data_dir": data_dir, "model": model, "ollama_host": ollama_host, "provider": provider})
    log_to_stderr(settings.log)
    return settings
