"""The tools of captured sources: keep one as evidence, read it back."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.moments import read_moment
from agent_graph.core.redact import Redactor
from agent_graph.engine.evidence import check_seal, identified, reference, sealed
from agent_graph.errors import InputInvalid, InputTooLarge, InvalidArgument, WitnessNotFound
from agent_graph.store.base import WitnessRow
from agent_graph.tools.params import Key, Params
from agent_graph.tools.parts import Offset, part
from agent_graph.tools.registry import Call, tool
from agent_graph.tools.views import rfc3339

AHEAD_MS: Final = 300_000
"""How far the clock of whoever retrieved a source may be ahead of ours."""

MediaType = Literal["text/plain", "text/markdown", "text/html", "text/csv", "application/json"]
Authority = Literal["caller_supplied_unverified", "local_primary_capture"]


class CaptureParams(Params):
    locator: Annotated[
        str, Field(min_length=1, max_length=2_000, pattern=r"^[^\x00-\x1f\x7f]+$",
                   description="Where it is from: an address, a file's name, a title. Never fetched."),
    ]  # fmt: skip
    content: Annotated[str, Field(min_length=1, description="The text, as it is to be cited.")]
    media_type: Annotated[MediaType, Field(description="What kind of text it is.")] = "text/plain"
    authority_class: Annotated[
        Authority, Field(description="The caller's word: text it was given, or a source it read itself.")
    ] = "caller_supplied_unverified"
    retrieved_at: Annotated[
        str, Field(max_length=40, description="When it was read, RFC 3339; empty = now. With it, a repeated capture "
                                              "gives the same witness."),
    ] = ""  # fmt: skip
    idempotency_key: Key = ""


@tool(
    "graph_source_witness_capture", CaptureParams, title="Capture a source", scope="runs:write", idempotent=False,
    description="""Keep a text as a witness: sealed, so that it cannot change unnoticed, and citable by llm nodes with
    evidence_required. Nothing is fetched: you give the content. Then give the text and its witness_id to the run.
    Spans in claims count UTF-8 bytes of this content. Example: {"locator": "https://example.org/report", "content":
    "The bridge opened in 1932."}""",
)  # fmt: skip
async def graph_source_witness_capture(call: Call[CaptureParams]) -> JsonObject:
    args, deps = call.args, call.deps
    now_ms, content, limit = deps.clock.now_ms(), args.content.encode(), deps.limits.witness_bytes
    if len(content) > limit:
        message = f"the content has {len(content)} bytes; a witness has {limit} at most: capture the part that is cited"
        raise InputTooLarge(message, limit=limit, bytes=len(content))
    locator = _without_secrets(args.locator, args.content, deps.supervisor.shell.redactor)
    retrieved_at_ms = _moment(args.retrieved_at, now_ms=now_ms)
    row = identified(
        WitnessRow("", call.caller.principal, locator, args.media_type, args.authority_class, retrieved_at_ms,
                   now_ms, call.caller.via, "", content, "", "")
    )  # fmt: skip
    kept = await _kept(call, row.witness_id)
    row = sealed(row, deps.keys) if kept is None else kept
    answer: JsonObject = {**_view(row), "created": kept is None}
    if not await deps.store.witnesses.add(row, answered=call.answered(answer)) and kept is None:
        return {**answer, "created": False}  # another call was first
    return answer


async def _kept(call: Call[CaptureParams], witness_id: str) -> WitnessRow | None:
    """The witness of that id where there is one, its seal checked."""
    try:
        row = await call.deps.store.witnesses.get(witness_id)
    except WitnessNotFound:
        return None
    check_seal(row, call.deps.keys)
    return row


def _without_secrets(locator: str, content: str, redactor: Redactor) -> str:
    """The locator with its secrets taken out. Raises `InputInvalid` for a content that holds some: what is cited has
    to stand there to the byte, so nothing is taken out of it."""
    if found := redactor.spans(content) if redactor.text(content) != content else []:
        first = min(found, key=lambda span: span.start)
        message = (
            f"the content holds what looks like a secret, at characters {first.start} to {first.end}: take it out, or "
            "say in [redaction] of settings.toml that it is none"
        )
        raise InputInvalid(message, start=first.start, end=first.end)
    return redactor.text(locator)


def _moment(text: str, *, now_ms: int) -> int:
    at_ms = read_moment(text) if text else now_ms
    if at_ms is None or at_ms < 0:
        message = "retrieved_at is a moment as RFC 3339 writes it, such as 2026-01-31T12:00:00Z"
        raise InvalidArgument(message, argument="retrieved_at")
    if at_ms > now_ms + AHEAD_MS:
        raise InvalidArgument("retrieved_at is in the future", argument="retrieved_at")
    return at_ms


class GetParams(Params):
    witness_id: Annotated[str, Field(min_length=1, max_length=100, description="From graph_source_witness_capture.")]
    offset: Offset = 0


@tool(
    "graph_source_witness_get", GetParams, title="Read a captured source", scope="runs:read", read_only=True,
    idempotent=True,
    description="""A captured source with its content, once its seal was checked; one that was changed since is refused
    and not shown. A long content comes in parts by offset. Example: {"witness_id": "wit-..."}""",
)  # fmt: skip
async def graph_source_witness_get(call: Call[GetParams]) -> JsonObject:
    row = await call.deps.store.witnesses.get(call.args.witness_id)
    check_seal(row, call.deps.keys)
    return {**_view(row), **part(call, row.content.decode(), offset=call.args.offset, name="content")}


def _view(row: WitnessRow) -> JsonObject:
    body: JsonObject = {
        **reference(row), "locator": row.locator, "media_type": row.media_type,
        "authority_class": row.authority_class, "content_bytes": len(row.content),
        "retrieved_at": rfc3339(row.retrieved_at_ms), "retrieved_at_ms": row.retrieved_at_ms,
        "captured_at_ms": row.captured_at_ms, "captured_via": row.via,
    }  # fmt: skip
    if row.principal:
        body["principal"] = row.principal
    return body
