"""The MCP Inspector's command line in its two ages, pointed at a server on stdio or on HTTP."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.acceptance.node import INSPECTOR_0, INSPECTOR_2

CALL_S: Final = 60
TOOL_ERROR: Final = 5
"""What the newer one exits with when the tool refused."""


@dataclass(frozen=True, slots=True)
class Inspector:
    """Everything a client needs to know to call one server once."""

    newer: bool
    target: tuple[str, ...]
    """Its arguments that name the server."""
    home: Path
    """Where it may leave its files."""

    async def tools(self) -> list[dict[str, Any]]:
        """The tools as listed; the newer one must find no fault in their schemas."""
        strict = ("--strict",) if self.newer else ()
        said = await self._said("--method", "tools/list", *strict)
        assert "schemaFindings" not in said, said["schemaFindings"]
        tools: list[dict[str, Any]] = (said["result"] if self.newer else said)["tools"]
        return tools

    async def ok(self, tool: str, /, **arguments: Any) -> Any:
        """The ``data`` of an answer."""
        envelope = await self.envelope(tool, **arguments)
        assert envelope["ok"], envelope
        return envelope["data"]

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """The code of a refusal."""
        envelope = await self.envelope(tool, **arguments)
        assert not envelope["ok"], envelope
        return str(envelope["error_code"])

    async def envelope(self, tool: str, /, **arguments: Any) -> Any:
        """The envelope of an answer, checked by the Inspector against the published schema."""
        if self.newer:
            given: tuple[str, ...] = ("--tool-args-json", json.dumps(arguments))
        else:
            pairs = [f"{key}={each if isinstance(each, str) else json.dumps(each)}" for key, each in arguments.items()]
            given = ("--tool-arg", *pairs) if pairs else ()
        said = await self._said("--method", "tools/call", "--tool-name", tool, *given)
        return (said["result"] if self.newer else said)["structuredContent"]

    async def _said(self, *arguments: str) -> Any:
        program = INSPECTOR_2 if self.newer else INSPECTOR_0
        quietly = ("--format", "json", "--quiet") if self.newer else ()
        process = await asyncio.create_subprocess_exec(
            *program.command(), "--cli", *self.target, *arguments, *quietly, env=self._environment(),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), CALL_S)
        assert process.returncode in (0, TOOL_ERROR), err.decode(errors="replace")[-2_000:]
        return json.loads(out)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "MCP_INSPECTOR_SECRET_STORE": "memory"}


def on_stdio(
    command: tuple[str, ...], home: Path, *, newer: bool, environment: Mapping[str, str], era: str = "legacy"
) -> Inspector:
    """The one that starts `command` for each call."""
    it = {"command": command[0], "args": list(command[1:]), "env": dict(environment)}
    config = home / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"it": it}}), encoding="utf-8")
    target = ("--config", str(config), "--server", "it", *(("--protocol-era", era) if newer else ()))
    return Inspector(newer, target, home)


def on_http(url: str, home: Path, *, newer: bool, era: str = "legacy") -> Inspector:
    """The one that calls the server at `url`."""
    if newer:
        return Inspector(newer, ("--server-url", url, "--transport", "http", "--protocol-era", era), home)
    return Inspector(newer, (url, "--transport", "http"), home)
