"""`human_approval`: shows a person what would happen and goes on as they decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Final, Literal

from agent_graph.core import schema, statepath
from agent_graph.core.bounds import Ge, Le, Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import MISSING, Answer, ApprovalAnswer, AskApproval, Done, MaybeJson, Missing, Write
from agent_graph.core.graph import END, Node
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, text_of
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import (
    CURRENT,
    UNAVAILABLE_EVERYWHERE,
    Milliseconds,
    NodeConfig,
    Read,
    Target,
    Values,
    bounded_prompt,
    contribution,
    path_issues,
    path_read,
    rendered,
    template_reads,
    value_at,
)
from agent_graph.core.ops.prompt import Template, parse
from agent_graph.errors import NodeFailure

Decision = Literal["approve", "reject", "request_changes", "edit"]
Channel = Literal["elicitation", "console", "cli", "assistant"]
SHORTEST_REMINDER_MS: Final = 60_000
"""Nobody is reminded by default of less than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `human_approval` node."""

    prompt: str = ""
    """What the person is asked; a template. Left out, the node's label."""
    prompt_key: str = ""
    """State path of the prompt, instead of `prompt`."""
    subject_key: str = ""
    """State path of what is decided on, and where an edit of it is written; "" = the current value."""
    subject_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) that an edited subject has to fit."""
    audience: list[str] | str = field(default_factory=list)
    """For whom it is; shown with the request, and no bar to others."""
    allowed_decisions: Annotated[list[Decision], Len(1)] = field(
        default_factory=lambda: ["approve", "reject", "request_changes"]
    )
    """What the person can choose; "edit" approves a subject that it changes."""
    quorum: Annotated[int, Ge(1), Le(100)] = 1
    """How many different people must approve; one who does not decides against."""
    channels: list[Channel] = field(default_factory=list)
    """By which ways a decision may come; none named = all. Without "assistant" the gate is closed to models."""
    self_approval: bool = True
    """Whoever started the run may decide."""
    expiry_ms: Milliseconds = 7 * 86_400_000
    """How long it waits for a decision."""
    remind_ms: Annotated[int, Ge(0), Le(366 * 86_400_000)] | None = None
    """How long before that is over an event tells of it, 0 = not at all; left out, a tenth of `expiry_ms`, and nothing
    within the last minute."""
    on_reject: list[str] | Literal["continue"] | None = None
    """Targets of a rejection, or "continue": along the out-edges; left out, the run fails."""
    on_request_changes: list[str] | Literal["continue"] | None = None
    """Targets of a request for changes, or "continue": along the out-edges; left out, it asks again."""
    on_expire: Literal["fail"] | Annotated[dict[Literal["goto"], list[str]], Len(1)] = "fail"
    """What it leads to when nobody decided in time: the run fails, or `goto`."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "timeout_ms": "a person's answer is bounded by `expiry_ms`",
    "on_error": "nothing goes past a gate but a decision: give `on_reject`, `on_request_changes` or `on_expire`",
}


def prepare(config: Config) -> Template:
    """The template of `prompt`."""
    return parse(config.prompt)


def check(node_id: str, config: Config, limits: Limits = DEFAULTS) -> Sequence[Issue]:
    names = ("prompt_key", "subject_key", "input_key", "output_key")
    issues = path_issues(node_id, [(getattr(config, name), f"/{name}") for name in names])
    if config.prompt and config.prompt_key:
        message = "`prompt` and `prompt_key` both say what to show; give one of them"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/prompt_key", node_id=node_id))
    if config.subject_schema is not None:
        issues += schema.check(config.subject_schema, "/subject_schema", node_id=node_id, limits=limits)
    if issues:
        return issues
    if config.subject_schema is not None and not _edits(config):
        message = 'nobody can edit the subject: add "edit" to `allowed_decisions`, or leave the schema out'
        issues.append(_unused("/subject_schema", message, node_id))
    if config.remind_ms is not None and config.remind_ms >= config.expiry_ms:
        message = "a reminder as early as the question is none: `remind_ms` counts back from the end of `expiry_ms`"
        issues.append(_unused("/remind_ms", message, node_id))
    if _edits(config) and (place := _subject_place(config)):
        decision = statepath.split(writes(node_id, config)[0])
        if statepath.overlap(decision, statepath.split(place)):
            message = "the decision and the edited subject would be written to one place; give another `output_key`"
            issues.append(Issue("FIELD_CONFLICT", message, pointer="/subject_key", node_id=node_id))
    return issues


def _unused(at: str, message: str, node_id: str) -> Issue:
    return Issue("FIELD_UNUSED", message, severity="warning", pointer=at, node_id=node_id)


def _edits(config: Config) -> bool:
    return "edit" in config.allowed_decisions


def _subject_place(config: Config) -> str:
    """The state path of the subject, "" when it is the current value or in it."""
    return "" if config.subject_key.partition(".")[0] == CURRENT else config.subject_key


def targets(config: Config) -> Sequence[Target]:
    found = [
        Target(target, pointer(name, place))
        for name in ("on_reject", "on_request_changes")
        if isinstance(chosen := getattr(config, name), list)
        for place, target in enumerate(chosen)
    ]
    goto = config.on_expire["goto"] if isinstance(config.on_expire, dict) else []
    return found + [Target(target, pointer("on_expire", "goto", place)) for place, target in enumerate(goto)]


def reads(config: Config) -> Sequence[Read]:
    found = template_reads(parse(config.prompt), "/prompt", input_key=config.input_key)
    found += path_read(config.prompt_key, "/prompt_key")
    return found + path_read(config.subject_key, "/subject_key")


def writes(node_id: str, config: Config) -> Sequence[str]:
    """The path of the decision: `output_key`, else the node's id as one key; then the subject's, if it can change."""
    decision = config.output_key or (pointer(node_id) if "." in node_id else node_id)
    subject = _subject_place(config) if _edits(config) else ""
    return [decision, subject] if subject else [decision]


def writes_current(config: Config) -> bool:
    return _edits(config) and not _subject_place(config)


def step(node: Node, values: Values, answers: Sequence[Answer]) -> Done | AskApproval:
    """Asks, and asks anew after `request_changes` without a target.

    Raises `NodeFailure` APPROVAL_REJECTED or APPROVAL_EXPIRED (both "refused"), PROMPT_VALUE_MISSING when prompt or
    subject are not there.
    """
    config: Config = node.config
    decided = [answer for answer in answers if isinstance(answer, ApprovalAnswer)]
    if not decided:
        return _ask(node, values, 1)
    answer = decided[-1]
    record = _record(answer)
    way: list[str] | str = "continue"
    if answer.decision == "expired":
        if not isinstance(config.on_expire, dict):
            message = f'the approval of "{node.id}" expired before it was decided'
            raise NodeFailure("APPROVAL_EXPIRED", message, failure_class="refused", round=answer.round)
        way = config.on_expire["goto"]
    elif answer.decision == "request_changes":
        if config.on_request_changes is None:
            return _ask(node, values, answer.round + 1)
        way = config.on_request_changes
    elif answer.decision == "reject":
        if config.on_reject is None:
            message = f'"{node.id}" was rejected by {answer.by or "a person"}'
            raise NodeFailure("APPROVAL_REJECTED", message, failure_class="refused", decision=record)
        way = config.on_reject
    edits, current = _edited(config, values, answer)
    write = contribution(values, writes(node.id, config)[0], record)
    chosen = None if isinstance(way, str) else tuple(dict.fromkeys(way)) or (END,)
    return Done((*edits, write), output=record, current=current, targets=chosen, transition=answer.decision)


def _edited(config: Config, values: Values, answer: ApprovalAnswer) -> tuple[tuple[Write, ...], MaybeJson]:
    """What an edit writes over the subject, in the state or as the current value."""
    if answer.decision != "edit":
        return (), MISSING
    if path := _subject_place(config):
        place = values.resolve(path)
        return (Write("replace" if values.reducer(place[0]) else "set", place, answer.subject),), MISSING
    inner = config.subject_key.partition(".")[2]
    if not inner:
        return (), answer.subject
    return (), statepath.put(values.current, statepath.split(inner), answer.subject)


def _ask(node: Node, values: Values, round_: int) -> AskApproval:
    config: Config = node.config
    if config.prompt_key:
        prompt = bounded_prompt(text_of(_value(node, values, config.prompt_key)), limit=values.limits.prompt_bytes)
    elif config.prompt:
        prompt = rendered(node.prepared, values, config.input_key)
    else:
        prompt = node.label or f'Approve "{node.id}"?'
    audience = (config.audience,) if isinstance(config.audience, str) else tuple(config.audience)
    return AskApproval(
        round=round_,
        prompt=prompt,
        subject=_value(node, values, config.subject_key),
        audience=tuple(name for name in audience if name),
        allowed_decisions=tuple(dict.fromkeys(config.allowed_decisions)),
        expiry_ms=config.expiry_ms,
        quorum=config.quorum,
        channels=tuple(dict.fromkeys(config.channels)),
        self_approval=config.self_approval,
        remind_ms=_remind_ms(config),
        subject_schema=config.subject_schema,
    )


def _remind_ms(config: Config) -> int:
    if config.remind_ms is None:
        return config.expiry_ms // 10 if config.expiry_ms >= 10 * SHORTEST_REMINDER_MS else 0
    return config.remind_ms if config.remind_ms < config.expiry_ms else 0


def _value(node: Node, values: Values, path: str) -> JsonValue:
    found = value_at(values, path)
    if isinstance(found, Missing):
        message = f'gate "{node.id}" shows what is at "{path}", and there is nothing'
        raise NodeFailure("PROMPT_VALUE_MISSING", message, path=path)
    return found


def _record(answer: ApprovalAnswer) -> JsonObject:
    return {
        "decision": answer.decision, "note": answer.note, "by": answer.by, "via": answer.via, "at_ms": answer.at_ms,
    }  # fmt: skip
