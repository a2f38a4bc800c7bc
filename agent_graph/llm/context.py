"""How much of a prompt a model reads: the context a call needs, and whether the host has read all that was sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject, compact
from agent_graph.core.mending import PROMPT_TRUNCATED

USUAL: Final = 4_096
"""Tokens of context a host gives a model when nobody says more (Ollama's least default)."""
ANSWER: Final = 1_024
"""Tokens left for an answer whose length nobody bounds."""
PICTURE: Final = 1_024
"""Tokens a picture is taken for."""
FULLEST: Final = 7
"""Characters of one token, on the average of a long text, beyond which something was left unread."""
SHORT: Final = 4_000
"""Characters of a prompt too short to tell."""


def needed(call: CallModel) -> int:
    """Tokens the prompt and its answer take, rather too many than too few."""
    text = "".join(_texts(call))
    ascii_ = len(text.encode("ascii", "ignore"))
    pictures = sum(len(_pictures(message)) for message in call.messages)
    most: Any = call.options.get("num_predict")
    answer = most if isinstance(most, int) and most > 0 else ANSWER
    prompt = ascii_ // 3 + (len(text) - ascii_) * 3 // 2 + 8 * len(call.messages) + PICTURE * pictures
    return prompt + answer


def is_too_narrow(call: CallModel, *, limit: int | None, usual: int = USUAL) -> bool:
    """Whether `call` needs more context than the host's `usual`, and nobody has said how much: the model's `limit` is
    known, and what the node says is never changed."""
    return limit is not None and limit > usual and "num_ctx" not in call.options and needed(call) > usual


def widened(call: CallModel, *, limit: int, loaded: int = 0) -> CallModel:
    """`call` with the `num_ctx` it needs: a power of two within the model's `limit`, or what it is `loaded` with where
    that is enough, because another size makes the host load it anew."""
    tokens = needed(call)
    size = loaded if tokens <= loaded <= limit else min(limit, 1 << (tokens - 1).bit_length())
    return replace(call, options={**call.options, "num_ctx": size})


def unread(call: CallModel, read: int | None) -> tuple[JsonObject, ...]:
    """A warning when the `read` tokens the host counts cannot be the whole prompt."""
    sent = sum(len(text) for text in _texts(call))
    if not read or sent < SHORT or sent <= FULLEST * read:
        return ()
    context = call.options.get("num_ctx")
    message = (
        f"the host read {read} tokens of a prompt of {sent} characters: it has cut it"
        f" ({'num_ctx is ' + str(context) if context else 'options.num_ctx makes room for more'})"
    )
    return ({"code": PROMPT_TRUNCATED, "message": message, "details": {"prompt_tokens": read, "characters": sent}},)


def _texts(call: CallModel) -> list[str]:
    tools = [compact(one["tool_calls"]) for one in call.messages if "tool_calls" in one]
    return [*(str(message.get("content") or "") for message in call.messages), *tools]


def _pictures(message: JsonObject) -> list[Any]:
    shown = message.get("images")
    return shown if isinstance(shown, list) else []
