"""The protocol of tasks: which call becomes one, and ``tasks/get``, ``tasks/update``, ``tasks/cancel``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from mcp import MCPError, types
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.mcp_server.answers import answer
from agent_graph.mcp_server.calling import Context, caller_of
from agent_graph.mcp_server.faults import protocol_error
from agent_graph.mcp_server.tasks import asking, view
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps

EXTENSION: Final = "io.modelcontextprotocol/tasks"
SINCE: Final = "2026-07-28"
"""The first revision that has extensions on its requests; revisions are dates and sort as such."""
REASON: Final = "the client cancelled the task"
BECOMES: Final = "graph_execute"
"""The tool whose call becomes a task: the one that waits for a run's whole result. The others answer soon by
themselves."""


class UpdateParams(types.RequestParams):
    """What the client's human answered, by the key of the question."""

    task_id: str
    input_responses: dict[str, Any]


def serve(server: Server[Any], deps: Deps) -> None:
    """Say that the extension is there, and add its methods to `server`."""
    server.extensions[EXTENSION] = {}

    async def get(context: Context, params: types.GetTaskRequestParams) -> JsonObject:
        require(context, params.task_id)
        return await view.detailed(deps, params.task_id, caller=caller_of(context), asks=asks(context))

    async def update(context: Context, params: UpdateParams) -> JsonObject:
        require(context, params.task_id)
        await _answered(deps, params, caller_of(context))
        return {}

    async def cancel(context: Context, params: types.CancelTaskRequestParams) -> JsonObject:
        require(context, params.task_id)
        given = {"run_id": params.task_id, "reason": REASON}
        _taken(await registry.call(deps, "graph_run_cancel", given, caller=caller_of(context)), params.task_id)
        return {}

    server.add_request_handler("tasks/get", types.GetTaskRequestParams, get)
    server.add_request_handler("tasks/update", UpdateParams, update)
    server.add_request_handler("tasks/cancel", types.CancelTaskRequestParams, cancel)


def becomes_one(context: Context, tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether this call is answered with a task: the client knows tasks, and the call would wait."""
    waits = arguments.get("mode", "sync") == "sync" and not arguments.get("dry_run", False)
    return tool == BECOMES and waits and declared(context)


async def made(deps: Deps, arguments: Mapping[str, Any], *, caller: Caller) -> HandlerResult:
    """Start the run; the task it is, or the refusal as the tool's result. The run is durable, and the task can be
    asked for, before anything is answered."""
    envelope: Any = await registry.call(deps, BECOMES, {**arguments, "mode": "async"}, caller=caller)
    if not envelope["ok"]:
        return answer(envelope)
    return {**await view.bare(deps, envelope["data"]["run_id"], caller=caller), "resultType": "task"}


def declared(context: Context) -> bool:
    """Whether the client said on this very request that it knows tasks."""
    capabilities = context.session.client_capabilities
    known = capabilities.extensions if capabilities else None
    return context.protocol_version >= SINCE and EXTENSION in (known or {})


def asks(context: Context) -> bool:
    """Whether the client can put a form before its human."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def require(context: Context, task_id: str | None = None) -> None:
    """Raises `MCPError`: the method is not there in older revisions, and for clients that did not declare it; and over
    HTTP, where the header by which requests are routed names another task than `task_id`."""
    if context.protocol_version < SINCE:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
    if not declared(context):
        wanted = types.ClientCapabilities(extensions={EXTENSION: {}})
        needed = types.MissingRequiredClientCapabilityErrorData(required_capabilities=wanted)
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"the client has to declare the extension {EXTENSION} on this request",
            needed.model_dump(by_alias=True, mode="json", exclude_none=True),
        )
    if task_id is not None and _named(context) not in (None, task_id):
        raise MCPError(types.HEADER_MISMATCH, "the header Mcp-Name names another task than the request")


def _named(context: Context) -> str | None:
    """The task in the header of the request, None where there is none."""
    header = context.request.headers.get(MCP_NAME_HEADER) if context.request is not None else None
    return None if header is None else decode_header_value(header)


async def _answered(deps: Deps, params: UpdateParams, caller: Caller) -> None:
    """Pass each answer on as a vote. What answers no open question is passed over: it was answered before, or by
    somebody else. Raises `MCPError` for an unknown task, and for an answer that is refused."""
    run = _taken(await registry.call(deps, "graph_run_get", {"run_id": params.task_id}, caller=caller), params.task_id)
    by_key = {asking.key_of(one): one for one in run["pending_approvals"]}
    voter = replace(caller, via=asking.VIA)
    for key, response in params.input_responses.items():
        vote = asking.vote(by_key[key], response) if key in by_key else None
        if vote is not None:
            envelope = await registry.call(deps, "graph_approval_decide", vote, caller=voter)
            if not envelope["ok"] and envelope["error_code"] not in ("APPROVAL_ALREADY_DECIDED", "APPROVAL_EXPIRED"):
                raise protocol_error(envelope, taskId=params.task_id, key=key)


def _taken(envelope: Any, task_id: str) -> Any:
    if not envelope["ok"]:
        raise protocol_error(envelope, taskId=task_id)
    return envelope["data"]
