"""`human_approval`: shows a person what would happen and goes on as they decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from annotated_types import Len

from agent_graph.core.effects import Answer, ApprovalAnswer, AskApproval, Done, Missing
from agent_graph.core.graph import END, Node
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, text_of
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `human_approval` node."""

    prompt: str = ""
    """What the person is asked; a template. Left out, the node's label."""
    prompt_key: str = ""
    """State path of the prompt, instead of `prompt`."""
    subject_key: str = ""
    """State path of what is decided on; "" = the current value."""
    audience: list[str] | str = field(default_factory=list)
    """For whom it is; shown with the request, and no bar to others."""
    allowed_decisions: Annotated[list[Decision], Len(1)] = field(
        default_factory=lambda: ["approve", "reject", "request_changes"]
    )
    """What the person can choose; "edit" is not available yet."""
    expiry_ms: Milliseconds = 7 * 86_400_000
    """How long it waits for a decision."""
    on_reject: list[str] | Literal["continue"] | None = None
    """Targets of a rejection, or "continue": along the out-edges; left out, the run fails."""
    on_request_changes: list[str] | Literal["continue"] | None = None
    """Targets of a request for changes, or "continue": along the out-edges; left out, it asks again."""
    on_expire: str | dict[str, Any] = "fail"
    """What it leads to when nobody decided in time."""
    quorum: int = 1
    """How many must decide."""
    channels: list[str] = field(default_factory=list)
    """By which ways a decision may come; none named = all."""
    self_approval: bool = True
    """Who started the run may decide."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "timeout_ms": "a person's answer is bounded by `expiry_ms`",
    "on_error": "nothing goes past a gate but a decision: give `on_reject` or `on_request_changes`",
    "on_expire": 'an expired approval fails the run; only "fail" is available yet',
    "quorum": "one decision decides; other quorums are not available yet",
    "channels": "every channel is open; closing some is not available yet",
    "self_approval": "nothing tells yet who started the run from who decides",
}


def prepare(config: Config) -> Template:
    """The template of `prompt`."""
    return parse(config.prompt)


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    names = ("prompt_key", "subject_key", "input_key", "output_key")
    issues = path_issues(node_id, [(getattr(config, name), f"/{name}") for name in names])
    if config.prompt and config.prompt_key:
        message = "`prompt` and `prompt_key` both say what to show; give one of them"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/prompt_key", node_id=node_id))
    issues += [
        Issue(
            "NODE_TYPE_UNAVAILABLE",
            "editing the subject is not available yet; `request_changes` is",
            pointer=pointer("allowed_decisions", place),
            node_id=node_id,
        )
        for place, decision in enumerate(config.allowed_decisions)
        if decision == "edit"
    ]
    return issues


def targets(config: Config) -> Sequence[Target]:
    return [
        Target(target, pointer(name, place))
        for name in ("on_reject", "on_request_changes")
        if isinstance(chosen := getattr(config, name), list)
        for place, target in enumerate(chosen)
    ]


def reads(config: Config) -> Sequence[Read]:
    found = template_reads(parse(config.prompt), "/prompt", input_key=config.input_key)
    found += path_read(config.prompt_key, "/prompt_key")
    return found + path_read(config.subject_key, "/subject_key")


def writes(node_id: str, config: Config) -> Sequence[str]:
    """The path of the decision: `output_key`, else the node's id as one key."""
    return [config.output_key or (pointer(node_id) if "." in node_id else node_id)]


def writes_current(_config: Config) -> bool:
    return False


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
    if answer.decision == "expired":
        message = f'the approval of "{node.id}" expired before it was decided'
        raise NodeFailure("APPROVAL_EXPIRED", message, failure_class="refused", round=answer.round)
    way: list[str] | str = "continue"
    if answer.decision == "request_changes":
        if config.on_request_changes is None:
            return _ask(node, values, answer.round + 1)
        way = config.on_request_changes
    elif answer.decision == "reject":
        if config.on_reject is None:
            message = f'"{node.id}" was rejected by {answer.by or "a person"}'
            raise NodeFailure("APPROVAL_REJECTED", message, failure_class="refused", decision=record)
        way = config.on_reject
    write = contribution(values, writes(node.id, config)[0], record)
    chosen = None if isinstance(way, str) else tuple(dict.fromkeys(way)) or (END,)
    return Done((write,), output=record, targets=chosen, transition=answer.decision)


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
        channels=tuple(config.channels),
    )


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
