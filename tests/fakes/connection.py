"""A connection whose tools answer as a script says; `calls` holds what they were asked, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.connections import Tool, ToolResult

CITY = {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 40}}, "required": ["city"],
    "additionalProperties": False,
}  # fmt: skip
"""The arguments of `forecast`."""
FORECAST = Tool("forecast", "Tells the weather of a city.", CITY)  # type: ignore[arg-type]  # a JSON object

Said = str | ToolResult | Exception | None
"""What a tool says; an exception is raised, None never comes."""


class ScriptedConnection:
    """`says` is given (tool, arguments). `reached` is set whenever a call is under way."""

    def __init__(
        self, *tools: Tool, name: str = "weather", says: Callable[[str, JsonObject], Said] = lambda *_: "rain",
        idempotent: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.closed = False
        self.calls: list[tuple[str, Any]] = []
        self.given_up = 0
        self.reached = asyncio.Event()
        self._tools = tuple(replace(tool, idempotent=idempotent) for tool in tools or (FORECAST,))
        self._says = says

    async def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def call(self, tool: str, arguments: JsonObject) -> ToolResult:
        self.calls.append((tool, arguments))
        said = self._says(tool, arguments)
        self.reached.set()
        if said is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.given_up += 1
                raise
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, ToolResult) else ToolResult(str(said))

    async def aclose(self) -> None:
        self.closed = True
