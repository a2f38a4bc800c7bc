"""The registry's tools as an MCP server, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server

from agent_graph import __version__
from agent_graph.core.jsonvalue import compact
from agent_graph.mcp_server import completion
from agent_graph.mcp_server.calling import Context, caller_of
from agent_graph.mcp_server.instructions import INSTRUCTIONS
from agent_graph.mcp_server.prompts import serving as prompts
from agent_graph.mcp_server.resources import serving as resources
from agent_graph.mcp_server.schemas import OUTPUT_SCHEMA, input_schema
from agent_graph.tools import registry
from agent_graph.tools.deps import Deps
from agent_graph.tools.registry import Envelope, Tool
from agent_graph.tools.toolsets import shown

NAME = "agent-graph"


def build(deps: Deps, toolsets: Sequence[str] = ("core",)) -> Server[Any]:
    """A server of these toolsets. It owns nothing: runs live in `deps`, whoever connects or leaves."""
    tools = shown(toolsets)
    listed = types.ListToolsResult(tools=published(tools))
    names = {tool.name for tool in tools}

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listed

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = caller_of(context)
        if params.name not in names:
            return answer(registry.failure(registry.unknown_tool(params.name, names)))
        return answer(await registry.call(deps, params.name, params.arguments or {}, caller=caller))

    server: Server[Any] = Server(
        NAME, version=__version__, title="agent-graph", instructions=INSTRUCTIONS, on_list_tools=list_tools,
        on_call_tool=call_tool,
    )  # fmt: skip
    for serve in (resources.serve, prompts.serve, completion.serve):
        serve(server, deps)
    return server


def published(tools: Sequence[Tool]) -> list[types.Tool]:
    """The tools as ``tools/list`` shows them."""
    return [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=input_schema(tool.params),
            output_schema=OUTPUT_SCHEMA,
            annotations=types.ToolAnnotations(
                read_only_hint=tool.read_only,
                destructive_hint=tool.destructive,
                idempotent_hint=tool.idempotent,
                open_world_hint=tool.open_world,
            ),
        )
        for tool in tools
    ]


def answer(envelope: Envelope) -> types.CallToolResult:
    """An envelope as a tool's result: structured, and the same as compact text, where a refusal's code comes first."""
    if not envelope["ok"]:
        envelope = {"error_code": envelope["error_code"], **envelope}
    return types.CallToolResult(
        content=[types.TextContent(text=compact(envelope))], structured_content=envelope, is_error=not envelope["ok"]
    )
