"""What a call says on OpenAI's wire, and what of it that wire has no word for."""

from __future__ import annotations

from typing import Any, Final

from agent_graph.core import model_options
from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.llm import openai_tools
from agent_graph.llm.reply import option_warnings

RENAMED: Final = {"num_predict": "max_tokens"}
TAKEN: Final = frozenset({
    "temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty", "num_predict",
})  # fmt: skip
"""Ollama's options that every such server takes; some refuse a request that holds another."""
EFFORTS: Final = ("low", "medium", "high")


def request_body(call: CallModel, model: str) -> JsonObject:
    """The body of one streamed completion. ``num_predict`` without a bound (-1, -2) is left out."""
    messages: list[Any] = [_message(each) for each in call.messages]
    body: JsonObject = {
        "model": model, "messages": messages, "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    for name, value in call.options.items():
        if name in TAKEN and not (name == "num_predict" and isinstance(value, int) and value < 0):
            body[RENAMED.get(name, name)] = value
    if call.tools:
        body["tools"] = [openai_tools.function(each) for each in call.tools]
    if call.think in EFFORTS:
        body["reasoning_effort"] = call.think
    if call.format == "json":
        body["response_format"] = {"type": "json_object"}
    elif call.format is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": call.format}}
    return body


def _message(message: JsonObject) -> JsonObject:
    """A message as the host takes it: with pictures, its content is a list of parts."""
    shown = message.get("images")
    if not isinstance(shown, list):
        return openai_tools.message(message)
    parts: list[Any] = [{"type": "text", "text": message["content"]}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in shown]
    return {"role": message["role"], "content": parts}


def warnings_of(call: CallModel) -> tuple[JsonObject, ...]:
    """One warning for each option that nobody knows, and for each thing asked for that was not sent."""
    unsaid = [f'the option "{name}"' for name in call.options if name in model_options.KNOWN - TAKEN]
    unsaid += ["`keep_alive`"] if call.keep_alive is not None else []
    unsaid += ["`think`"] if call.think not in (None, False, *EFFORTS) else []
    ignored: list[JsonObject] = [
        {"code": "OPTION_IGNORED", "message": f"an OpenAI-style host has no word for {what}"} for what in unsaid
    ]
    return (*option_warnings(call.options), *ignored)
