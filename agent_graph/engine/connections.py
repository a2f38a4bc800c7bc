"""Named connections to the world, as the engine sees them: what tools there are, and one call of one of them.

A connection is made by whoever composes the program; a spec can only name it. It is neither trusted nor understood:
what it answers is text for a model, bounded and never a template.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final, Protocol

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import ConnectionNotFound, ConnectionToolNotFound

NAMED: Final = 20
"""Tools that an error names."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a connection; `parameters` is a JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=lambda: {"type": "object"})
    idempotent: bool = False
    """Calling it twice does no more than calling it once: only then is a call repeated whose outcome nobody knows."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool said; `failed` where the tool itself says that it did not do what it was asked."""

    text: str
    failed: bool = False


class Connection(Protocol):
    """What stands behind a name in the server's configuration."""

    name: str

    async def tools(self) -> tuple[Tool, ...]:
        """The tools there are. Raises what `agent_graph.errors` has for an upstream that does not answer."""
        ...

    async def call(self, tool: str, arguments: JsonObject) -> ToolResult:
        """Call one; cancelling the task gives the call up. Raises the errors of an upstream."""
        ...

    async def aclose(self) -> None: ...


class Connections:
    """The connections of a process, by name."""

    def __init__(self, connections: Iterable[Connection] = ()) -> None:
        self._by_name = {connection.name: connection for connection in connections}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def get(self, name: str) -> Connection:
        """Raises `ConnectionNotFound`, with the names there are."""
        if name not in self._by_name:
            there = f"there are: {', '.join(self._by_name)}" if self._by_name else "none is configured"
            raise ConnectionNotFound(f'no connection is named "{name}"; {there}', connection=name)
        return self._by_name[name]

    async def tool(self, connection: str, name: str) -> Tool:
        """Raises `ConnectionNotFound`, `ConnectionToolNotFound`, and what an upstream raises."""
        there = await self.get(connection).tools()
        for tool in there:
            if tool.name == name:
                return tool
        names = [tool.name for tool in there[:NAMED]]
        raise ConnectionToolNotFound(
            f'the connection "{connection}" has no tool "{name}"; it has: {", ".join(names)}',
            connection=connection, tool=name, tools=list(names),
        )  # fmt: skip

    async def aclose(self) -> None:
        for connection in self._by_name.values():
            await connection.aclose()
