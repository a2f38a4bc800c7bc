"""What a resource shows of a tool's answer: an index without depth, a detail without times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from agent_graph.core.compile import compile_graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.render import as_json
from agent_graph.core.template import instantiate
from agent_graph.engine import templates

Parts: TypeAlias = Mapping[str, str]
"""The parts of an address by their names in the template."""


def as_it_is(data: JsonObject, parts: Parts) -> JsonObject:
    return data


def graph_index(data: JsonObject, parts: Parts) -> JsonObject:
    """{graphs: [{graph_id, graph_version, description, node_count, edge_count, uri}], ...}"""
    return {**data, "graphs": [_without(row, "updated_at_ms", uri=f"graph://graphs/{row['graph_id']}")
                               for row in _rows(data, "graphs")]}  # fmt: skip


def graph(data: JsonObject, parts: Parts) -> JsonObject:
    """A version by itself: nothing in it changes when another version is stored."""
    return _without({**data, **_ways(_rows(data, "edges"))}, "edges", "versions")


def graph_with_versions(data: JsonObject, parts: Parts) -> JsonObject:
    """The current version, and the names of all there are."""
    return {**graph(data, parts), "versions": [row["graph_version"] for row in _rows(data, "versions")]}


def template_index(data: JsonObject, parts: Parts) -> JsonObject:
    """{templates: [{template_id, version, title, description, uri}]}"""
    return {**data, "templates": [_without(row, "params", "sample", uri=f"graph://templates/{row['template_id']}")
                                  for row in _rows(data, "templates")]}  # fmt: skip


def template(data: JsonObject, parts: Parts) -> JsonObject | None:
    """The template of exactly this id; where it comes with the program, under ``made`` the graph that its sample's
    parameters make."""
    for row in _rows(data, "templates"):
        if row["template_id"] == parts["id"]:
            own = templates.templates().get(parts["id"]) is None  # of those of the operator, what is made is no promise
            return row if own else {**row, "made": _made(parts["id"])}
    return None


def _made(template_id: str) -> JsonObject:
    found = templates.get(template_id)
    given: Any = found.sample.get("params", {})
    made = compile_graph(instantiate(found, found.id, params=given)).graph
    assert made is not None, "every template that comes with the program compiles"
    shown = as_json(made)
    return _without({**shown, **_ways(_rows(shown, "edges"))}, "edges")


def _ways(edges: Iterable[Any]) -> JsonObject:
    """`transitions`: [{from, to, names, label}], no names where a way is always taken; `legal_targets` by node."""
    transitions: list[JsonValue] = []
    targets: dict[str, dict[str, None]] = {}
    for edge in edges:
        transitions.append({
            "from": edge["from"], "to": edge["to"], "names": edge.get("transitions", []),
            "label": edge.get("label", ""),
        })  # fmt: skip
        targets.setdefault(edge["from"], {})[edge["to"]] = None
    return {"transitions": transitions, "legal_targets": {source: [*row] for source, row in targets.items()}}


def _rows(data: JsonObject, member: str) -> list[Any]:
    rows: Any = data[member]
    return list(rows)


def _without(row: Mapping[str, Any], *members: str, **more: JsonValue) -> JsonObject:
    return {**{name: value for name, value in row.items() if name not in members}, **more}
