"""The SDK's own client on the server, within one process; and the server as a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client

from agent_graph.core.jsonvalue import compact, parse_json
from agent_graph.mcp_server.schemas import OUTPUT_SCHEMA
from agent_graph.mcp_server.server import build
from agent_graph.tools.deps import Deps
from tests.fakes.council import write_script

ERAS = ("legacy", "auto")
"""The SDK's names: the handshake of 2025-11-25, and the requests of 2026-07-28."""
ENVELOPE = Draft202012Validator(OUTPUT_SCHEMA)


class Assistant:
    """A client that checks what every answer has to be, whatever it says."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def envelope(self, tool: str, /, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments)
        envelope = result.structured_content
        ENVELOPE.validate(envelope)
        (content,) = result.content
        assert content.type == "text"
        assert parse_json(content.text, max_bytes=1_000_000, max_depth=300) == envelope
        assert content.text == compact(envelope)
        assert result.is_error is not envelope["ok"]
        if result.is_error:
            assert content.text.startswith(f'{{"error_code":"{envelope["error_code"]}"')
        return envelope

    async def ok(self, tool: str, /, **arguments: Any) -> Any:
        envelope = await self.envelope(tool, **arguments)
        assert envelope["ok"], envelope
        return envelope["data"]

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        envelope = await self.envelope(tool, **arguments)
        assert not envelope["ok"], envelope
        return str(envelope["error_code"])


@asynccontextmanager
async def connected(deps: Deps, era: str = "auto", **options: Any) -> AsyncIterator[Assistant]:
    """The client on a server over `deps`, through memory."""
    async with Client(build(deps), mode=era, **options) as client:
        yield Assistant(client)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The council's script as a file."""
    return write_script(tmp_path / "script.json")
