"""`llm`: asks a model, checks what it answers, and may ask for one mended answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Final, Literal

from agent_graph.core import chat, evidence, mending, model_options, schema, tool_loop
from agent_graph.core.bounds import Ge, Le, Len
from agent_graph.core.chat import Message
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, CallModel, CallTool, CheckEvidence, Done, EvidenceAnswer, ModelAnswer
from agent_graph.core.graph import Node
from agent_graph.core.images import MOST_IMAGES
from agent_graph.core.issues import Issue, pointer
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
    placeholder_values,
    template_reads,
)

PROMPT: Final = "{input}"
MAX_TOOL_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of an `llm` node; `prompt`, `model`, `json_mode` and `max_tokens` may stand on the node too."""

    prompt: Annotated[str, Len(1)] = PROMPT
    """What is asked; a template."""
    system: str = ""
    """What the model is told before the prompt; a template."""
    model: str = ""
    """"" = the run's or the server's default."""
    json_mode: bool = False
    """The answer is JSON, and its value is the node's output."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) of the answer; sent to the model and checked here."""
    repair: Annotated[int, Ge(0), Le(3)] = 1
    """Rounds in which the model is shown what was wrong with its answer."""
    max_tokens: Annotated[int, Ge(1), Le(1_000_000)] | None = None
    """Tokens of an answer at most; left out, the host's own bound."""
    temperature: Annotated[float, Ge(0), Le(100)] | None = None
    """How freely the model draws; left out, as the host has it."""
    seed: int | None = None
    """Where the model's drawing starts: the same seed, the same draw, where the host keeps to it."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further options by Ollama's names; the fields above win."""
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    """Left out of the request when None."""
    keep_alive: int | float | str | None = None
    """Seconds, or a duration such as "5m"."""
    timeout_ms: Milliseconds = 600_000
    """Bounds one attempt."""
    idle_timeout_ms: Milliseconds = 120_000
    """Silence allowed after the first byte."""
    on_length: Literal["keep", "error"] = "keep"
    """What a text cut by `max_tokens` is worth; with a schema or `json_mode` it is always an error. With "error" a
    prompt that the host has cut is one too."""
    messages: Annotated[list[Message], Len(1, chat.MOST_MESSAGES)] | None = None
    """The whole conversation, in place of `system`, `prompt` and `images`."""
    images: Annotated[list[str], Len(0, MOST_IMAGES)] = field(default_factory=list)
    """Pictures shown with the prompt: data URLs, or placeholders of state values that hold them (or a list of them)."""
    fallback_models: Annotated[list[str], Len(0, 16)] = field(default_factory=list)
    """Asked in this order, each with attempts of its own, when the ones before it have failed."""
    tools: Annotated[list[str], Len(0, tool_loop.MOST_TOOLS)] = field(default_factory=list)
    """What the model may call, as `connection/tool`: tools of the connections in the server's configuration."""
    max_tool_rounds: Annotated[int, Ge(1), Le(tool_loop.MOST_ROUNDS)] = MAX_TOOL_ROUNDS
    """Answers with calls that are followed; one more fails the node."""
    cache: bool = False
    """Take the answer recorded for the same call: same model, prompt, options and form, asked for by the same client.
    Where the model draws (no `seed`, and no `temperature` of 0), by the same firing of the same node too."""
    evidence_required: bool = False
    """The answer has to have `claims`, each with the words of a captured source it rests on, which are looked up."""

    def __post_init__(self) -> None:
        NodeConfig.__post_init__(self)
        given: Any = self.messages
        if given and isinstance(given[0], dict):  # a stored spec is read without pydantic
            object.__setattr__(self, "messages", [Message(**one) for one in given])


CHOOSES: Final = False
UNAVAILABLE: Final = UNAVAILABLE_EVERYWHERE
_DURATION: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|ms|s|m|h))+|0")


def prepare(config: Config) -> tuple[chat.Part, ...]:
    """The messages, their templates parsed once."""
    return chat.parts(
        system=config.system, prompt=config.prompt, pictures=config.images, messages=config.messages
    )  # fmt: skip


def check(node_id: str, config: Config, limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = path_issues(node_id, [(config.input_key, "/input_key"), (config.output_key, "/output_key")])
    issues += _model_issues(node_id, config)
    issues += _message_issues(node_id, config)
    issues += tool_loop.issues(config.tools, node_id=node_id)
    if config.max_tool_rounds != MAX_TOOL_ROUNDS and not config.tools:
        message = "the model is offered no `tools`, so it goes no rounds with them"
        issues.append(
            Issue("FIELD_UNUSED", message, severity="warning", pointer="/max_tool_rounds", node_id=node_id)
        )  # fmt: skip
    if isinstance(config.keep_alive, str) and not _DURATION.fullmatch(config.keep_alive[:64]):
        message = 'a number of seconds, or a duration such as "5m"'
        issues.append(Issue("FIELD_INVALID", message, pointer="/keep_alive", node_id=node_id))
    if config.output_schema is not None:
        issues += schema.check(config.output_schema, "/output_schema", node_id=node_id, limits=limits)
        issues += schema.unbounded(config.output_schema, "/output_schema", node_id=node_id)
    if config.evidence_required:
        issues += evidence.issues(config.output_schema, json_mode=config.json_mode, node_id=node_id)
    return issues + model_options.issues(config.options, config, node_id=node_id)


def _message_issues(node_id: str, config: Config) -> list[Issue]:
    issues = chat.image_issues(prepare(config), node_id=node_id)
    beside = {"prompt": config.prompt != PROMPT, "system": bool(config.system), "images": bool(config.images)}
    for name in (name for name, given in beside.items() if given and config.messages is not None):
        message = f"`messages` is the whole conversation: put what `{name}` says into it"
        issues.append(Issue("FIELD_CONFLICT", message, pointer=f"/{name}", node_id=node_id, related=("/messages",)))
    return issues


def model_name_wrong(name: str) -> bool:
    """It is no name under which a host lists a model."""
    address = "://" in name or ".." in name or name.startswith("/")
    return not name or address or len(name) > 256 or any(c <= " " for c in name)


def _model_issues(node_id: str, config: Config) -> list[Issue]:
    issues = []
    fallbacks = [(name, pointer("fallback_models", place)) for place, name in enumerate(config.fallback_models)]
    for name, at in (*([(config.model, "/model")] if config.model else []), *fallbacks):
        if model_name_wrong(name):
            message = "a model is named as its host lists it, such as `llama3.2:3b`: no address, no file"
            issues.append(Issue("FIELD_INVALID", message, pointer=at, node_id=node_id))
    for place, (name, at) in enumerate(fallbacks):
        if name in config.fallback_models[:place]:
            message = f"`{name}` is named twice: what failed is not asked again"
            issues.append(Issue("FIELD_INVALID", message, pointer=at, node_id=node_id))
    return issues


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(config: Config) -> Sequence[Read]:
    found = (
        read
        for template, at in chat.templates(prepare(config))
        for read in template_reads(template, at, input_key=config.input_key)
    )
    return list(dict.fromkeys(found))


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [config.output_key] if config.output_key else []


def writes_current(config: Config) -> bool:
    return not config.output_key


def step(node: Node, values: Values, answers: Sequence[Answer]) -> Done | CallModel | CallTool | CheckEvidence:
    """Calls the model, then the tools it wants called, reads its answer, has what that cites compared with the sources,
    and has it mended at most `repair` times.

    Raises `NodeFailure` PROMPT_VALUE_MISSING, IMAGE_INVALID and VALUE_TOO_LARGE before any call; MODEL_BAD_REPLY
    afterwards, with `reason` empty, length, json, schema, evidence or tools and the beginning of the text in its
    details; PROMPT_TRUNCATED where `on_length` says so; MAX_TOOL_ROUNDS_EXCEEDED.
    """
    config: Config = node.config
    if len(answers) == 1 and isinstance(only := answers[0], ModelAnswer) and not only.tool_calls:
        value, unfit = mending.read(node, values.limits, only)
        if unfit is None and not config.evidence_required:  # nearly always: what was asked need not be made up again
            return _done(config, values, only, value, refused=[])
    limit = values.limits.prompt_bytes
    talk = tool_loop.Talk(_call(node, values), most_rounds=config.max_tool_rounds, most_bytes=limit)
    refused: list[JsonObject] = []
    last: tuple[ModelAnswer, JsonValue] | None = None
    for answer in answers:
        if isinstance(answer, EvidenceAnswer) and last is not None:
            (said, value), last = last, None
            unfit = mending.unproven(answer.problems)
        elif talk.take(answer) or not isinstance(answer, ModelAnswer):
            continue
        else:
            said = answer
            value, unfit = mending.read(node, values.limits, answer)
            if unfit is None and config.evidence_required:
                unfit = mending.unproven(evidence.cited(value)[1])
                if unfit is None:
                    last = said, value
                    continue
        if unfit is None:
            return _done(config, values, said, value, refused=refused)
        talk.call = _mended(node, talk.call, said, unfit, refused=refused, limit=limit)
        refused.append(mending.refused(said, unfit))
    if last is not None:
        return CheckEvidence(evidence.cited(last[1])[0])
    return talk.wanted[0] if talk.wanted else talk.call


def _mended(
    node: Node, call: CallModel, answer: ModelAnswer, unfit: mending.Unfit, *, refused: list[JsonObject], limit: int
) -> CallModel:
    """The call that has an answer mended; raises MODEL_BAD_REPLY where that was done often enough."""
    mended = mending.asked_again(call, answer, unfit, limit=limit)
    if len(refused) >= node.config.repair or mended is None:
        said = "; ".join(unfit.problems) + (f" (it was asked to mend {len(refused)} before)" if refused else "")
        codes: JsonObject = {"codes": list(unfit.codes)} if unfit.codes else {}
        mending.fail(node, answer, unfit.reason, said, problems=unfit.problems, refused_before=refused, **codes)
    return replace(mended, format=_format(node.config), tools=())


def _format(config: Config) -> JsonObject | Literal["json"] | None:
    return config.output_schema if config.output_schema is not None else "json" if config.json_mode else None


def _call(node: Node, values: Values) -> CallModel:
    config: Config = node.config
    return CallModel(
        messages=chat.rendered(node.prepared, placeholder_values(values, config.input_key), values.limits),
        model=config.model,
        # A host that is told the form of the answer lets the model say nothing else, so not call a tool either.
        format=None if config.tools else _format(config),
        options=model_options.merged(config.options, config),
        think=config.think,
        keep_alive=config.keep_alive,
        timeout_ms=config.timeout_ms,
        idle_timeout_ms=config.idle_timeout_ms,
        tools=tool_loop.offered(config.tools),
        cache=config.cache,
        cites=config.evidence_required,
    )


def _done(config: Config, values: Values, answer: ModelAnswer, value: JsonValue, *, refused: list[JsonObject]) -> Done:
    warnings = mending.warnings(answer, refused)
    if config.output_key:
        write = contribution(values, config.output_key, value)
        return Done((write,), output=value, warnings=warnings)
    return Done(output=value, current=value, warnings=warnings)
