"""Any server that speaks OpenAI's chat completions: one streamed ``POST /chat/completions`` a call.

Rules of the wire kept here (OpenAI's API reference; llama.cpp, vLLM and Ollama's own ``/v1`` differ in what they leave
out): an event with ``error`` comes first whatever else it holds; an answer has ended when it says why
(``finish_reason``), and ``[DONE]`` or the end of the stream only closes it; the counts come in an event without choices
and may be missing; a refusal is told in a field of its own or by ``content_filter``; hanging up is what cancels.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING, Any

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.core.limits import DEFAULTS
from agent_graph.errors import ModelBadReply, ModelNotFound, ModelRefused, ModelTimeout, ModelUnreachable, Upstream
from agent_graph.llm import refusals
from agent_graph.llm.base import ModelInfo, OnDelta
from agent_graph.llm.choose import choose_model, missing_model
from agent_graph.llm.context import unread
from agent_graph.llm.deadlines import attempt, unbroken
from agent_graph.llm.hosts import HostAddress
from agent_graph.llm.ndjson import SHOWN, parse_object
from agent_graph.llm.openai_request import request_body, warnings_of
from agent_graph.llm.openai_tools import ToolCallPieces
from agent_graph.llm.reply import WHITESPACE_LOOP, Reply, whole_characters
from agent_graph.llm.sse import event_data
from agent_graph.llm.wire import Wire, bounded, drain

if TYPE_CHECKING:
    import httpx2

PARALLEL = 4
LABEL_CHARS = 256
LARGEST_COUNT = 2**53
JSON_GROWTH = 6
"""A character may take six bytes in JSON (``\\u0041``)."""


@dataclass(slots=True)
class _Told:
    """What the host says beside the text."""

    calls: ToolCallPieces
    finish: str = ""
    model: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    refusal: list[str] = field(default_factory=list)


class OpenAIClient:
    """One OpenAI-style server; `model` is used by calls that name none, and where it is "" too the host is asked.

    `host` holds the ``/v1``. `parallel` is how many calls the engine keeps in flight. `max_reply_bytes` bounds text and
    thinking of one answer. For `api_key` see `wire.Wire`; it is taken out of every error.
    """

    provider = "openai_compatible"

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
        self._wire = Wire(host, api_key=api_key, accept="text/event-stream, application/json")
        self._model = model
        self._max_reply_bytes = max_reply_bytes

    async def chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        """Perform one call; see `base.ModelClient.chat` for what holds everywhere.

        A model that declines to answer raises `ModelRefused` (details.reason "refusal" or "content_filter").
        """
        try:
            async with attempt(call, self.host):
                return await self._chat(call, on_delta)
        except Upstream as error:
            raise self._wire.scrubbed(error) from error.__cause__

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models of ``GET /models``, in the host's order."""
        try:
            listed = (await self._wire.lookup("GET", "/models")).get("data")
        except ModelTimeout as error:
            raise ModelUnreachable(f"{self.host} does not answer", reason="connect") from error
        except Upstream as error:
            raise self._wire.scrubbed(error) from error.__cause__
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        return tuple(ModelInfo(name=name) for entry in entries if (name := _label(entry.get("id"))))

    async def aclose(self) -> None:
        """Close every connection; a later call opens new ones."""
        await self._wire.aclose()

    async def _chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        model = call.model or self._model or (await choose_model(self)).model
        reply = Reply(call, on_delta, max_bytes=self._max_reply_bytes, who=self.host)
        told = _Told(ToolCallPieces(max_bytes=self._max_reply_bytes, who=self.host))
        body = request_body(call, model)
        try:
            async with self._wire.request("POST", "/chat/completions", model=model, body=body) as response:
                if "text/event-stream" in response.headers.get("content-type", ""):
                    await self._read(response, reply, told, call, model=model)
                else:
                    await self._read_whole(response, reply, told, call, model=model)
        except ModelNotFound as error:
            raise await self._missing(error, model) from None
        self._check_end(reply, told, model=model)
        told.calls.end(reply)
        return _answer(call, reply, told, model=model)

    async def _read(self, response: httpx2.Response, reply: Reply, told: _Told, call: CallModel, *, model: str) -> None:
        """Feed `reply` until the host closes its answer, or only blanks keep coming."""
        max_event = JSON_GROWTH * self._max_reply_bytes + 65_536
        async with (
            aclosing(response.aiter_bytes()) as raw,
            aclosing(unbroken(raw, call, who=self.host)) as pieces,
            aclosing(event_data(pieces, who=self.host, max_event=max_event)) as events,
        ):
            async for data in events:
                if data.strip() == b"[DONE]":
                    await drain(raw)
                    return
                self._take(self._parsed(data), reply, told, part="delta", model=model)
                if reply.over:
                    return

    async def _read_whole(
        self, response: httpx2.Response, reply: Reply, told: _Told, call: CallModel, *, model: str
    ) -> None:
        """A host that does not stream sends its answer as one object."""
        most = JSON_GROWTH * self._max_reply_bytes + 65_536
        async with (
            aclosing(response.aiter_bytes()) as raw,
            aclosing(unbroken(raw, call, who=self.host)) as pieces,
        ):
            whole = await bounded(pieces, most)
        if len(whole) >= most:
            raise ModelBadReply(f"{self.host} answered with more than {most} bytes", reason="too_large", max_bytes=most)
        if not whole.strip():
            raise refusals.cut(self.host, model=model)
        self._take(self._parsed(whole), reply, told, part="message", model=model)

    def _parsed(self, data: bytes) -> dict[str, Any]:
        value = parse_object(data)
        if value is None:
            shown = data.decode(errors="replace").strip()[:SHOWN]
            message = f"{self.host} answered with something that is not JSON: {shown}"
            raise ModelBadReply(message, reason="not_json", body=shown)
        return value

    def _take(self, event: dict[str, Any], reply: Reply, told: _Told, *, part: str, model: str) -> None:
        if event.get("error") is not None:
            raise _stream_error(event, who=self.host, model=model)
        told.model = _label(event.get("model")) or told.model
        usage = event.get("usage")
        told.usage = usage if isinstance(usage, dict) else told.usage
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        said = choice.get(part)
        if isinstance(said, dict):
            reply.add("thinking", _text(said.get("reasoning_content")) or _text(said.get("reasoning")))
            reply.add("text", _text(said.get("content")))
            told.calls.take(said.get("tool_calls"))
            if declined := _text(said.get("refusal")):
                told.refusal.append(declined[: refusals.KEPT])
        told.finish = _label(choice.get("finish_reason")) or told.finish

    def _check_end(self, reply: Reply, told: _Told, *, model: str) -> None:
        if told.refusal:
            said = whole_characters("".join(told.refusal)[: refusals.KEPT])
            message = f'"{model}" at {self.host} declined to answer: {said}'
            raise ModelRefused(message, reason="refusal", model=model, body=said)
        if told.finish == "content_filter":
            message = f'{self.host} withheld the answer of "{model}" (content_filter)'
            raise ModelRefused(message, reason="content_filter", model=model, body=reply.text[: refusals.KEPT])
        if not told.finish and not reply.over:
            raise refusals.cut(self.host, model=model)

    async def _missing(self, error: ModelNotFound, model: str) -> ModelNotFound:
        """`error`, with the names of what is there where the host tells them."""
        try:
            there = await self.models()
        except Upstream:
            return error
        if any(info.name == model for info in there):
            return error  # the model is there: it is the route that is missing
        return missing_model(model, there, host=self.host, said=str(error.details["body"]))


def _stream_error(event: dict[str, Any], *, who: str, model: str) -> Upstream:
    """The error for an event with ``error``: by its status where it has one, as llama.cpp's have."""
    said = event["error"]
    code = said.get("code") if isinstance(said, dict) else None
    if isinstance(code, int) and 400 <= code < 600:
        return refusals.refusal(code, json.dumps(event).encode(), who=who, model=model)
    return refusals.stream_error(event, who=who, model=model)


def _answer(call: CallModel, reply: Reply, told: _Told, *, model: str) -> ModelAnswer:
    read = _count(told.usage.get("prompt_tokens"))
    warnings = (*warnings_of(call), *unread(call, read))
    named = told.model or model
    return ModelAnswer(
        text=reply.text,
        thinking=reply.thinking,
        done_reason=told.finish or "stop",
        model=named,
        performer=f"server:openai_compatible/{named}",
        prompt_tokens=read,
        completion_tokens=_count(told.usage.get("completion_tokens")),
        warnings=warnings if told.finish else (*warnings, WHITESPACE_LOOP),
        tool_calls=reply.tool_calls,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _label(value: object) -> str:
    return whole_characters(_text(value)[:LABEL_CHARS])


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT else None
