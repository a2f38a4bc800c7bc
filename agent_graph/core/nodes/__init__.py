"""The node types: one module each, under its name in a spec."""

from __future__ import annotations

from typing import Final

from agent_graph.core.nodes import (
    human_approval,
    join,
    llm,
    loop,
    parallel,
    passthrough,
    router,
    state_transform,
)
from agent_graph.core.nodes.base import NodeType

NODE_TYPES: Final[dict[str, NodeType]] = {
    "llm": llm,
    "router": router,
    "passthrough": passthrough,
    "state_transform": state_transform,
    "join": join,
    "parallel": parallel,
    "loop": loop,
    "human_approval": human_approval,
}

UNAVAILABLE_TYPES: Final = {
    "subgraph": "a graph inside a graph is not available yet",
    "signal": "waiting for a message from outside is not available yet",
    "timer": "timers are not available yet",
    "tool": "calling tools of other servers is not available yet",
    "http": "HTTP calls are not available yet",
    "graphql": "GraphQL calls are not available yet",
}
"""Known types nothing performs yet, with the reason."""
