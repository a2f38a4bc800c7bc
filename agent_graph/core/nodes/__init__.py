"""The node types: one module each, under its name in a spec, imported when a graph first has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from agent_graph.core.nodes.base import NodeForm, NodeType

if TYPE_CHECKING:
    from agent_graph.core.nodes import (
        graphql,
        http,
        human_approval,
        join,
        llm,
        loop,
        parallel,
        passthrough,
        router,
        signal,
        state_transform,
        subgraph,
        timer,
        tool,
    )

    _CHECKED: tuple[NodeType, ...] = (
        llm, router, passthrough, state_transform, join, parallel, subgraph, loop, human_approval, signal, timer,
    )  # fmt: skip
    _DECLARED: tuple[NodeForm, ...] = (tool, http, graphql)


class _OnDemand(Mapping[str, NodeType]):
    """Modules by name. A process that wakes one run pays for the types of its graph, not for all there are."""

    def __init__(self, *names: str) -> None:
        self._modules: dict[str, Any] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> NodeType:
        module = self._modules[name]
        if module is None:
            module = self._modules[name] = import_module(f"{__name__}.{name}")
        return module  # type: ignore[no-any-return]  # see _CHECKED

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


NODE_TYPES: Final = _OnDemand(
    "llm", "router", "passthrough", "state_transform", "join", "parallel", "subgraph", "loop", "human_approval",
    "signal", "timer",
)  # fmt: skip

UNAVAILABLE_TYPES: Final = {
    "tool": "calling tools of other servers is not available yet",
    "http": "HTTP calls are not available yet",
    "graphql": "GraphQL calls are not available yet",
}
"""Known types nothing performs yet, with the reason."""

DECLARED_TYPES: Final[Mapping[str, NodeForm]] = _OnDemand("tool", "http", "graphql")
"""Those of them whose configs are read, so that the checker says what else is wrong."""
KNOWN_TYPES: Final[Mapping[str, NodeForm]] = _OnDemand(*NODE_TYPES, *DECLARED_TYPES)
"""All that the checker can look at."""
