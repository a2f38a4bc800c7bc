"""`state_transform`: changes the state by a list of operations, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from agent_graph.core.bounds import Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig, Read, Target, Values
from agent_graph.core.ops import transforms


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `state_transform` node."""

    operations: Annotated[list[dict[str, Any]], Len(1, 64)]
    """[{op, path, ...}], in order; later ones see what earlier ones did."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": "operations name the paths they write",
    "input_key": "operations name the paths they read",
}


def prepare(config: Config) -> tuple[transforms.Prepared, ...]:
    return transforms.prepare(config.operations)


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = transforms.check(config.operations, "/operations")
    return [replace(issue, node_id=node_id) for issue in issues]


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(config: Config) -> Sequence[Read]:
    return [
        Read(path, pointer("operations", place), optional=path not in transforms.needs(operation))
        for place, operation in enumerate(config.operations)
        for path in transforms.reads(operation)
    ]


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return list(dict.fromkeys(path for operation in config.operations for path in transforms.writes(operation)))


def writes_current(_config: Config) -> bool:
    return False


def step(node: Node, values: Values, _answers: Sequence[Answer]) -> Done:
    return Done(writes=transforms.run(node.prepared, values))
