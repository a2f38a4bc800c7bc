"""`state_transform`: changes the state by a list of operations, all or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from annotated_types import Len

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig


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
