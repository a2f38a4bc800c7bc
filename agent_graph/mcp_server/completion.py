"""Completing what a person types: names asked of the tools, so that nobody is offered what they may not see."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

from mcp import types
from mcp.server.lowlevel import Server

from agent_graph.mcp_server.calling import Context, caller_of
from agent_graph.mcp_server.prompts import PROMPTS
from agent_graph.mcp_server.prompts.import_diagram import FORMATS
from agent_graph.mcp_server.resources import pages
from agent_graph.mcp_server.resources.table import TABLE
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps

MOST: Final = 100
"""Values of one answer, by the protocol."""
PAGES: Final = 10
"""Pages of a list that are looked through for them."""
PARTS: Final = {
    ("graph", "id"): "graph_id", ("graph_version", "id"): "graph_id", ("graph_version", "digest"): "graph_version",
    ("run", "run_id"): "run_id", ("run_receipt", "run_id"): "run_id", ("template", "id"): "template_id",
    ("docs", "page"): "page",
}  # fmt: skip
"""By resource and part of its address: what is named there."""
LISTS: Final[Mapping[str, tuple[str, str, Mapping[str, Any]]]] = {
    "graph_id": ("graph_list", "graphs", {"limit": 200}),
    "run_id": ("graph_run_list", "runs", {"limit": 200}),
    "template_id": ("graph_template_list", "templates", {}),
    "approval_id": ("graph_approval_list", "approvals", {"limit": 200}),
}
"""By what is named: the tool that lists it, the member with the rows, its arguments."""
WORDS: Final[Mapping[str, Callable[[], list[str]]]] = {
    "page": lambda: list(pages.names()),
    "format": lambda: list(FORMATS),
}


def serve(server: Server[Any], deps: Deps) -> None:
    """Add ``completion/complete`` to `server`."""

    async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        chosen = (params.context.arguments if params.context else None) or {}
        kind, typed = named(params.ref, params.argument.name), params.argument.value
        found, more = await offered(deps, kind, typed, chosen=chosen, caller=caller_of(context))
        return types.CompleteResult(completion=types.Completion(values=found, has_more=more))

    server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)


def named(ref: types.ResourceTemplateReference | types.PromptReference, argument: str) -> str:
    """What an argument of a prompt or a part of an address names; "" where nothing can be completed."""
    if isinstance(ref, types.PromptReference):
        prompt = PROMPTS.get(ref.name)
        found = [one.completes for one in prompt.arguments if one.name == argument] if prompt else []
        return found[0] if found else ""
    rows = [row.name for row in TABLE if row.uri == str(ref.uri)]
    return PARTS.get((rows[0], argument), "") if rows else ""


async def offered(
    deps: Deps, kind: str, typed: str, *, chosen: Mapping[str, str], caller: Caller
) -> tuple[list[str], bool]:
    """What begins with `typed`, as much as one answer takes, and whether there is more; `chosen` are the other
    parts."""
    found: list[str] = []
    async with aclosing(_values(deps, kind, typed, chosen=chosen, caller=caller)) as values:
        async for value in values:
            if value.startswith(typed):
                if len(found) == MOST:
                    return found, True
                found.append(value)
    return found, False


async def _values(
    deps: Deps, kind: str, typed: str, *, chosen: Mapping[str, str], caller: Caller
) -> AsyncGenerator[str, None]:  # fmt: skip
    if kind in WORDS:
        for word in WORDS[kind]():
            yield word
    elif kind in LISTS:
        tool, member, given = LISTS[kind]
        query = {"query": typed} if kind in ("graph_id", "template_id") else {}
        async for row in _rows(deps, tool, member, given={**given, **query}, caller=caller):
            yield row[kind]
    elif kind == "graph_version":
        envelope: Any = await registry.call(deps, "graph_inspect", {"graph_id": chosen.get("id", "")}, caller=caller)
        for version in envelope["data"]["versions"] if envelope["ok"] else ():
            yield version["graph_version"]


async def _rows(
    deps: Deps, tool: str, member: str, *, given: Mapping[str, Any], caller: Caller
) -> AsyncGenerator[Any, None]:  # fmt: skip
    cursor = ""
    for _ in range(PAGES):
        arguments = {**given, **({"cursor": cursor} if cursor else {})}
        envelope: Any = await registry.call(deps, tool, arguments, caller=caller)
        if not envelope["ok"]:
            return
        for row in envelope["data"][member]:
            yield row
        cursor = envelope["data"].get("next_cursor") or ""
        if not cursor:
            return
