"""`llm`: asks a model once, checks what it answers, and may ask for one mended answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, NoReturn

from annotated_types import Ge, Le, Len

from agent_graph.core import reply, schema
from agent_graph.core.effects import Answer, CallModel, Done, ModelAnswer, Warning_
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue, pointer, suggest
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import (
    UNAVAILABLE_EVERYWHERE,
    Milliseconds,
    NodeConfig,
    Read,
    Target,
    Values,
    contribution,
    path_issues,
    rendered,
    template_reads,
)
from agent_graph.core.ops.prompt import Template, parse
from agent_graph.errors import InvalidRequest, NodeFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of an `llm` node; `prompt`, `model`, `json_mode` and `max_tokens` may stand on the node too."""

    prompt: Annotated[str, Len(1)] = "{input}"
    system: str = ""
    model: str = ""
    """"" = the run's or the server's default."""
    json_mode: bool = False
    output_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) of the answer; sent to the model and checked here."""
    repair: Annotated[int, Ge(0), Le(3)] = 1
    """Rounds in which the model is shown what was wrong with its answer."""
    max_tokens: Annotated[int, Ge(1), Le(1_000_000)] | None = None
    temperature: Annotated[float, Ge(0), Le(100)] | None = None
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Further options by Ollama's names; the fields above win."""
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    """Left out of the request when None."""
    keep_alive: int | float | str | None = None
    """Seconds, or a duration such as "5m"."""
    timeout_ms: Milliseconds = 600_000
    idle_timeout_ms: Milliseconds = 120_000
    """Silence allowed after the first byte."""
    on_length: Literal["keep", "error"] = "keep"
    """What a text cut by `max_tokens` is worth; with a schema or `json_mode` it is always an error."""
    messages: list[Any] | None = None
    fallback_models: Annotated[list[str], Len(0, 16)] = field(default_factory=list)
    """Asked in this order, each with attempts of its own, when the ones before it have failed."""
    tools: list[Any] = field(default_factory=list)
    max_tool_rounds: int = 5
    cache: Any = False
    evidence_required: bool = False


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "messages": "give `prompt` and `system`; `messages` is not available yet",
    "tools": "a model cannot call tools yet",
    "max_tool_rounds": "a model cannot call tools yet",
    "cache": "answers are not cached yet",
    "evidence_required": "nothing checks evidence yet",
}
OPTIONS: Final = frozenset({
    "num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "typical_p", "tfs_z", "repeat_last_n", "temperature",
    "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau", "mirostat_eta",
    "penalize_newline", "stop", "numa", "num_ctx", "num_batch", "num_gpu", "main_gpu", "low_vram", "vocab_only",
    "use_mmap", "use_mlock", "num_thread", "draft_num_predict",
})  # fmt: skip
"""Ollama's option names, the ones it has dropped too; it ignores any other with a line in its own log only."""
_OPTION_OF: Final = {"temperature": "temperature", "seed": "seed", "max_tokens": "num_predict"}
_DURATION: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|ms|s|m|h))+|0")
_KEPT_TEXT: Final = 2_000
"""Characters of an unusable answer that its error keeps."""
_SHOWN_TEXT: Final = 500
"""Of one that was asked to be mended."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The templates of a node, parsed once."""

    system: Template
    prompt: Template


@dataclass(frozen=True, slots=True)
class _Unfit:
    """An answer that may be mended: why it cannot be used."""

    reason: Literal["json", "schema"]
    problems: list[str]


def prepare(config: Config) -> Prompts:
    """The templates of `system` and `prompt`."""
    return Prompts(parse(config.system), parse(config.prompt))


def check(node_id: str, config: Config, limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = path_issues(node_id, [(config.input_key, "/input_key"), (config.output_key, "/output_key")])
    issues += _model_issues(node_id, config)
    if isinstance(config.keep_alive, str) and not _DURATION.fullmatch(config.keep_alive[:64]):
        message = 'a number of seconds, or a duration such as "5m"'
        issues.append(Issue("FIELD_INVALID", message, pointer="/keep_alive", node_id=node_id))
    if config.output_schema is not None:
        issues += schema.check(config.output_schema, "/output_schema", node_id=node_id, limits=limits)
        issues += schema.unbounded(config.output_schema, "/output_schema", node_id=node_id)
    return issues + _option_issues(node_id, config)


def _model_issues(node_id: str, config: Config) -> list[Issue]:
    issues = []
    fallbacks = [(name, pointer("fallback_models", place)) for place, name in enumerate(config.fallback_models)]
    for name, at in (*([(config.model, "/model")] if config.model else []), *fallbacks):
        address = "://" in name or ".." in name or name.startswith("/")
        if not name or address or len(name) > 256 or any(c <= " " for c in name):
            message = "a model is named as its host lists it, such as `llama3.2:3b`: no address, no file"
            issues.append(Issue("FIELD_INVALID", message, pointer=at, node_id=node_id))
    for place, (name, at) in enumerate(fallbacks):
        if name in config.fallback_models[:place]:
            message = f"`{name}` is named twice: what failed is not asked again"
            issues.append(Issue("FIELD_INVALID", message, pointer=at, node_id=node_id))
    return issues


def _option_issues(node_id: str, config: Config) -> list[Issue]:
    issues = [
        Issue(
            "OPTION_UNKNOWN",
            f'Ollama knows no option "{name}" and would ignore it{suggest(name, OPTIONS)}',
            severity="warning",
            pointer=pointer("options", name),
            node_id=node_id,
        )
        for name in config.options
        if name not in OPTIONS
    ]
    for name, option in _OPTION_OF.items():
        given = getattr(config, name)
        if given is not None and config.options.get(option, given) != given:
            message = f"`{name}` and `options.{option}` name the same thing and differ"
            issues.append(Issue("FIELD_CONFLICT", message, pointer=pointer("options", option), node_id=node_id))
    return issues


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(config: Config) -> Sequence[Read]:
    prompts = prepare(config)
    found = [
        *template_reads(prompts.system, "/system", input_key=config.input_key),
        *template_reads(prompts.prompt, "/prompt", input_key=config.input_key),
    ]
    return list(dict.fromkeys(found))


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [config.output_key] if config.output_key else []


def writes_current(config: Config) -> bool:
    return not config.output_key


def step(node: Node, values: Values, answers: Sequence[Answer]) -> Done | CallModel:
    """Calls the model, reads its answer, and has it mended at most `repair` times.

    Raises `NodeFailure` PROMPT_VALUE_MISSING and VALUE_TOO_LARGE before any call; MODEL_BAD_REPLY afterwards, with
    `reason` empty, length, json or schema and the beginning of the text in its details.
    """
    config: Config = node.config
    call, refused = _call(node, values), list[JsonValue]()
    for place, answer in enumerate(answer for answer in answers if isinstance(answer, ModelAnswer)):
        value, unfit = _read(node, values, answer)
        if unfit is None:
            return _done(node, values, answer, value, refused=refused)
        mended = _mending(call, answer, unfit, limit=values.limits.prompt_bytes)
        if place >= config.repair or mended is None:
            said = "; ".join(unfit.problems) + (f" (it was asked to mend {len(refused)} before)" if refused else "")
            _fail(node, answer, unfit.reason, said, problems=unfit.problems, refused_before=refused)
        refused.append({"reason": unfit.reason, "problems": list(unfit.problems), "text": answer.text[:_SHOWN_TEXT]})
        call = mended
    return call


def _call(node: Node, values: Values) -> CallModel:
    config: Config = node.config
    prompts: Prompts = node.prepared
    messages: list[JsonObject] = []
    if config.system:
        messages.append({"role": "system", "content": rendered(prompts.system, values, config.input_key)})
    messages.append({"role": "user", "content": rendered(prompts.prompt, values, config.input_key)})
    options = dict(config.options)
    for name, option in _OPTION_OF.items():
        if getattr(config, name) is not None:
            options[option] = getattr(config, name)
    return CallModel(
        messages=tuple(messages),
        model=config.model,
        format=config.output_schema if config.output_schema is not None else "json" if config.json_mode else None,
        options=options,
        think=config.think,
        keep_alive=config.keep_alive,
        timeout_ms=config.timeout_ms,
        idle_timeout_ms=config.idle_timeout_ms,
    )


def _read(node: Node, values: Values, answer: ModelAnswer) -> tuple[JsonValue, _Unfit | None]:
    """The value of an answer, or why it may be mended; raises when it cannot be."""
    config: Config = node.config
    structured = config.json_mode or config.output_schema is not None
    content, thinking = reply.leading_thinking(answer.text) if structured else reply.all_thinking(answer.text)
    if not content.strip():
        characters = len(thinking) + len(answer.thinking)
        message = f"the model answered nothing; its thinking had {characters} characters"
        _fail(node, answer, "empty", message, thinking_chars=characters)
    cut = answer.done_reason == "length"
    if not structured:
        if cut and config.on_length == "error":
            _fail(node, answer, "length", "the answer was cut at its length limit (`max_tokens`)")
        return content, None
    try:
        value = reply.read_json(content, inside=config.repair > 0 and not cut, limits=values.limits)
    except InvalidRequest as error:
        if cut:
            _fail(node, answer, "length", "the answer was cut at its length limit (`max_tokens`) before its JSON ended")
        return None, _Unfit("json", [error.message])
    if cut and not reply.is_closed(value):
        _fail(node, answer, "length", "the answer was cut at its length limit (`max_tokens`)")
    wrong = schema.violations(value, config.output_schema) if config.output_schema is not None else []
    return value, _Unfit("schema", wrong) if wrong else None


def _mending(call: CallModel, answer: ModelAnswer, unfit: _Unfit, *, limit: int) -> CallModel | None:
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


def _done(
    node: Node, values: Values, answer: ModelAnswer, value: JsonValue, *, refused: Sequence[JsonValue] = ()
) -> Done:
    config: Config = node.config
    message = "an answer could not be used, and the model mended it when it was told why"
    mended = [Warning_("MODEL_ANSWER_MENDED", message, one) for one in refused if isinstance(one, dict)]
    warnings = [Warning_(str(w.get("code", "MODEL_WARNING")), str(w.get("message", ""))) for w in answer.warnings]
    warnings += mended
    if answer.done_reason == "length":
        message = "the answer was cut at its length limit (`max_tokens`) and is kept as far as it goes"
        warnings.append(Warning_("MODEL_OUTPUT_TRUNCATED", message, {"completion_tokens": answer.completion_tokens}))
    if config.output_key:
        write = contribution(values, config.output_key, value)
        return Done((write,), output=value, warnings=tuple(warnings))
    return Done(output=value, current=value, warnings=tuple(warnings))


def _fail(node: Node, answer: ModelAnswer, reason: str, message: str, **details: Any) -> NoReturn:
    raise NodeFailure(
        "MODEL_BAD_REPLY",
        f'{reason}: node "{node.id}": {message}',
        failure_class="bad_reply",
        reason=reason,
        text=answer.text[:_KEPT_TEXT],
        done_reason=answer.done_reason,
        **details,
    )
