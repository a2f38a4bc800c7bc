"""`tool`: calls a tool of a named connection; known to the checker, performed by nobody yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Final

from agent_graph.core.bounds import Len
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import Issue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig, Read, Target, path_issues, value_reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `tool` node."""

    connection: Annotated[str, Len(1, 64)]
    """A connection named in the server's configuration."""
    tool: Annotated[str, Len(1, 128)]
    arguments: dict[str, Any] = field(default_factory=dict)
    """Texts in it are templates."""
    idempotent: bool = False
    """Making the call twice does no more than making it once: only then is it made again."""


CHOOSES: Final = False
UNAVAILABLE: Final = UNAVAILABLE_EVERYWHERE


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    return path_issues(node_id, [(config.input_key, "/input_key"), (config.output_key, "/output_key")])


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(config: Config) -> Sequence[Read]:
    return value_reads(config.arguments, "/arguments", input_key=config.input_key)


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [config.output_key] if config.output_key else []


def writes_current(config: Config) -> bool:
    return not config.output_key


def acts(config: Config) -> bool:
    """Nothing tells a tool that reads from one that acts but its own word."""
    return not config.idempotent


def repeatable(config: Config) -> bool:
    """The call may be made again."""
    return config.idempotent
