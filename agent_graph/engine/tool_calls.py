"""Makes one tool call that a model asked for, and says as a fact what came of it.

What goes wrong with a call is told to the model, which may do better: a name that is not offered, arguments that do
not fit, a tool or a connection that fails. Only two things fail the node: a connection the server does not have, and
a call whose outcome nobody knows and that may not be repeated.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from agent_graph.core import events as e
from agent_graph.core import schema
from agent_graph.core.effects import CallModel, CallTool
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.step import Perform
from agent_graph.engine.connections import Connections, Tool
from agent_graph.errors import AgentGraphError, ConnectionNotFound, ModelTimeout, ToolOutcomeUnknown

MOST_RESULT: Final = 32_000
"""Characters of a result that the model is told and the log keeps."""
MOST_DESCRIPTION: Final = 2_000


async def described(call: CallModel, connections: Connections) -> CallModel:
    """`call` with what the connections say of the tools it offers. Raises what `Connections.tool` raises, and
    `ModelTimeout` where that takes longer than the call may."""
    if not call.tools:
        return call
    found: list[JsonObject] = []
    try:
        async with asyncio.timeout(call.timeout_ms / 1000):
            for one in call.tools:
                tool = await connections.tool(str(one["connection"]), str(one["tool"]))
                described = tool.description[:MOST_DESCRIPTION]
                found.append({**one, "description": described, "parameters": tool.parameters})
    except TimeoutError:
        late = call.tools[len(found)]["connection"]
        message = f'the connection "{late}" did not tell of its tools within {call.timeout_ms} ms'
        raise ModelTimeout(message, connection=str(late)) from None
    return replace(call, tools=tuple(found))


async def call_tool(perform: Perform, call: CallTool, *, connections: Connections) -> e.ToolAnswered | e.NodeFailed:
    """The fact of one call. Cancelling gives it up."""
    try:
        async with asyncio.timeout(call.timeout_ms / 1000):
            return await _made(perform, call, connections)
    except TimeoutError:
        text = f"The tool did not answer within {call.timeout_ms} ms; it may still do its work."
        return _answered(perform, call, text, code="TOOL_TIMEOUT")
    except (ConnectionNotFound, ToolOutcomeUnknown) as refusal:
        error: JsonObject = {"code": refusal.code, "message": refusal.message, "class": "refused"}
        return e.NodeFailed(perform.firing, {**error, "details": refusal.details}, perform.attempt)
    except AgentGraphError as trouble:
        return _answered(perform, call, f"The call failed: {trouble.message}", code=trouble.code)


async def _made(perform: Perform, call: CallTool, connections: Connections) -> e.ToolAnswered:
    if not call.connection:
        text = f'There is no tool "{call.name}". There are: {", ".join(call.offered)}.'
        return _answered(perform, call, text, code="TOOL_NOT_OFFERED")
    tool = await connections.tool(call.connection, call.tool)
    if wrong := _misfits(call, tool):
        text = "The arguments do not fit the tool's schema:\n" + "\n".join(f"- {each}" for each in wrong)
        return _answered(perform, call, text, code="TOOL_ARGUMENTS_INVALID")
    if call.unsure and not tool.idempotent:
        raise ToolOutcomeUnknown(
            f'the tool "{call.connection}/{call.tool}" was called and the program ended before it answered: it may'
            " have done its work, and does not say that calling it twice is safe",
            connection=call.connection, tool=call.tool, call_id=call.call_id, arguments=call.arguments,
        )  # fmt: skip
    assert isinstance(call.arguments, dict), "as `_misfits` has seen"
    result = await connections.get(call.connection).call(call.tool, call.arguments)
    return _answered(perform, call, result.text, code="TOOL_FAILED" if result.failed else "")


def _misfits(call: CallTool, tool: Tool) -> list[str]:
    """In what the arguments do not fit; of a schema this program cannot apply, only that they are an object."""
    if not isinstance(call.arguments, dict):
        return ["the arguments are no JSON object"]
    if schema.check(tool.parameters, ""):
        return []
    return schema.violations(call.arguments, tool.parameters)


def _answered(perform: Perform, call: CallTool, text: str, *, code: str = "") -> e.ToolAnswered:
    whole = text.encode(errors="replace").decode()  # a log holds no lone surrogates
    cut = len(whole) > MOST_RESULT
    if cut:
        whole = f"{whole[:MOST_RESULT]}\n[cut: {MOST_RESULT} of {len(text)} characters]"
    return e.ToolAnswered(
        perform.firing, call.call_id, whole, bool(code), code, len(text) if cut else 0, perform.attempt
    )  # fmt: skip
