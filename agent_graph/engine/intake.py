"""Checks what a run needs before anything is created, and takes secrets out of what it is given."""

from __future__ import annotations

import secrets

from agent_graph.core.budgets import tightened
from agent_graph.core.contributions import BOOKS
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value
from agent_graph.core.limits import Limits
from agent_graph.core.nesting import whole
from agent_graph.core.redact import Redactor
from agent_graph.engine.connections import Connections
from agent_graph.engine.shell import Shell
from agent_graph.errors import ConnectionNotFound, InputInvalid, ReservedKey


def admitted(
    graph: Graph, value: JsonValue, *, budgets: JsonObject | None, limits: Limits, shell: Shell
) -> tuple[JsonValue, JsonObject]:
    """The input a run goes on with, and the bounds it starts with beside the graph's own.

    Raises what `budgets.tightened`, `check_input` and `check_connections` raise; changes nothing.
    """
    bounds = tightened(graph.budgets, budgets) if budgets else {}
    value = check_input(graph, value, limits=limits, redactor=shell.redactor)
    check_connections(graph, shell.connections)
    return value, bounds


def check_input(graph: Graph, value: JsonValue, *, limits: Limits, redactor: Redactor) -> JsonValue:
    """The input without secrets, which is what the graph's `input_schema` is asked about.

    Raises `InputTooLarge`, `InputTooDeep`, `InputInvalid` (no JSON, or against `input_schema`) or `ReservedKey`.
    """
    most = min(limits.input_bytes, limits.state_bytes)  # an object becomes the run's first state
    check_value(value, max_depth=limits.json_depth, max_bytes=most)
    given, value = value, redactor.value(value)
    if isinstance(value, dict):
        for key in value:
            if key.startswith("__") or key in BOOKS:
                raise ReservedKey(f"the input key {key!r} belongs to the engine; use another name", key=key)
    if isinstance(graph.input_schema, dict):
        from agent_graph.core.schema import violations  # jsonschema is slow to import: only where a schema is

        found = violations(value, graph.input_schema)
        if found:
            hint = "" if value is given else " (secrets are taken out of an input before a run begins)"
            said = f"the input does not fit the graph's input_schema: {found[0]}{hint}"
            raise InputInvalid(said, violations=list(found))
    return value


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
