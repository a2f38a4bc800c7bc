"""The assistants whose configuration `agent-graph install` can change: where it lies and what an entry looks like.

Places and forms are as each client's documentation has them; the clients themselves were not tried.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import InvalidArgument

TRIED: Final = ("linux",)
"""Systems on which the writing of the files was tried."""


@dataclass(frozen=True, slots=True)
class Client:
    """One assistant."""

    name: str
    title: str
    form: Literal["json", "toml", "yaml"]
    key: str
    """The table of servers in its file."""
    path: Callable[[], Path]
    """Its file for this user."""
    project: str = ""
    """Its file within a project, "" where it has none."""
    typed: bool = False
    """An entry says that it is on standard input and output."""

    def entry(self, command: list[str]) -> JsonObject:
        """What the file holds for us."""
        body: JsonObject = {"type": "stdio"} if self.typed else {}
        return {**body, "command": command[0], "args": list(command[1:])}

    def file(self, *, project: bool) -> Path:
        """The file to change. Raises `InvalidArgument` where the client has none for a project."""
        if not project:
            return self.path()
        if not self.project:
            raise InvalidArgument(f"{self.title} has no file for a project; leave --project out", argument="project")
        return Path.cwd() / self.project


def _home() -> Path:
    return Path.home()


def _programs() -> Path:
    """Where programs with a window keep a user's configuration."""
    if sys.platform == "darwin":
        return _home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or _home() / "AppData" / "Roaming")
    else:
        named = os.environ.get("XDG_CONFIG_HOME", "")
        return Path(named) if named.startswith("/") else _home() / ".config"


def _in(variable: str, folder: str) -> Path:
    return Path(os.environ.get(variable) or _home() / folder).expanduser()


def _claude_code() -> Path:
    named = os.environ.get("CLAUDE_CONFIG_DIR", "")
    return Path(named) / ".claude.json" if named else _home() / ".claude.json"


CLIENTS: Final = {
    client.name: client
    for client in (
        Client(
            "claude-code", "Claude Code", "json", "mcpServers", _claude_code, project=".mcp.json", typed=True
        ),
        Client(
            "claude-desktop", "Claude Desktop", "json", "mcpServers",
            lambda: _programs() / "Claude" / "claude_desktop_config.json",
        ),
        Client(
            "cursor", "Cursor", "json", "mcpServers", lambda: _home() / ".cursor" / "mcp.json",
            project=".cursor/mcp.json",
        ),
        Client(
            "vscode", "VS Code", "json", "servers", lambda: _programs() / "Code" / "User" / "mcp.json",
            project=".vscode/mcp.json", typed=True,
        ),
        Client("codex", "Codex", "toml", "mcp_servers", lambda: _in("CODEX_HOME", ".codex") / "config.toml"),
        Client("hermes", "Hermes Agent", "yaml", "mcp_servers", lambda: _in("HERMES_HOME", ".hermes") / "config.yaml"),
    )
}  # fmt: skip


def client_named(name: str) -> Client:
    """Raises `InvalidArgument` for one that is not known."""
    if name not in CLIENTS:
        raise InvalidArgument(f"the client {name!r} is not known; there are {', '.join(CLIENTS)}", argument="client")
    return CLIENTS[name]
