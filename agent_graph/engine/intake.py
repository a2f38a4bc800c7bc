"""Checks what a run needs before anything is created."""

from __future__ import annotations

import secrets

from agent_graph.core.contributions import BOOKS
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonValue, check_value
from agent_graph.core.limits import Limits
from agent_graph.core.nesting import whole
from agent_graph.engine.connections import Connections
from agent_graph.errors import ConnectionNotFound, InputInvalid, ReservedKey


def check_input(graph: Graph, value: JsonValue, *, limits: Limits) -> None:
    """Raises `InputTooLarge`, `InputTooDeep`, `InputInvalid` (no JSON, or against `input_schema`) or `ReservedKey`."""
    most = min(limits.input_bytes, limits.state_bytes)  # an object becomes the run's first state
    check_value(value, max_depth=limits.json_depth, max_bytes=most)
    if isinstance(value, dict):
        for key in value:
            if key.startswith("__") or key in BOOKS:
                raise ReservedKey(f"the input key {key!r} belongs to the engine; use another name", key=key)
    if isinstance(graph.input_schema, dict):
        from agent_graph.core.schema import violations  # jsonschema is slow to import: only where a schema is

        found = violations(value, graph.input_schema)
        if found:
            raise InputInvalid(f"the input does not fit the graph's input_schema: {found[0]}", violations=list(found))


def check_connections(graph: Graph, connections: Connections) -> None:
    """Raises `ConnectionNotFound` where a node, in an inner graph too, names a connection that is not configured."""
    for node in (node for one in whole(graph) for node in one.nodes):
        for reference in getattr(node.config, "tools", ()):
            try:
                connections.get(reference.partition("/")[0])
            except ConnectionNotFound as refusal:
                message = f'node "{node.id}" lets its model call "{reference}", but {refusal.message}'
                raise ConnectionNotFound(message, **refusal.details, node_id=node.id) from None


def new_id(now_ms: int) -> str:
    """The id of a run that is about to be."""
    return f"run-{now_ms:011x}{secrets.token_hex(5)}"
