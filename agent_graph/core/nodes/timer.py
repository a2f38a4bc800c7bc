"""`timer`: waits for a moment, however long that takes and whoever is there meanwhile; writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from agent_graph.core.bounds import Ge, Le
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done, Missing, Sleep
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.moments import looks_like_moment, read_moment
from agent_graph.core.nodes.base import (
    UNAVAILABLE_EVERYWHERE,
    NodeConfig,
    Read,
    Target,
    Values,
    path_issues,
    path_read,
    value_at,
)
from agent_graph.errors import NodeFailure

_FORM: Final = "an RFC 3339 moment with its offset, such as 2026-01-31T12:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `timer` node: exactly one of `delay_ms` and `until`."""

    delay_ms: Annotated[int, Ge(0), Le(366 * 86_400_000)] | None = None
    """How long it waits, from the moment its turn comes; a year at most."""
    until: str = ""
    """The moment it waits for: RFC 3339 with an offset, or the state path of one. A past one has come."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": "a timer writes nothing",
    "input_key": "a timer reads what `until` names",
    "timeout_ms": "a timer waits as long as `delay_ms` or `until` says",
}


def prepare(config: Config) -> int | None:
    """The moment `until` spells out, None where it is a path."""
    return read_moment(config.until)


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    if config.delay_ms is not None and config.until:
        message = "`delay_ms` and `until` both say how long to wait; give one of them"
        return [Issue("FIELD_CONFLICT", message, pointer="/until", node_id=node_id)]
    if config.delay_ms is None and not config.until:
        message = "say how long to wait: `delay_ms`, or `until` with a moment or the path of one"
        return [Issue("FIELD_REQUIRED", message, pointer="/delay_ms", node_id=node_id)]
    if looks_like_moment(config.until):
        if read_moment(config.until) is None:
            message = f"not {_FORM}"
            return [Issue("FIELD_INVALID", message, pointer="/until", node_id=node_id)]
        return []
    if any(sign.isspace() for sign in config.until):
        message = f'`until` is "{config.until[:80]}": neither {_FORM}, nor the path of a key that can be there'
        return [Issue("FIELD_INVALID", message, pointer="/until", node_id=node_id)]
    return path_issues(node_id, [(config.until, "/until")])


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(config: Config) -> Sequence[Read]:
    return [] if looks_like_moment(config.until) else path_read(config.until, "/until")


def writes(_node_id: str, _config: Config) -> Sequence[str]:
    return ()


def writes_current(_config: Config) -> bool:
    return False


def step(node: Node, values: Values, answers: Sequence[Answer]) -> Done | Sleep:
    """Raises `NodeFailure` TIMER_INVALID when what is at `until` is no moment."""
    config: Config = node.config
    if answers:
        return Done()
    if config.delay_ms is not None:
        return Sleep(config.delay_ms)
    return Sleep(until_ms=node.prepared if node.prepared is not None else _moment(node, values))


def _moment(node: Node, values: Values) -> int:
    path = node.config.until
    found = value_at(values, path)
    if isinstance(found, Missing):
        raise NodeFailure("TIMER_INVALID", f'timer "{node.id}" waits until "{path}", and there is nothing', path=path)
    moment = read_moment(found) if isinstance(found, str) else None
    if moment is None:
        raise NodeFailure("TIMER_INVALID", f'timer "{node.id}": what is at "{path}" is not {_FORM}', path=path)
    return moment
