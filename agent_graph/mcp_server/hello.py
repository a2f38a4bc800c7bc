"""What a front and a daemon say to each other before the protocol begins; imports the standard library alone.

A front connects and sends one line of JSON, the daemon answers one; from there on both directions are the client's
session, line by line, as on standard input and output. A daemon that stops in order ends a session with one more line
that is no JSON-RPC: ``{"bye": REASON}``.
"""

from __future__ import annotations

import json
import os
from typing import Any

PROTOCOL = 1
"""Changes when the two lines do; what comes after them is MCP's own."""
KEY = "agent_graph"
"""Holds `PROTOCOL` in both lines."""
SOCKET_NAME = "mcp.sock"
"""The daemon's socket in the data folder, or what `tools.socket_address` says of one there."""
LOG_NAME = "daemon.log"
MOST_BYTES = 64 * 1024
"""The longest of these lines."""
BYE = b'{"bye":'

COMPARED = {
    "model": ("--model", "AGENT_GRAPH_MODEL"),
    "ollama_host": ("--ollama-host", "OLLAMA_HOST"),
    "provider": ("--provider", "AGENT_GRAPH_PROVIDER"),
    "default_host": ("", "AGENT_GRAPH_DEFAULT_HOST"),
    "script": ("", "AGENT_GRAPH_SCRIPT"),
    "openai_base_url": ("", "OPENAI_BASE_URL"),
    "policy_profile": ("", "AGENT_GRAPH_POLICY_PROFILE"),
}
"""Settings, with flag and variable, in which a front may not differ from the daemon: they change what a run does."""


def line(body: dict[str, Any]) -> bytes:
    """One of the lines."""
    return json.dumps({KEY: PROTOCOL, **body}, separators=(",", ":")).encode() + b"\n"


def bye(reason: str) -> bytes:
    """The last line of a session that a daemon ends in order."""
    return json.dumps({"bye": reason}, separators=(",", ":")).encode() + b"\n"


def asked(flags: dict[str, str], environ: dict[str, str] | os._Environ[str]) -> dict[str, list[str]]:
    """What a client asks of the settings in `COMPARED`: by name, the text and ``flag`` or ``environment``."""
    found = {}
    for name, (_, variable) in COMPARED.items():
        if flags.get(name):
            found[name] = [flags[name], "flag"]
        elif environ.get(variable):
            found[name] = [environ[variable], "environment"]
    if "script" in found:
        found["script"][0] = os.path.abspath(os.path.expanduser(found["script"][0]))
    return found
