"""What a model's answer is worth to a node, and how a model is asked to mend one; half an answer is never a whole one.

An answer is read as the node's `json_mode`, `output_schema`, `repair` and `on_length` say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NoReturn

from agent_graph.core import reply, schema
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel, ModelAnswer, Warning_
from agent_graph.core.graph import Node
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import Limits
from agent_graph.errors import InvalidRequest, NodeFailure

KEPT_TEXT: Final = 2_000
"""Characters of an unusable answer that its error keeps."""
SHOWN_TEXT: Final = 500
"""Of one that was asked to be mended."""
PROMPT_TRUNCATED: Final = "PROMPT_TRUNCATED"
"""The warning of a host that read less of the prompt than it was sent."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """An answer that may be mended: why it cannot be used."""

    reason: Literal["json", "schema", "evidence"]
    problems: list[str]
    codes: tuple[str, ...] = ()
    """What each of the problems is called, where they have names."""


def unproven(problems: Sequence[JsonObject]) -> Unfit | None:
    """An answer whose claims do not stand on what they cite, [{code, message, claim?}]; None when there are none."""
    if not problems:
        return None
    return Unfit("evidence", [str(one["message"]) for one in problems], tuple(str(one["code"]) for one in problems))


def structured(config: Any) -> bool:
    """Whether the node wants JSON."""
    return config.json_mode or config.output_schema is not None


def read(node: Node, limits: Limits, answer: ModelAnswer) -> tuple[JsonValue, Unfit | None]:
    """The value of an answer, or why it may be mended; raises `NodeFailure` when it cannot be."""
    config: Any = node.config
    wants_json = structured(config)
    content, thinking = reply.leading_thinking(answer.text) if wants_json else reply.all_thinking(answer.text)
    if config.on_length == "error":
        _check_prompt_was_read(node, answer)
    if not content.strip():
        characters = len(thinking) + len(answer.thinking)
        message = f"the model answered nothing; its thinking had {characters} characters"
        fail(node, answer, "empty", message, thinking_chars=characters)
    cut = answer.done_reason == "length"
    if not wants_json:
        if cut and config.on_length == "error":
            fail(node, answer, "length", "the answer was cut at its length limit (`max_tokens`)")
        return content, None
    try:
        value = reply.read_json(content, inside=config.repair > 0 and not cut, limits=limits)
    except InvalidRequest as error:
        if cut:
            fail(node, answer, "length", "the answer was cut at its length limit (`max_tokens`) before its JSON ended")
        return None, Unfit("json", [error.message])
    if cut and not reply.is_closed(value):
        fail(node, answer, "length", "the answer was cut at its length limit (`max_tokens`)")
    wrong = schema.violations(value, config.output_schema) if config.output_schema is not None else []
    return value, Unfit("schema", wrong) if wrong else None


def asked_again(call: CallModel, answer: ModelAnswer, unfit: Unfit, *, limit: int) -> CallModel | None:
    """The conversation so far, the answer and what was wrong with it; None when that is beyond `limit` bytes."""
    wrong = "\n".join(f"- {problem}" for problem in unfit.problems)
    ask = (
        f"That answer cannot be used:\n{wrong}\n"
        "Answer again with the corrected JSON value alone, with nothing before or after it."
    )
    content, _ = reply.leading_thinking(answer.text)
    messages: list[JsonObject] = [
        *call.messages, {"role": "assistant", "content": content}, {"role": "user", "content": ask},
    ]  # fmt: skip
    total = sum(len(str(message["content"]).encode()) for message in messages)
    return replace(call, messages=tuple(messages)) if total <= limit else None


def refused(answer: ModelAnswer, unfit: Unfit) -> JsonObject:
    """What is kept of an answer that was asked to be mended."""
    codes: JsonObject = {"codes": list(unfit.codes)} if unfit.codes else {}
    return {"reason": unfit.reason, "problems": list(unfit.problems), **codes, "text": answer.text[:SHOWN_TEXT]}


def warnings(answer: ModelAnswer, before: list[JsonObject]) -> tuple[Warning_, ...]:
    """What a person should see of an answer that is taken, and of those `before` it that were not."""
    found = [_noticed(warning) for warning in answer.warnings]
    message = "an answer could not be used, and the model mended it when it was told why"
    found += [Warning_("MODEL_ANSWER_MENDED", message, one) for one in before]
    if answer.done_reason == "length":
        message = "the answer was cut at its length limit (`max_tokens`) and is kept as far as it goes"
        found.append(Warning_("MODEL_OUTPUT_TRUNCATED", message, {"completion_tokens": answer.completion_tokens}))
    return tuple(found)


def fail(node: Node, answer: ModelAnswer, reason: str, message: str, **details: Any) -> NoReturn:
    """Raises MODEL_BAD_REPLY with the beginning of the answer."""
    raise NodeFailure(
        "MODEL_BAD_REPLY",
        f'{reason}: node "{node.id}": {message}',
        failure_class="bad_reply",
        reason=reason,
        text=answer.text[:KEPT_TEXT],
        done_reason=answer.done_reason,
        **details,
    )


def _noticed(warning: JsonObject) -> Warning_:
    details = warning.get("details")
    return Warning_(
        str(warning.get("code", "MODEL_WARNING")), str(warning.get("message", "")),
        details if isinstance(details, dict) else {},
    )  # fmt: skip


def _check_prompt_was_read(node: Node, answer: ModelAnswer) -> None:
    """Raises PROMPT_TRUNCATED, which asking again would not mend."""
    for warning in map(_noticed, answer.warnings):
        if warning.code == PROMPT_TRUNCATED:
            message = f'node "{node.id}": {warning.message}'
            raise NodeFailure(PROMPT_TRUNCATED, message, failure_class="refused", **warning.details)
