"""`passthrough`: does nothing; a place where branches part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig, Read, Target, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """A `passthrough` node has the common fields only."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": "a passthrough writes nothing",
    "input_key": "a passthrough reads nothing",
}


def prepare(_config: Config) -> None:
    """There is nothing to prepare."""


def check(_node_id: str, _config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    return ()


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(_config: Config) -> Sequence[Read]:
    return ()


def writes(_node_id: str, _config: Config) -> Sequence[str]:
    return ()


def writes_current(_config: Config) -> bool:
    return False


def step(_node: Node, _values: Values, _answers: Sequence[Answer]) -> Done:
    return Done()
