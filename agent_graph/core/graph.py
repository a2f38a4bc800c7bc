"""A compiled graph: immutable, made from a checked spec without pydantic, shared by all its runs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue

if TYPE_CHECKING:
    from agent_graph.core.topology import Topology

END = "END"
END_RUN = "END_RUN"
START = "START"
SPECIAL_TARGETS = frozenset({END, END_RUN})


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `config` is the node type's own frozen ``Config``; `prepared` what its module made of it once."""

    id: str
    index: int
    """Declaration index: part of the order in which contributions are folded."""
    type: str
    config: Any
    prepared: Any = None
    label: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """Where the result is: a declared or inferred state path, or else the current value."""

    path: str = ""
    declared: bool = False
    by_end: dict[str, str] = field(default_factory=dict)
    """Where a run can end at one of several nodes that leave their result in different places: the ending node's id
    -> its path ("" = the current value). Else empty, and `path` holds."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Everything a run needs to know, and nothing it could change."""

    name: str
    version: str
    """``sha256:`` + digest of the minimal form."""
    spec: JsonObject
    """The minimal form: aliases resolved, defaults removed."""
    nodes: tuple[Node, ...]
    index: dict[str, int]
    topology: Topology
    reducers: dict[str, str]
    max_iterations: int
    max_parallelism: int
    output: Output
    input_schema: JsonValue = None
    metadata: JsonObject = field(default_factory=dict)
    budgets: JsonObject = field(default_factory=dict)
    """What a run of it may use; of a subgraph nothing, the run's are its root's."""
    extents: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """By static fork with a policy, by branch: the edge by which it leads to the join, and its nodes."""
    narrow: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By node, the static forks around it that bound how many calls are in flight."""
    subgraphs: dict[str, Graph] = field(default_factory=dict)
    """The graphs its nodes name, by version: those that were current when it was compiled, or the ones pinned."""

    def node(self, node_id: str) -> Node:
        return self.nodes[self.index[node_id]]
