"""`passthrough`: does nothing; a place where branches part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """A `passthrough` node has the common fields only."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": "a passthrough writes nothing",
    "input_key": "a passthrough reads nothing",
}
