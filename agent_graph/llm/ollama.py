"""Ollama's own API over HTTP: one streamed `/api/chat` a call, and what the host has installed.

Rules of the wire kept here (Ollama's server/routes.go and api/types.go): a line with ``error`` comes first whatever
else it holds; only a line with ``done: true`` ends an answer; absent counts mean nothing was said (prompt) or zero;
a prompt that does not fit is an error and never shortened in silence (``truncate`` and ``shift`` off); a model that
can think does so unless told not to; hanging up is what cancels.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.core.limits import DEFAULTS
from agent_graph.errors import ModelNotFound, ModelTimeout, ModelUnreachable, Upstream
from agent_graph.llm import refusals
from agent_graph.llm.base import ModelInfo, OnDelta
from agent_graph.llm.choose import choose_model, missing_model
from agent_graph.llm.context import USUAL, is_too_narrow, widened
from agent_graph.llm.deadlines import attempt, unbroken
from agent_graph.llm.hosts import HostAddress
from agent_graph.llm.ndjson import objects
from agent_graph.llm.ollama_words import (
    Known,
    answer,
    check_able,
    infos,
    known_of,
    loaded_context,
    request_body,
    tagged,
    take,
)
from agent_graph.llm.reply import Reply
from agent_graph.llm.wire import Wire, drain

if TYPE_CHECKING:
    import httpx2

PARALLEL = 4
KNOWN_FOR_MS = 60_000
"""How long an answer about a model is believed: somebody may pull another version under the same name."""
UNKNOWN_FOR_MS = 5_000
"""How long a host that said nothing about a model is not asked again."""
JSON_GROWTH = 6
"""A character may take six bytes in JSON (``\\u0041``)."""


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
        self._known: dict[str, tuple[Known, float]] = {}
        """By model, and until when it is believed (the loop's clock)."""
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
        return infos(listed)

    async def aclose(self) -> None:
        """Close every connection; a later call opens new ones."""
        await self._wire.aclose()

    async def _chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        model = call.model or self._model or (await choose_model(self)).model
        known = await self._about(model)
        check_able(call, known, model=model, host=self.host)
        if known.context is not None and is_too_narrow(call, limit=known.context, usual=max(USUAL, known.usual)):
            running = (await self._tell("GET", "/api/ps", model) or {}).get("models")
            call = widened(call, limit=known.context, loaded=loaded_context(running, model=model))
        reply = Reply(call, on_delta, max_bytes=self._max_reply_bytes, who=self.host)
        body = request_body(call, model, thinks="thinking" in known.capabilities)
        try:
            async with self._wire.request("POST", "/api/chat", model=model, body=body) as response:
                end = await self._read(response, reply, call, model=model)
        except ModelNotFound as error:
            raise await self._missing(error, model) from None
        return answer(call, reply, end, model=model, digest=known.digest)

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
                take(line, reply)
                if line.get("done") is True:
                    await drain(raw)
                    return line
                if reply.over:
                    return None
        raise refusals.cut(self.host, model=model)

    async def _about(self, model: str) -> Known:
        """What the host says of `model`; where it says nothing, the call itself finds out."""
        async with self._asking:  # the branches of a fan-out ask once
            now = asyncio.get_running_loop().time()
            known, until = self._known.get(model, (Known(), 0.0))
            if until < now:
                known, for_ms = await self._ask(model)
                self._known[model] = known, now + for_ms / 1000
        return known

    async def _ask(self, model: str) -> tuple[Known, int]:
        show = await self._tell("POST", "/api/show", model)
        if show is None:
            return Known(), UNKNOWN_FOR_MS
        tags = await self._tell("GET", "/api/tags", model) or {}
        return known_of(show, tags.get("models"), model=model), KNOWN_FOR_MS

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
        if any(info.name.lower() == tagged(model) for info in installed):
            return error  # the model is there: it is the route that is missing
        return missing_model(model, installed, host=self.host, said=str(error.details["body"]))
