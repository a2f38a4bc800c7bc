"""What the front of a client is started with, and where its data folder is; imports the standard library alone.

The data folder is found as `agent_graph.settings` finds it, without the time its imports take.
"""

from __future__ import annotations

import os
import sys

from agent_graph.mcp_server import hello
from agent_graph.system.modules import optional

FLAGS = {
    "--data-dir": "data_dir", "--model": "model", "--ollama-host": "ollama_host", "--provider": "provider",
    "--toolsets": "toolsets", "--idle-ms": "daemon_idle_ms",
}  # fmt: skip
"""Flags that take a value, and the settings they are."""
IN_PROCESS = "--in-process"
MEMORY = ":memory:"
DATA_DIR_VARIABLE = "AGENT_GRAPH_DATA_DIR"
TOOLSETS_VARIABLE = "AGENT_GRAPH_TOOLSETS"
APP = "agent-graph"


class Arguments:
    """The flags of a front, by setting."""

    def __init__(self, flags: dict[str, str], *, socket: str = "") -> None:
        self.flags = {name: text for name, text in flags.items() if text}
        """What was given, without what is empty."""
        self.socket = socket
        """A second place where the daemon listens, or ""."""

    @property
    def folder(self) -> str:
        """The data folder, absolute; `MEMORY` for none."""
        named = self.flags.get("data_dir") or os.environ.get(DATA_DIR_VARIABLE, "")
        if named.strip() == MEMORY:
            return MEMORY
        return os.path.abspath(os.path.expanduser(named or default_folder()))

    def hello(self) -> dict[str, object]:
        """What the daemon is to know about this client."""
        toolsets = self.flags.get("toolsets") or os.environ.get(TOOLSETS_VARIABLE, "")
        return {"toolsets": toolsets, "asked": hello.asked(self.flags, os.environ)}

    def command(self) -> list[str]:
        """The command that starts a daemon with these flags; -P: no module in the client's folder is taken for ours."""
        words = [sys.executable, "-P", "-m", APP.replace("-", "_"), "daemon", "--detached"]
        for flag, name in FLAGS.items():
            if name in self.flags and name != "toolsets":  # those are each client's own
                words.append(f"{flag}={self.flags[name]}")
        return words + ([f"--socket={self.socket}"] if self.socket else [])


def environment() -> dict[str, str] | None:
    """The environment of a daemon that is to run this very code; None for ours, where that finds it installed."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if os.path.basename(home) in ("site-packages", "dist-packages"):
        return None
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{home}{os.pathsep}{path}" if path else home}


def parse(words: list[str]) -> Arguments | None:
    """The arguments of `agent-graph mcp`; None where the whole command line has to look at them: for its help, for what
    it does not know, and where no daemon is wanted."""
    flags: dict[str, str] = {}
    rest = list(words)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag not in FLAGS or not (equals or rest):
            return None
        flags[FLAGS[flag]] = value if equals else rest.pop(0)
    found = Arguments(flags)
    return None if found.folder == MEMORY else found


def given(words: list[str]) -> tuple[dict[str, str], str]:
    """The flags and the second socket in what `Arguments.command` says after its fixed words."""
    found = dict(word.split("=", 1) for word in words)
    return {name: found[flag] for flag, name in FLAGS.items() if flag in found}, found.get("--socket", "")


def default_folder() -> str:
    """Where this system keeps a program's data for the user, as `platformdirs` has it."""
    if sys.platform == "win32":  # not tried
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
    else:
        base = os.environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(_home(), "Library/Application Support" if sys.platform == "darwin" else ".local/share")
    return os.path.join(base, APP)


def _home() -> str:
    """The user's home; a HOME that is no absolute path does not count."""
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    pwd, me = optional("pwd"), getattr(os, "getuid", None)
    return os.path.expanduser("~") if pwd is None or me is None else str(pwd.getpwuid(me()).pw_dir)
