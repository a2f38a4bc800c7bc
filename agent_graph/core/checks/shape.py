"""The graph that is looked at, and what several checks ask about it, each found once and only when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from agent_graph.core.checks.branches import Branches, branches
from agent_graph.core.checks.keys import Keys, known_keys
from agent_graph.core.choices import Selections, can_end
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import Output
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.nodes.base import Read
from agent_graph.core.topology import Topology


class NodeLike(Protocol):
    """A node of a spec that was read, or of a graph."""

    @property
    def id(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def config(self) -> Any: ...


@dataclass(frozen=True)
class Shape:
    """Nodes by their place. No slots: what is found is kept on it."""

    nodes: Sequence[NodeLike]
    index: Mapping[str, int]
    built: Topology
    ways: Sequence[Selections]
    top: Mapping[str, Any]
    """The fields of the graph itself: `input_schema`, `reducers`, `budgets`, ..."""
    output: Output
    max_iterations: int = 0
    elsewhere: int = 0
    """The nodes that `on_budget` can lead to: whatever there is can have fired before them."""

    @cached_property
    def reads(self) -> list[Sequence[Read]]:
        """By node: what it reads."""
        return [KNOWN_TYPES[node.type].reads(node.config) for node in self.nodes]

    @cached_property
    def keys(self) -> Keys:
        return known_keys(self.nodes, self.built, input_schema=self.top.get("input_schema"))

    @cached_property
    def branches(self) -> Branches:
        return branches(self.built, self.ways, several=self.several)

    @cached_property
    def several(self) -> frozenset[int]:
        """The routers that may take more than one of their ways at once."""
        return frozenset(
            place for place, node in enumerate(self.nodes)
            if node.type == "router" and node.config.mode == "all"
        )  # fmt: skip

    @cached_property
    def ends(self) -> list[bool]:
        """By node: some choices let its token, and all that comes of it, end."""
        return can_end(self.ways)

    def reached(self, place: int) -> bool:
        return bool(self.built.reachable >> place & 1)

    def seen(self, place: int) -> int:
        """The nodes whose writes it can see as far as frames go: what runs for each item writes to that item alone."""
        hidden = 0
        for region in self.built.regions.values():
            hidden |= 0 if region.nodes >> place & 1 else region.nodes
        return ~hidden

    def upstream(self, place: int) -> int:
        """The nodes that can have fired before it does."""
        own = 1 << place
        if self.elsewhere & own:
            return self.built.reachable
        found = self.built.ancestors(place)
        return found if self.built.in_cycle & own else found & ~own
