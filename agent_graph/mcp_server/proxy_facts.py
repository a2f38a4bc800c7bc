"""What a front answers to `initialize` while its daemon is still starting; imports the standard library alone.

It is what the daemon of the same version answers; a test compares them.
"""

from __future__ import annotations

import json
import os
from typing import Any

from agent_graph import __version__
from agent_graph.mcp_server.instructions import INSTRUCTIONS

FILE = os.path.join(os.path.dirname(__file__), "initialize.json")
"""``capabilities``, ``server_info`` without the version, and ``versions``: the protocol's, the newest last."""


def answer(request_id: Any, params: dict[str, Any]) -> bytes | None:
    """The line that answers an `initialize`; None where only the server knows what to say."""
    asked = params.get("protocolVersion")
    if not isinstance(asked, str) or not isinstance(params.get("clientInfo"), dict):
        return None
    if not isinstance(params.get("capabilities"), dict) or not isinstance(request_id, int | str):
        return None
    with open(FILE, encoding="utf-8") as file:
        facts = json.load(file)
    result = {
        "capabilities": facts["capabilities"],
        "instructions": INSTRUCTIONS,
        "protocolVersion": asked if asked in facts["versions"] else facts["versions"][-1],
        "serverInfo": {**facts["server_info"], "version": __version__},
    }
    body = {"jsonrpc": "2.0", "id": request_id, "result": result}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
