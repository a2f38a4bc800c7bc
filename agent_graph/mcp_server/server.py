"""The registry's tools as an MCP server, in both eras of the protocol."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mcp import types
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from agent_graph import __version__
from agent_graph.mcp_server import completion, elicitation, logs
from agent_graph.mcp_server.answers import answer
from agent_graph.mcp_server.apps import serving as apps
from agent_graph.mcp_server.calling import Context, caller_of, granted_to
from agent_graph.mcp_server.instructions import INSTRUCTIONS
from agent_graph.mcp_server.prompts import serving as prompts
from agent_graph.mcp_server.resources import serving as resources
from agent_graph.mcp_server.schemas import OUTPUT_SCHEMA, input_schema
from agent_graph.mcp_server.subscriptions import legacy, listening
from agent_graph.mcp_server.subscriptions.hub import Hub
from agent_graph.mcp_server.tasks import serving as tasks
from agent_graph.tools import registry
from agent_graph.tools.deps import Deps
from agent_graph.tools.registry import Tool
from agent_graph.tools.toolsets import shown

NAME = "agent-graph"


def build(deps: Deps, toolsets: Sequence[str] = ("core",), *, state_keys: Sequence[str] = ()) -> Server[Any]:
    """A server of these toolsets. It owns nothing: runs live in `deps`, whoever connects or leaves.

    `state_keys` seal what a client carries from one request to the next; without them only this process opens it.
    """
    tools = shown(toolsets)
    listed = types.ListToolsResult(tools=published(tools))
    with_pages = types.ListToolsResult(tools=apps.with_pages(listed.tools))
    names = {tool.name for tool in tools}
    schemas = {tool.name: tool.input_schema for tool in listed.tools}

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return with_pages if apps.declared(context) else listed

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> HandlerResult:
        caller, given = caller_of(context), params.arguments or {}
        if params.name not in names:
            return answer(registry.failure(registry.unknown_tool(params.name, names)))
        if tasks.becomes_one(context, params.name, given):
            return await tasks.made(deps, given, caller=caller)
        envelope = await elicitation.call(context, deps, params, caller=caller)
        if isinstance(envelope, types.InputRequiredResult):
            return envelope
        await logs.tell(context, params.name, envelope)
        return answer(envelope)

    server: Server[Any] = Server(
        NAME, version=__version__, title="agent-graph", instructions=INSTRUCTIONS, on_list_tools=list_tools,
        get_tool_input_schema=schemas.get,
    )  # fmt: skip
    server.middleware.append(RequestStateBoundary(_sealing(state_keys), default_audience=NAME))
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    for serve in (resources.serve, prompts.serve, completion.serve, tasks.serve):
        serve(server, deps)
    logs.serve(server)
    apps.serve(server)
    hub = Hub(deps)
    legacy.serve(server, deps, hub)
    listening.serve(server, deps, hub)
    return server


def _sealing(keys: Sequence[str]) -> RequestStateSecurity:
    """What was given to one principal is not taken from another."""
    return RequestStateSecurity(keys=list(keys) or [os.urandom(32)], bind_principal=lambda c: granted_to(c).principal)


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
