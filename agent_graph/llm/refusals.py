"""Turns what a model host or the way to it says into the errors of the contract, by status and never by text."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agent_graph.errors import (
    ModelBadReply,
    ModelNotFound,
    ModelOverloaded,
    ModelRefused,
    ModelServerError,
    ModelUnreachable,
    Upstream,
)
from agent_graph.llm.ndjson import SHOWN
from agent_graph.llm.reply import whole_characters

OVERLOADED = frozenset({429, 503})
KEPT = 4_000
"""Characters of a host's own error text that are kept and shown."""


def refusal(status: int, body: bytes, *, who: str, model: str, retry_after: str = "", location: str = "") -> Upstream:
    """The error for an answer with `status`; `body` is what `error_text` reads, or whatever a proxy sent."""
    text = error_text(body)
    details = {"status": status, "model": model, "body": text}
    said = f"{who} answered {status}" + (f": {text}" if text else "")
    if status in OVERLOADED:
        wait_ms = retry_after_ms(retry_after)
        return ModelOverloaded(said, **details, **({} if wait_ms is None else {"retry_after_ms": wait_ms}))
    if status == 404:
        return ModelNotFound(said, **details)
    if 300 <= status < 400:
        return ModelRefused(
            f"{who} points to another address ({location}); name that one in the settings if it is yours", **details
        )
    if 400 <= status < 500:
        return ModelRefused(said, **details)
    return ModelServerError(said, **details)


def error_text(body: bytes) -> str:
    """The host's own error sentence, or the beginning of a body that has none."""
    text = body.decode(errors="replace")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    said = parsed.get("error") if isinstance(parsed, dict) else None
    if isinstance(said, dict):  # llama.cpp and OpenAI's wire have an object there
        said = said.get("message")
    return whole_characters(said[:KEPT]) if isinstance(said, str) else text.strip()[:SHOWN]


def stream_error(line: dict[str, object], *, who: str, model: str) -> ModelServerError:
    """The error for a line with ``error`` in a stream that had begun well."""
    said = error_text(json.dumps(line).encode())
    return ModelServerError(f"{who} failed in the middle of its answer: {said}", model=model, body=said)


def retry_after_ms(value: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> int | None:
    """Milliseconds that a ``Retry-After`` header (RFC 9110, 10.2.3: seconds or a date) asks to wait; None without."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return int(value[:9]) * 1000
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round((moment - now()).total_seconds() * 1000))


def transport_error(error: Exception, *, who: str, model: str, began: bool) -> Upstream:
    """The error for a failure below HTTP; `began` tells whether the answer's head had come."""
    import httpx2

    kind = f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, httpx2.DecodingError):
        return ModelBadReply(f"{who} sent a body that cannot be unpacked ({kind})", reason="not_json", model=model)
    if not began:
        return ModelUnreachable(f"{who} does not answer ({kind})", reason="connect", model=model)
    if isinstance(error, httpx2.RemoteProtocolError):
        return cut(who, model=model)
    return ModelUnreachable(
        f"the connection to {who} broke in the middle of its answer ({kind})", reason="reset", model=model
    )


def cut(who: str, *, model: str) -> ModelBadReply:
    """The error for a stream that ended before its last line."""
    return ModelBadReply(f"{who} closed the connection before the answer was done", reason="cut", model=model)
