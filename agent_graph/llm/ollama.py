"""Ollama's own API over HTTP: one streamed `/api/chat` a call, and what the host has installed.

Rules of the wire kept here (Ollama's server/routes.go and api/types.go): a line with ``error`` comes first whatever
else it holds; only a line with ``done: true`` ends an answer; absent counts mean nothing was said (prompt) or zero;
a prompt that does not fit is an error and never shortened in silence (``truncate`` and ``shift`` off); a model that
can think does so unless told not to; hanging up is what cancels.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import DEFAULTS
from agent_graph.errors import ModelNotFound, ModelTimeout, ModelUnreachable, Upstream
from agent_graph.llm import refusals
from agent_graph.llm.base import ModelInfo, OnDelta
from agent_graph.llm.choose import choose_model, missing_model
from agent_graph.llm.deadlines import attempt, unbroken
from agent_graph.llm.hosts import HostAddress
from agent_graph.llm.ndjson import objects
from agent_graph.llm.reply import WHITESPACE_LOOP, Reply, option_warnings, whole_characters
from agent_graph.llm.wire import Wire, drain

if TYPE_CHECKING:
    import httpx2

PARALLEL = 4
KNOWN_FOR_MS = 60_000
"""How long an answer about a model is believed: somebody may pull another version under the same name."""
UNKNOWN_FOR_MS = 5_000
"""How long a host that said nothing about a model is not asked again."""
LABEL_CHARS = 256
"""What is kept of a word a host says about itself: a model's name, a digest, why an answer ended."""
LARGEST_COUNT = 2**53
"""A count beyond this is nonsense, and counts as not said."""
JSON_GROWTH = 6
"""A character may take six bytes in JSON (``\\u0041``)."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the host said of a model, believed `until` (the loop's clock)."""

    thinks: bool
    digest: str
    until: float


class OllamaClient:
    """One Ollama server; `model` is used by calls that name none, and where it is "" too the host is asked.

    `parallel` is how many calls the engine keeps in flight; the server queues what it cannot serve at once.
    `max_reply_bytes` bounds text and thinking of one answer. For `api_key` see `wire.Wire`; it is taken
    out of every error.
    """

    provider = "ollama"

    def __init__(
        self,
        host: HostAddress,
        *,
        api_key: str = "",
        model: str = "",
        parallel: int = PARALLEL,
        max_reply_bytes: int = DEFAULTS.value_bytes,
    ) -> None:
        self.host = host.url
        self.parallel = parallel
        self._wire = Wire(host, api_key=api_key, accept="application/x-ndjson, application/json")
        self._model = model
        self._max_reply_bytes = max_reply_bytes
        self._known: dict[str, _Known] = {}
        self._asking = asyncio.Lock()

    async def chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        """Perform one call; see `base.ModelClient.chat` for what holds everywhere.

        A reply that is the JSON asked for and then nothing but blanks is taken, with a WHITESPACE_LOOP warning.
        """
        try:
            async with attempt(call, self.host):
                return await self._chat(call, on_delta)
        except Upstream as error:
            raise self._wire.scrubbed(error) from error.__cause__

    async def models(self) -> tuple[ModelInfo, ...]:
        """The installed models of `/api/tags`, in the host's order."""
        try:
            listed = (await self._wire.lookup("GET", "/api/tags")).get("models")
        except ModelTimeout as error:
            raise ModelUnreachable(f"{self.host} does not answer", reason="connect") from error
        except Upstream as error:
            raise self._wire.scrubbed(error) from error.__cause__
        return _infos(listed)

    async def aclose(self) -> None:
        """Close every connection; a later call opens new ones."""
        await self._wire.aclose()

    async def _chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        model = call.model or self._model or (await choose_model(self)).model
        known = await self._about(model)
        reply = Reply(call, on_delta, max_bytes=self._max_reply_bytes, who=self.host)
        body = _body(call, model, thinks=known.thinks)
        try:
            async with self._wire.request("POST", "/api/chat", model=model, body=body) as response:
                end = await self._read(response, reply, call, model=model)
        except ModelNotFound as error:
            raise await self._missing(error, model) from None
        return _answer(call, reply, end, model=model, digest=known.digest)

    async def _read(
        self, response: httpx2.Response, reply: Reply, call: CallModel, *, model: str
    ) -> dict[str, Any] | None:
        """Feed `reply` until its last line, which is returned; None when only blanks kept coming."""
        max_line = JSON_GROWTH * self._max_reply_bytes + 65_536
        async with (
            aclosing(response.aiter_bytes()) as raw,
            aclosing(unbroken(raw, call, who=self.host)) as pieces,
            aclosing(objects(pieces, who=self.host, max_line=max_line)) as lines,
        ):
            async for line in lines:
                if "error" in line:
                    raise refusals.stream_error(line, who=self.host, model=model)
                message = line.get("message")
                if isinstance(message, dict):
                    reply.add("thinking", _text(message.get("thinking")))
                    reply.add("text", _text(message.get("content")))
                if line.get("done") is True:
                    await drain(raw)
                    return line
                if reply.over:
                    return None
        raise refusals.cut(self.host, model=model)

    async def _about(self, model: str) -> _Known:
        """What the host says of `model`; where it says nothing, the call itself finds out."""
        async with self._asking:  # the branches of a fan-out ask once
            now = asyncio.get_running_loop().time()
            known = self._known.get(model)
            if known is None or known.until < now:
                known = await self._ask(model, now)
                self._known[model] = known
        return known

    async def _ask(self, model: str, now: float) -> _Known:
        show = await self._tell("POST", "/api/show", model)
        if show is None:
            return _Known(thinks=False, digest="", until=now + UNKNOWN_FOR_MS / 1000)
        tags = await self._tell("GET", "/api/tags", model) or {}
        digests = {info.name.lower(): info.digest for info in _infos(tags.get("models"))}
        return _Known(
            thinks="thinking" in _strings(show.get("capabilities")),
            digest=digests.get(_tagged(model), ""),
            until=now + KNOWN_FOR_MS / 1000,
        )

    async def _tell(self, method: str, path: str, model: str) -> dict[str, Any] | None:
        try:
            return await self._wire.lookup(method, path, model=model)
        except ModelUnreachable:
            raise
        except Upstream:  # a host without this route, or a proxy in between
            return None

    async def _missing(self, error: ModelNotFound, model: str) -> ModelNotFound:
        """`error`, with the names of what is installed where the host tells them."""
        try:
            installed = await self.models()
        except Upstream:
            return error
        if any(info.name.lower() == _tagged(model) for info in installed):
            return error  # the model is there: it is the route that is missing
        return missing_model(model, installed, host=self.host, said=str(error.details["body"]))


def _body(call: CallModel, model: str, *, thinks: bool) -> JsonObject:
    messages: list[Any] = list(call.messages)
    body: JsonObject = {"model": model, "messages": messages, "stream": True, "truncate": False, "shift": False}
    if call.format is not None:
        body["format"] = call.format
    if call.options:
        body["options"] = call.options
    if call.keep_alive is not None:
        body["keep_alive"] = call.keep_alive
    if call.think is not None:
        body["think"] = call.think
    elif thinks:
        body["think"] = False  # left out, it would mean true
    return body


def _answer(call: CallModel, reply: Reply, end: dict[str, Any] | None, *, model: str, digest: str) -> ModelAnswer:
    said = end or {}
    named = _label(said.get("model")) or model
    warnings = option_warnings(call.options)
    absent = None if end is None else 0
    return ModelAnswer(
        text=reply.text,
        thinking=reply.thinking,
        done_reason=_label(said.get("done_reason")) or "stop",
        model=named,
        performer=f"server:ollama/{named}",
        model_digest=digest,
        prompt_tokens=_count(said.get("prompt_eval_count"), None),
        completion_tokens=_count(said.get("eval_count"), absent),
        total_ms=_ms(said.get("total_duration"), absent),
        load_ms=_ms(said.get("load_duration"), absent),
        warnings=(*warnings, WHITESPACE_LOOP) if end is None else warnings,
    )


def _infos(listed: object) -> tuple[ModelInfo, ...]:
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return tuple(
        ModelInfo(
            name=_label(entry.get("name")) or _label(entry.get("model")),
            digest=_label(entry.get("digest")),
            size_bytes=_count(entry.get("size"), None),
            capabilities=_strings(entry.get("capabilities")),
        )
        for entry in entries
    )


def _tagged(name: str) -> str:
    """`name` as the host lists it: lower case, and ":latest" where no tag is given."""
    return (name if ":" in name.rpartition("/")[2] else f"{name}:latest").lower()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _label(value: object) -> str:
    return whole_characters(_text(value)[:LABEL_CHARS])


def _strings(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _count(value: object, absent: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT else absent


def _ms(nanoseconds: object, absent: int | None) -> int | None:
    count = _count(nanoseconds, absent)
    return None if count is None else count // 1_000_000
