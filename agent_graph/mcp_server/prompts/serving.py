"""The protocol around the prompts: which there are, and one with what a person gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server

from agent_graph.core.jsonvalue import compact
from agent_graph.errors import InvalidArgument, PromptNotFound, UnknownArgument
from agent_graph.mcp_server.calling import Context, caller_of
from agent_graph.mcp_server.faults import protocol_error, refuse_cursor, refused
from agent_graph.mcp_server.prompts import PROMPTS
from agent_graph.mcp_server.prompts.base import MOST_CHARACTERS, Prompt
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps


def serve(server: Server[Any], deps: Deps) -> None:
    """Add ``prompts/list`` and ``prompts/get`` to `server`."""
    listed = types.ListPromptsResult(prompts=published())

    async def list_prompts(context: Context, params: types.PaginatedRequestParams) -> types.ListPromptsResult:
        refuse_cursor(params)
        return listed

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await written(deps, params.name, params.arguments or {}, caller=caller_of(context))

    server.add_request_handler("prompts/list", types.PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)


def published() -> list[types.Prompt]:
    """The prompts as ``prompts/list`` shows them."""
    return [
        types.Prompt(
            name=name,
            title=prompt.title,
            description=prompt.description,
            arguments=[
                types.PromptArgument(name=one.name, description=one.description, required=one.required)
                for one in prompt.arguments
            ],
        )
        for name, prompt in PROMPTS.items()
    ]


async def written(deps: Deps, name: str, given: Mapping[str, str], *, caller: Caller) -> types.GetPromptResult:
    """The messages of a prompt: its words, what was given as JSON, and what the tool it is about answers.

    Raises `MCPError` for an unknown prompt, a missing, unknown or too long argument, and what the tool refuses.
    """
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise refused(PromptNotFound(f"there is no prompt {name!r}; there are {', '.join(PROMPTS)}"), prompt=name)
    _check(name, prompt, given)
    kept = {one.name: given[one.name] for one in prompt.arguments if given.get(one.name)}
    texts = [prompt.words, compact(deps.supervisor.shell.redactor.members({**kept}))]
    if (reads := prompt.reads(kept)) is not None:
        envelope = await registry.call(deps, *reads, caller=caller)
        if not envelope["ok"]:
            raise protocol_error(envelope, prompt=name)
        texts.append(compact(envelope["data"]))
    return types.GetPromptResult(
        description=prompt.description,
        messages=[types.PromptMessage(role="user", content=types.TextContent(text=text)) for text in texts],
    )


def _check(name: str, prompt: Prompt, given: Mapping[str, str]) -> None:
    known = [one.name for one in prompt.arguments]
    if unknown := sorted(set(given) - set(known)):
        raise refused(
            UnknownArgument(f"{name} has no argument {unknown[0]!r}; it takes {', '.join(known)}"), prompt=name
        )
    for one in prompt.arguments:
        if one.required and not given.get(one.name, "").strip():
            raise refused(InvalidArgument(f"{name} needs {one.name}: {one.description}"), prompt=name)
        if len(given.get(one.name, "")) > MOST_CHARACTERS:
            message = f"{one.name} has more than {MOST_CHARACTERS} characters; give a shorter text"
            raise refused(InvalidArgument(message), prompt=name)
