"""The published JSON Schema of the spec, made of the same models that check it."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from functools import cache
from typing import Any, Final

from agent_graph.core.chat import Message
from agent_graph.core.configs import config_adapter, config_names
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.nodes.base import Retry
from agent_graph.core.spec_fields import ON_NODE, BudgetFields, EdgeFields, GraphFields, NodeFields

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def _built() -> dict[str, Any]:
    graph = GraphFields.model_json_schema(by_alias=True)
    edge = EdgeFields.model_json_schema(by_alias=True)
    nodes, edges = graph["properties"]["nodes"], graph["properties"]["edges"]
    older = {**graph["properties"]["max_iterations"], "description": "The older name of `max_iterations`."}
    del graph["$defs"]
    graph["properties"] |= {
        "$schema": {"type": "string", "description": "Where this schema is, for editors; no part of the graph."},
        "budgets": {**BudgetFields.model_json_schema(), "description": graph["properties"]["budgets"]["description"]},
        "spec_version": {**graph["properties"]["spec_version"], "enum": ["1", "2"]},
        "entry": {"type": "string", "description": "The node that runs first, unless an edge from START names it."},
        "recursion_limit": older,
        "nodes": {
            "type": "array", "description": nodes["description"], "minItems": 1,
            "items": {"oneOf": [_node(kind) for kind in NODE_TYPES]},
        },
        "edges": {"type": "array", "description": edges["description"], "default": [], "items": edge},
    }  # fmt: skip
    return {"$schema": DIALECT, **graph, "title": "agent-graph spec v2"}


def json_schema() -> JsonObject:
    """A new copy of the schema (2020-12): how a spec looks; `compile_graph` says whether it makes sense."""
    from copy import deepcopy

    return deepcopy(_built())


def _node(kind: str) -> dict[str, Any]:
    """A node of one type. What its config says may stand on the node is shown in both places."""
    shell = NodeFields.model_json_schema()
    config: dict[str, Any] = config_adapter(kind).json_schema()
    config = _in_place(config, config.pop("$defs", {}))
    config["description"] = (inspect.getdoc(NODE_TYPES[kind]) or "").partition("\n")[0]
    notes = _notes(NODE_TYPES[kind].Config)
    for name, reason in NODE_TYPES[kind].UNAVAILABLE.items():
        notes[name] = f"Only the default is taken: {reason}."
    for name, note in notes.items():
        config["properties"][name]["description"] = note
    properties = {k: v for k, v in shell["properties"].items() if k not in ON_NODE}
    properties["type"] = {"const": kind}
    properties["config"] = config
    for name in ON_NODE:
        if name in config_names(kind):
            properties[name] = {**config["properties"][name]}
    required = ["id", "type"]
    if "required" in config:
        required.append("config")
    return {
        "title": kind, "type": "object", "properties": properties, "required": required,
        "additionalProperties": False,
    }  # fmt: skip


def _in_place(value: Any, parts: dict[str, Any]) -> Any:
    """`value` with what it refers to written where it is used: a part of a larger schema has no root of its own."""
    if isinstance(value, list):
        return [_in_place(item, parts) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" not in value:
        return {name: _in_place(item, parts) for name, item in value.items()}
    part: dict[str, Any] = _in_place(parts[value["$ref"].rpartition("/")[2]], parts)
    for name, note in _notes(_PARTS[part["title"]]).items():
        part["properties"][name]["description"] = note
    part["description"] = inspect.getdoc(_PARTS[part["title"]])
    return part


_PARTS: Final = {"Retry": Retry, "Message": Message}
"""What configs have in common, by name."""


def _notes(config: type) -> dict[str, str]:
    """The strings under a config's fields in its source, by field."""
    names = {field.name for field in fields(config)}
    notes: dict[str, str] = {}
    for cls in reversed(config.__mro__[:-1]):
        body = ast.parse(inspect.cleandoc(inspect.getsource(cls))).body[0]
        previous = ""
        for statement in getattr(body, "body", []):
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name)):
                    previous = name
                case ast.Expr(value=ast.Constant(value=str(text))) if previous in names:
                    notes[previous] = " ".join(text.split())
    return notes
