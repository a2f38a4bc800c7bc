"""Ollama's words: what a call becomes on its wire, and what of its objects counts; opens no connection."""

from __future__ import annotations

import re
from typing import Any

from agent_graph.core import images
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import ModelRefused
from agent_graph.llm.base import ModelInfo
from agent_graph.llm.context import unread
from agent_graph.llm.reply import WHITESPACE_LOOP, Reply, option_warnings, whole_characters

LABEL_CHARS = 256
"""What is kept of a word a host says about itself: a model's name, a digest, why an answer ended."""
LARGEST_COUNT = 2**53
"""A count beyond this is nonsense, and counts as not said."""
_NUM_CTX = re.compile(r"^num_ctx\s+([0-9]{1,9})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Known:
    """What the host said of a model; without `capabilities` it said nothing."""

    capabilities: tuple[str, ...] = ()
    digest: str = ""
    context: int | None = None
    """Tokens the model can read at most."""
    usual: int = 0
    """Tokens of context its own file asks for; 0 = the host's usual."""


def known_of(show: dict[str, Any], listed: object, *, model: str) -> Known:
    """What `/api/show`, and the list of `/api/tags`, say of `model`."""
    digests = {info.name.lower(): info.digest for info in infos(listed)}
    about = show.get("model_info")
    limits = [about[key] for key in about if key.endswith(".context_length")] if isinstance(about, dict) else []
    declared = _NUM_CTX.search(text_in(show.get("parameters")))
    return Known(
        capabilities=_strings(show.get("capabilities")),
        digest=digests.get(tagged(model), ""),
        context=_count(limits[0], None) if limits else None,
        usual=int(declared.group(1)) if declared else 0,
    )


def loaded_context(running: object, *, model: str) -> int:
    """Tokens of context `model` is loaded with, as `/api/ps` tells; 0 where it is not loaded."""
    for entry in running if isinstance(running, list) else ():
        if isinstance(entry, dict) and text_in(entry.get("name")).lower() == tagged(model):
            return _count(entry.get("context_length"), None) or 0
    return 0


def check_able(call: CallModel, known: Known, *, model: str, host: str) -> None:
    """Raises `ModelRefused` for pictures and tools that a model which cannot use them would pass over in silence."""
    needs = {"vision": any("images" in each for each in call.messages), "tools": bool(call.tools)}
    for capability, does_not in (("vision", "see pictures"), ("tools", "call tools")):
        if needs[capability] and known.capabilities and capability not in known.capabilities:
            raise ModelRefused(f'the model "{model}" at {host} does not {does_not}', model=model, body="")


def take(line: dict[str, Any], reply: Reply) -> None:
    """What one line of a stream adds to the reply."""
    message = line.get("message")
    if not isinstance(message, dict):
        return
    reply.add("thinking", text_in(message.get("thinking")))
    reply.add("text", text_in(message.get("content")))
    calls = message.get("tool_calls")
    for each in calls if isinstance(calls, list) else ():
        function = each.get("function") if isinstance(each, dict) else None
        if isinstance(function, dict):
            named, call_id = _label(function.get("name")), _label(each.get("id"))
            reply.add_tool_call(call_id=call_id, name=named, arguments=function.get("arguments", {}))


def request_body(call: CallModel, model: str, *, thinks: bool) -> JsonObject:
    """The body of `/api/chat`; `thinks`: the model would think unless it is told not to."""
    messages: list[Any] = [_message(each) for each in call.messages]
    body: JsonObject = {"model": model, "messages": messages, "stream": True, "truncate": False, "shift": False}
    if call.format is not None:
        body["format"] = call.format
    if call.options:
        body["options"] = call.options
    if call.tools:
        body["tools"] = [_function(each) for each in call.tools]
    if call.keep_alive is not None:
        body["keep_alive"] = call.keep_alive
    if call.think is not None:
        body["think"] = call.think
    elif thinks:
        body["think"] = False  # left out, it would mean true
    return body


def _message(message: JsonObject) -> JsonObject:
    """A message as the host takes it: pictures are base64 there, without their type."""
    said = {name: value for name, value in message.items() if name in ("role", "content")}
    if isinstance(shown := message.get("images"), list):
        said["images"] = [images.parse(str(url)).base64 for url in shown]
    if isinstance(calls := message.get("tool_calls"), list):
        said["tool_calls"] = [_wanted(each) for each in calls if isinstance(each, dict)]
    if message["role"] == "tool":
        said |= {"tool_call_id": message["call_id"], "tool_name": message["name"]}
    return said


def _wanted(call: JsonObject) -> JsonObject:
    return {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}


def _function(tool: JsonObject) -> JsonObject:
    described: JsonObject = {name: tool[name] for name in ("name", "description", "parameters") if name in tool}
    return {"type": "function", "function": described}


def answer(call: CallModel, reply: Reply, end: dict[str, Any] | None, *, model: str, digest: str) -> ModelAnswer:
    """The answer of a stream that ended with the line `end`; None: it ended among blanks."""
    said = end or {}
    named = _label(said.get("model")) or model
    read = _count(said.get("prompt_eval_count"), None)
    warnings = (*option_warnings(call.options), *unread(call, read))
    absent = None if end is None else 0
    return ModelAnswer(
        text=reply.text,
        thinking=reply.thinking,
        done_reason=_label(said.get("done_reason")) or "stop",
        model=named,
        performer=f"server:ollama/{named}",
        model_digest=digest,
        prompt_tokens=read,
        completion_tokens=_count(said.get("eval_count"), absent),
        total_ms=_ms(said.get("total_duration"), absent),
        load_ms=_ms(said.get("load_duration"), absent),
        warnings=(*warnings, WHITESPACE_LOOP) if end is None else warnings,
        tool_calls=reply.tool_calls,
    )


def infos(listed: object) -> tuple[ModelInfo, ...]:
    """The installed models of a list of `/api/tags`."""
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


def tagged(name: str) -> str:
    """`name` as the host lists it: lower case, and ":latest" where no tag is given."""
    return (name if ":" in name.rpartition("/")[2] else f"{name}:latest").lower()


def text_in(value: object) -> str:
    """`value` where it is a text, else ""."""
    return value if isinstance(value, str) else ""


def _label(value: object) -> str:
    return whole_characters(text_in(value)[:LABEL_CHARS])


def _strings(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _count(value: object, absent: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT else absent


def _ms(nanoseconds: object, absent: int | None) -> int | None:
    count = _count(nanoseconds, absent)
    return None if count is None else count // 1_000_000
