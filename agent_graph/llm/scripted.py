"""A model that says what it was told to: for tests, documentation and trying a graph without a model.

In code::

    model = ScriptedModel([Reply(when="capital", text="Paris"), Reply(json={"verdict": "go"})])
    model = ScriptedModel(answer)          # async def answer(call) -> str | dict | list | Reply | ModelAnswer

The first reply whose `when` is in the last user message is given; one with `times` is used up. From a file
(``AGENT_GRAPH_SCRIPT``) see `script_file`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

from agent_graph import errors
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import MISSING, CallModel, MaybeJson, ModelAnswer
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import DEFAULTS
from agent_graph.llm.base import ModelInfo, OnDelta
from agent_graph.llm.deadlines import attempt, unbroken
from agent_graph.llm.reply import Reply as Gathered
from agent_graph.llm.script_file import read_script

PARALLEL = 4
NAME = "scripted"


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted reply: `text`, or `json` (written out as text), or `error`; `tool_calls` alone or beside a text."""

    text: str = ""
    """What the model says."""
    json: MaybeJson = MISSING
    """What it says, written out as JSON."""
    when: str = ""
    """Given only where the last user message holds this; "" fits every message."""
    model: str = ""
    """Given only where the call names this model; "" fits every model."""
    result: str | None = None
    """Given only where a tool's result is the last message and holds this."""
    images: int | None = None
    """Given only where so many pictures are shown."""
    tool_calls: Sequence[JsonObject] = ()
    """[{name, arguments, id?}]: tools it wants called before it goes on."""
    chunks: int = 1
    """In how many pieces the text is told."""
    thinking: str = ""
    """What it thinks before it says that."""
    done_reason: str = "stop"
    """Why it stopped: `length` is at its length limit."""
    prompt_tokens: int | None = None
    """None counts the words of the messages."""
    completion_tokens: int | None = None
    """None counts the words of the text."""
    delay_ms: int = 0
    """Waited before the first piece; it counts against the call's timeout."""
    chunk_delay_ms: int = 0
    """Waited before each further piece; it counts against the call's idle timeout."""
    error: JsonObject | None = None
    """{code, message, ...details}: a ``MODEL_*`` code of `agent_graph.errors`, raised after the delay."""
    times: int | None = None
    """How often it is given; None = without end."""


Said: TypeAlias = "str | dict[str, Any] | list[Any] | Reply | ModelAnswer"
Answering: TypeAlias = Callable[[CallModel], Awaitable[Said]]


@dataclass(slots=True)
class _Open:
    """Calls now and at most under way together."""

    now: int = 0
    most: int = 0
    left: dict[int, int] = field(default_factory=dict)


class ScriptedModel:
    """A `base.ModelClient` with answers from a list, a function or a file. `calls` holds what it was asked, in order.

    A call that no reply fits gets `default`, and without one `ModelRefused` with the message that was not foreseen.
    Token counts are words, so the same script counts the same everywhere.
    """

    provider = "scripted"

    def __init__(
        self,
        replies: Iterable[Reply] | Answering = (),
        *,
        default: Reply | None = None,
        parallel: int = PARALLEL,
        name: str = NAME,
        max_reply_bytes: int = DEFAULTS.value_bytes,
    ) -> None:
        self._answering: Answering | None = replies if callable(replies) else None
        self._replies: tuple[Reply, ...] = () if callable(replies) else tuple(replies)
        self._default = default
        self._open = _Open(left={i: r.times for i, r in enumerate(self._replies) if r.times is not None})
        self._max_reply_bytes = max_reply_bytes
        self.name = name
        self.host = NAME
        self.parallel = parallel
        self.calls: list[CallModel] = []

    @classmethod
    def from_file(
        cls, path: Path, *, parallel: int = PARALLEL, max_reply_bytes: int = DEFAULTS.value_bytes
    ) -> ScriptedModel:
        """The model of a script; raises `SettingInvalid` for a file that is none, see `script_file.read_script`."""
        replies, default = read_script(path, fields=SCRIPT_FIELDS, codes=frozenset(ERRORS))
        return cls(
            [Reply(**each) for each in replies],
            default=None if default is None else Reply(**default),
            parallel=parallel,
            max_reply_bytes=max_reply_bytes,
        )

    @property
    def most_at_once(self) -> int:
        """How many calls were ever under way together."""
        return self._open.most

    def count(self, text: str) -> int:
        """How many calls had `text` in their last user message."""
        return sum(text in last_user_message(call) for call in self.calls)

    async def chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        """Answer `call` as scripted, within its time limits."""
        self.calls.append(call)
        self._open.now += 1
        self._open.most = max(self._open.most, self._open.now)
        try:
            async with attempt(call, self.host):
                return await self._chat(call, on_delta)
        finally:
            self._open.now -= 1

    async def models(self) -> tuple[ModelInfo, ...]:
        """The one model there is."""
        return (ModelInfo(self.name, capabilities=("completion", "thinking", "tools", "vision")),)

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def _chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        said: Said = self._fitting(call) if self._answering is None else await self._answering(call)
        if isinstance(said, ModelAnswer):
            on_delta("text", said.text)
            return said
        reply = _as_reply(said)
        gathered = Gathered(call, on_delta, max_bytes=self._max_reply_bytes, who=self.host)
        async for piece in unbroken(_pieces(reply), call, who=self.host):
            gathered.add("thinking", "" if piece else reply.thinking)
            gathered.add("text", piece)
        for wanted in reply.tool_calls:
            name, call_id = str(wanted.get("name", "")), str(wanted.get("id", ""))
            gathered.add_tool_call(call_id=call_id, name=name, arguments=wanted.get("arguments", {}))
        model = call.model or self.name
        prompt = " ".join(str(message.get("content", "")) for message in call.messages)
        return ModelAnswer(
            text=gathered.text,
            thinking=gathered.thinking,
            done_reason=reply.done_reason,
            model=model,
            performer=f"server:{self.provider}/{model}",
            prompt_tokens=_words(prompt) if reply.prompt_tokens is None else reply.prompt_tokens,
            completion_tokens=_words(gathered.text) if reply.completion_tokens is None else reply.completion_tokens,
            total_ms=reply.delay_ms,
            load_ms=0,
            tool_calls=gathered.tool_calls,
        )

    def _fitting(self, call: CallModel) -> Reply:
        message = last_user_message(call)
        left = self._open.left
        for index, reply in enumerate(self._replies):
            if _fits(reply, call, message) and left.get(index) != 0:
                if index in left:
                    left[index] -= 1
                return reply
        if self._default is None:
            raise errors.ModelRefused(f"the script has no reply to: {message[:200]}", model=call.model, body="")
        return self._default


def last_user_message(call: CallModel) -> str:
    """The text that `when` is looked for in."""
    return next((str(m.get("content", "")) for m in reversed(call.messages) if m.get("role") == "user"), "")


def _fits(reply: Reply, call: CallModel, message: str) -> bool:
    if reply.when not in message or reply.model not in ("", call.model):
        return False
    shown: list[Any] = [message.get("images", ()) for message in call.messages]
    if reply.images is not None and reply.images != sum(map(len, shown)):
        return False
    last = call.messages[-1] if call.messages else {}
    return reply.result is None or (last.get("role") == "tool" and reply.result in str(last["content"]))


def _as_reply(said: str | dict[str, Any] | list[Any] | Reply) -> Reply:
    if isinstance(said, Reply):
        return said
    return Reply(text=said) if isinstance(said, str) else Reply(json=said)


async def _pieces(reply: Reply) -> AsyncIterator[str]:
    """ "" first, which stands for the beginning of the answer, then the text in its pieces."""
    await asyncio.sleep(reply.delay_ms / 1000)
    if reply.error is not None:
        details: dict[str, JsonValue] = {k: v for k, v in reply.error.items() if k not in ("code", "message")}
        code = str(reply.error["code"])
        raise ERRORS[code](str(reply.error.get("message", f"the script says {code}")), **details)
    yield ""
    text = reply.text if reply.json is MISSING else json.dumps(reply.json, ensure_ascii=False)
    size = max(1, -(-len(text) // reply.chunks))
    for start in range(0, len(text), size):
        if start:
            await asyncio.sleep(reply.chunk_delay_ms / 1000)
        yield text[start : start + size]


def _words(text: str) -> int:
    return len(text.split())


ERRORS: dict[str, type[errors.Upstream]] = {
    kind.code: kind
    for kind in (
        errors.ModelUnreachable,
        errors.ModelTimeout,
        errors.ModelOverloaded,
        errors.ModelServerError,
        errors.ModelBadReply,
        errors.ModelNotFound,
        errors.ModelRefused,
        errors.ModelNotConfigured,
    )
}

SCRIPT_FIELDS: dict[str, type] = {
    "text": str, "when": str, "model": str, "chunks": int, "thinking": str, "done_reason": str, "prompt_tokens": int,
    "completion_tokens": int, "delay_ms": int, "chunk_delay_ms": int, "error": dict, "times": int, "json": object,
    "result": str, "images": int, "tool_calls": list,
}  # fmt: skip
"""What a reply of a script file may hold; `object` is any JSON value."""
