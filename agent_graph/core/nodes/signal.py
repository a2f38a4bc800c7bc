"""`signal`: waits for a named message from outside and hands on what it says; opens no gate and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from agent_graph.core import schema
from agent_graph.core.bounds import Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, AwaitSignal, Done, SignalAnswer, TimeAnswer
from agent_graph.core.graph import END, Node
from agent_graph.core.issues import Issue, pointer
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
)
from agent_graph.errors import NodeFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `signal` node; the message is its output, and at `output_key` when that is given."""

    name: Annotated[str, Len(0, 64)] = ""
    """The name a message is sent under; "" = the node's id."""
    schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) of a message; one that does not fit is refused to whoever sends it."""
    buffer: bool = True
    """A message that comes before anybody waits for it is kept; else it is refused, and its sender told."""
    expiry_ms: Milliseconds | None = None
    """How long it waits; None = as long as it takes."""
    on_expire: Literal["fail"] | Annotated[dict[Literal["goto"], list[str]], Len(1)] = "fail"
    """What it leads to when no message came in time: the node fails, or `goto`."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "input_key": "a signal reads nothing of the state",
    "timeout_ms": "a message is waited for as long as `expiry_ms` says",
}


def name_of(node_id: str, config: Config) -> str:
    """The name of the messages a node waits for."""
    return config.name or node_id


def prepare(_config: Config) -> None:
    """There is nothing to prepare."""


def check(node_id: str, config: Config, limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = path_issues(node_id, [(config.output_key, "/output_key")])
    if config.schema is not None:
        issues += schema.check(config.schema, "/schema", node_id=node_id, limits=limits)
    if config.expiry_ms is None and config.on_expire != "fail":
        message = "it never expires: give `expiry_ms`, or leave `on_expire` out"
        issues.append(Issue("FIELD_UNUSED", message, severity="warning", pointer="/on_expire", node_id=node_id))
    return issues


def targets(config: Config) -> Sequence[Target]:
    goto = config.on_expire["goto"] if isinstance(config.on_expire, dict) else []
    return [Target(target, pointer("on_expire", "goto", place)) for place, target in enumerate(goto)]


def reads(_config: Config) -> Sequence[Read]:
    return ()


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [config.output_key] if config.output_key else []


def writes_current(_config: Config) -> bool:
    return False


def step(node: Node, values: Values, answers: Sequence[Answer]) -> Done | AwaitSignal:
    """Raises `NodeFailure` SIGNAL_EXPIRED ("refused") when no message came in time, TRANSFORM_INVALID when the
    reducer of `output_key` cannot take the one that did."""
    config: Config = node.config
    match answers[-1] if answers else None:
        case SignalAnswer(payload):
            write = (contribution(values, config.output_key, payload),) if config.output_key else ()
            return Done(write, output=payload, transition="received" if config.on_expire != "fail" else "")
        case TimeAnswer():
            return _expired(node)
        case _:
            return AwaitSignal(name_of(node.id, config), config.buffer, config.expiry_ms)


def _expired(node: Node) -> Done:
    config: Config = node.config
    if isinstance(config.on_expire, dict):
        return Done(targets=tuple(dict.fromkeys(config.on_expire["goto"])) or (END,), transition="expired")
    name = name_of(node.id, config)
    message = f'no message "{name}" came within {config.expiry_ms} ms'
    raise NodeFailure("SIGNAL_EXPIRED", message, failure_class="refused", name=name)
