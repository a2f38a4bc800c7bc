"""One resource read: the tool's answer with what it claims, what that rests on and what it does not know."""

from __future__ import annotations

from typing import Any, Final

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, compact, size
from agent_graph.errors import ResourceNotFound
from agent_graph.mcp_server.resources.table import Read, Resource, Shipped, find
from agent_graph.mcp_server.resources.views import Parts
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps

SCHEMA_VERSION: Final = "1"
"""Of the shape of a statement; it rises when a member changes its meaning."""
LIST_BYTES: Final = 256 * 1024
"""Bytes of the rows of a list; what is behind them is paged by the tool."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What stands at an address, as the text a client gets, and how long it may keep it."""

    text: str
    fresh_ms: int = 0
    public: bool = False


class Unreadable(Exception):
    """Nothing is told of an address; `refusal` is the envelope that says why."""

    def __init__(self, refusal: JsonObject) -> None:
        super().__init__(str(refusal["error"]))
        self.refusal = refusal


async def read(deps: Deps, uri: str, *, caller: Caller) -> Statement:
    """What stands at `uri` for this caller. Raises `Unreadable`."""
    row, parts = _found(uri)
    data = await _data(deps, uri, row, parts=parts, caller=caller)
    left_out: list[str] = []
    for member, beside in row.beside.items():
        try:
            data[member] = (await _answer(deps, beside, parts, caller))[member]
        except Unreadable as unread:
            left_out.append(f"{member}: {unread.refusal['error_code']}")
    body: JsonObject = {
        "schema_version": SCHEMA_VERSION, "uri": uri,
        "authority": {"claim": row.claim, "observation_point": row.seen_from, "limits": list(row.limits)},
        "provenance": _provenance(row, parts, left_out), "data": data,
    }  # fmt: skip
    return Statement(compact(body), row.fresh_ms, row.public)


async def check(deps: Deps, uri: str, *, caller: Caller) -> None:
    """Whether this caller can read something at `uri`. Raises `Unreadable`."""
    row, parts = _found(uri)
    await _data(deps, uri, row, parts=parts, caller=caller)


def _found(uri: str) -> tuple[Resource, Parts]:
    found = find(uri)
    if found is None:
        raise _nothing(uri, "no resource has this form; resources/templates/list has the forms there are")
    return found


async def _data(deps: Deps, uri: str, row: Resource, *, parts: Parts, caller: Caller) -> JsonObject:
    """What the row's own source shows."""
    if isinstance(row.source, Shipped):
        data = row.source.give(parts)
    else:
        data = row.view(await _answer(deps, row.source, parts, caller), parts)
    if data is None:
        raise _nothing(uri, "there is none of this name")
    return data


def _provenance(row: Resource, parts: Parts, left_out: list[str]) -> JsonObject:
    body: JsonObject = {"rests_on": row.rests_on, "does_not_know": [*row.unknown, *left_out]}
    if isinstance(row.source, Read):
        body |= {"tool": row.source.tool, "arguments": row.source.given(parts)}
    return body


async def _answer(deps: Deps, source: Read, parts: Parts, caller: Caller) -> JsonObject:
    """The ``data`` of the tool; of a list, as many pages as have room."""
    if not source.rows:
        return await _call(deps, source.tool, source.given(parts), caller)
    data: Any = await _call(deps, source.tool, source.given(parts), caller)
    room = LIST_BYTES - size(data)
    while room > 0 and data["next_cursor"]:
        given = {**source.given(parts), "cursor": data["next_cursor"]}
        page: Any = await _call(deps, source.tool, given, caller)
        room -= size(page)
        data = {**page, source.rows: [*data[source.rows], *page[source.rows]]}
    body: JsonObject = data
    return body


async def _call(deps: Deps, tool: str, given: JsonObject, caller: Caller) -> JsonObject:
    envelope: Any = await registry.call(deps, tool, given, caller=caller, whole=True)
    if not envelope["ok"]:
        raise Unreadable(envelope)
    body: JsonObject = envelope["data"]
    return body


def _nothing(uri: str, why: str) -> Unreadable:
    return Unreadable(registry.failure(ResourceNotFound(f"nothing at {uri}: {why}")))
