"""The graph spec v2 as it is sent: its fields, its older spellings, its minimal form; nothing of how nodes connect.

This is a border: pydantic is at home here, and a run never comes here.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from agent_graph.core import configs
from agent_graph.core import fields as reading
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, json_equal
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes import KNOWN_TYPES, NODE_TYPES, UNAVAILABLE_TYPES
from agent_graph.core.spec_fields import BudgetFields, EdgeFields, GraphFields, NodeFields, field_names

RESERVED_IDS: Final = frozenset({"END", "START", "END_RUN"})


@dataclass(frozen=True, slots=True)
class ParsedNode:
    """A node whose fields are right. `config` is an instance of its type's ``Config``."""

    id: str
    place: int
    """Its place in `nodes` as they were sent."""
    type: str
    config: Any
    minimal: JsonObject
    moved: frozenset[str]
    """The config's fields that stand on the node itself."""

    def pointer(self, below: str = "") -> str:
        """From a pointer into the config to one into the spec as it was sent."""
        inside = "/config" if below and below[1:].partition("/")[0] not in self.moved else ""
        return f"/nodes/{self.place}{inside}{below}"


@dataclass(frozen=True, slots=True)
class ParsedEdge:
    """An edge whose fields are right."""

    source: str
    target: str
    place: int
    minimal: JsonObject
    id: str = ""

    @property
    def pointer(self) -> str:
        return f"/edges/{self.place}"

    @property
    def name(self) -> str:
        return self.id or f"{self.source}>{self.target}"


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """The parts of a spec that could be read; `complete` when no node and no edge had to be left out."""

    top: JsonObject
    """The minimal form without entry, nodes and edges."""
    entry: str
    nodes: tuple[ParsedNode, ...]
    edges: tuple[ParsedEdge, ...]
    complete: bool
    unread: tuple[tuple[int, str], ...] = ()
    """Place and id of the nodes that could not be read: they are there, and may be named."""
    named: bool = True
    """Every node says its id, so that an id nobody has names nothing."""
    loose: tuple[tuple[str, str], ...] = ()
    """Where an edge that could not be read names a node, and which."""


def parse_spec(raw: JsonValue, *, limits: Limits = DEFAULTS) -> tuple[ParsedSpec | None, list[Issue]]:
    """Every issue of shape at once, and what could be read; None when that is nothing.

    `raw` holds JSON values only (`jsonvalue.check_value`).
    """
    if not isinstance(raw, dict):
        return None, [Issue("FIELD_INVALID", "a graph spec must be a JSON object")]
    if raw.get("spec_version", "2") not in ("1", "2"):
        message = 'this program reads spec_version "2" (and the older "1")'
        return None, [Issue("SPEC_VERSION_UNSUPPORTED", message, pointer="/spec_version")]
    top, issues = _top(raw)
    legacy = raw.get("spec_version") == "1"
    nodes, edges = _listed(raw.get("nodes")), _listed(raw.get("edges"))
    if len(nodes) > limits.nodes or len(edges) > limits.edges:
        return None, [*issues, *_too_many(nodes, edges, limits)]
    parsed_nodes = [node for place, one in enumerate(nodes) if (node := _node(one, place, issues, legacy=legacy))]
    parsed_edges = [edge for place, one in enumerate(edges) if (edge := _edge(one, place, issues))]
    entry = _entry(raw, parsed_edges, issues)
    read, ids = {node.place for node in parsed_nodes}, [_id(one) for one in nodes]
    complete = len(parsed_nodes) == len(nodes) and len(parsed_edges) == len(edges)
    complete = complete and bool(nodes) and isinstance(raw.get("edges", []), list)
    return ParsedSpec(
        top, entry, tuple(parsed_nodes), tuple(parsed_edges), complete,
        tuple((place, one) for place, one in enumerate(ids) if one and place not in read),
        bool(nodes) and all(ids), tuple(_loose(edges, {edge.place for edge in parsed_edges})),
    ), issues  # fmt: skip


def _listed(value: JsonValue) -> list[JsonValue]:
    """What is no list has its issue; the rest of the spec is read all the same."""
    return value if isinstance(value, list) else []


def _id(node: JsonValue) -> str:
    named = node.get("id") if isinstance(node, dict) else None
    return named if isinstance(named, str) else ""


def _loose(edges: Sequence[JsonValue], read: Container[int]) -> Iterator[tuple[str, str]]:
    for place, edge in enumerate(edges):
        if place not in read and isinstance(edge, dict):
            for name in ("from", "to"):
                if isinstance(end := edge.get(name), str) and end:
                    yield pointer("edges", place, name), end


def minimal(spec: ParsedSpec) -> JsonObject:
    """The spec without aliases and defaults: what the version's digest is taken of."""
    body: JsonObject = {**spec.top, "entry": spec.entry, "nodes": [node.minimal for node in spec.nodes]}
    edges: list[JsonValue] = [edge.minimal for edge in spec.edges if edge.source != "START"]
    return {**body, "edges": edges} if edges else body


def _too_many(nodes: Sequence[Any], edges: Sequence[Any], limits: Limits) -> list[Issue]:
    counted = (("nodes", len(nodes), limits.nodes), ("edges", len(edges), limits.edges))
    return [
        Issue("LIMIT_EXCEEDED", f"{count} {name}, and at most {bound} are allowed", pointer=f"/{name}")
        for name, count, bound in counted
        if count > bound
    ]


def _top(raw: JsonObject) -> tuple[JsonObject, list[Issue]]:
    issues: list[Issue] = []
    given = dict(raw)
    if isinstance(given.get("$schema"), str):
        del given["$schema"]  # for editors; no part of the graph
    if "recursion_limit" in given:
        older = given.pop("recursion_limit")
        if not json_equal(given.setdefault("max_iterations", older), older):
            message = "`recursion_limit` is the older name of `max_iterations`; they differ"
            issues.append(Issue("FIELD_CONFLICT", message, pointer="/recursion_limit", related=("/max_iterations",),
                                fix=({"op": "remove", "path": "/recursion_limit"},)))  # fmt: skip
    renamed = {"max_iterations": "recursion_limit"} if "max_iterations" not in raw else {}
    known = field_names(GraphFields)
    faults = _top_faults(given)
    for fault in faults:
        sent = tuple(renamed.get(str(step), step) for step in fault.path)
        names = field_names(BudgetFields) if fault.path[:-1] == ("budgets",) else known
        issues.append(reading.issue(reading.Field(fault.kind, sent, fault.sentence), "", known=names))
    issues += _label_issues(given.get("metadata"))
    unknown = [str(fault.path[0]) for fault in faults if fault.kind == "unknown" and len(fault.path) == 1]
    return _kept(reading.repaired(given, unknown, known) if unknown else given), issues


def _top_faults(given: JsonObject) -> list[reading.Field]:
    try:
        GraphFields.model_validate(given)
    except ValidationError as error:
        return reading.faults(error, given)
    return []


def _kept(given: JsonObject) -> JsonObject:
    """What of the top level says something and is right; reducers also where a name is wrong, so that their keys are
    known."""
    elsewhere = {"spec_version", "entry", "nodes", "edges", "budgets"}
    wrong = {str(fault.path[0]) for fault in _top_faults(given)}
    if isinstance(given.get("reducers"), dict):
        wrong.discard("reducers")
    kept: JsonObject = {}
    for name, field in GraphFields.model_fields.items():
        value = given.get(name)
        if name not in elsewhere | wrong and value is not None and not json_equal(value, field.default):
            kept[name] = value
    return {**kept, **_kept_budgets(given.get("budgets"), wrong)}


def _kept_budgets(value: JsonValue, wrong: Container[str]) -> JsonObject:
    if not isinstance(value, dict) or "budgets" in wrong:
        return {}
    defaults = {name: field.default for name, field in BudgetFields.model_fields.items()}
    body: JsonObject = {k: v for k, v in value.items() if v is not None and v != defaults[k]}
    return {"budgets": body} if body else {}


def _label_issues(metadata: JsonValue) -> list[Issue]:
    message = "metadata is flat: strings, numbers, true, false or null"
    return [
        Issue("FIELD_INVALID", message, pointer=pointer("metadata", name))
        for name, value in (metadata if isinstance(metadata, dict) else {}).items()
        if isinstance(value, dict | list)
    ]


def _entry(raw: JsonObject, edges: Sequence[ParsedEdge], issues: list[Issue]) -> str:
    """The entry; edges from START are another way to name it."""
    declared = raw.get("entry")
    starts = [edge for edge in edges if edge.source == "START"]
    if declared is None and not starts:
        issues.append(Issue("FIELD_REQUIRED", "`entry` names the node that runs first", pointer="/entry"))
    entry = declared if isinstance(declared, str) else starts[0].target if starts else ""
    for edge in starts:
        if edge.target != entry:
            message = f'START leads to "{edge.target}", but the entry is "{entry}"; start with a passthrough that forks'
            at = pointer("edges", edge.place, "to")
            issues.append(Issue("FIELD_CONFLICT", message, pointer=at, related=("/entry",)))
    return entry


_PLAIN_EDGE: Final = frozenset({"from", "to"})


def _edge(raw: JsonValue, place: int, issues: list[Issue]) -> ParsedEdge | None:
    if isinstance(raw, dict) and raw.keys() == _PLAIN_EDGE:  # as most are: a validator would see nothing else
        source, target = raw["from"], raw["to"]
        if isinstance(source, str) and isinstance(target, str) and source and target:
            return ParsedEdge(source, target, place, dict(raw))
    at = f"/edges/{place}"
    given: Any = raw
    try:
        EdgeFields.model_validate(given)
    except ValidationError as error:
        faults = _whole(reading.faults(error, given), "{from, to}, with ids of nodes or END")
        known = field_names(EdgeFields)
        issues += [reading.issue(fault, at, known=known) for fault in faults]
        if any(fault.kind != "unknown" for fault in faults) or not isinstance(given, dict):
            return None
        given = {name: value for name, value in given.items() if name in known}
    body: JsonObject = {name: value for name, value in given.items() if value not in ("", None) and name != "condition"}
    condition = given.get("condition")
    if condition:
        message = "an edge has no condition: this is read as its label; let a router choose"
        issues.append(Issue("CONDITION_IS_LABEL", message, severity="warning", pointer=at + "/condition",
                            fix=reading.moved(at + "/condition", at + "/label")))  # fmt: skip
        if body.setdefault("label", condition) != condition:
            message = "`condition` is read as the label, and there is another `label`"
            issues.append(Issue("FIELD_CONFLICT", message, pointer=at + "/condition", related=(at + "/label",)))
    return ParsedEdge(str(given["from"]), str(given["to"]), place, body, str(given.get("id", "")))


def _node(raw: JsonValue, place: int, issues: list[Issue], *, legacy: bool) -> ParsedNode | None:
    at = f"/nodes/{place}"
    node_id = _id(raw)
    try:
        shell = NodeFields.model_validate(raw)
    except ValidationError as error:
        shell = None
        faults = _whole(reading.faults(error, raw), "{id, type, config}")
        issues += [_shell_issue(fault, at, raw, node_id) for fault in faults]
        if isinstance(raw, dict) and all(fault.kind == "unknown" for fault in faults):
            shell = NodeFields.model_validate(_in_place(raw))
    if shell is None:
        return None
    issues += _id_issues(node_id, at)
    if shell.type not in NODE_TYPES:
        issues.append(_type_issue(shell.type, at, node_id))
    if shell.type not in KNOWN_TYPES:
        return None
    about: list[Issue] = []
    given, moved = configs.as_sent(shell, at, about)
    given = configs.upgraded(shell.type, given, legacy=legacy)
    config = configs.read_config(shell.type, given, about, place=(at, node_id, moved))
    issues += [issue for issue in about if shell.type not in UNAVAILABLE_TYPES or _is_of_use(issue)]
    if config is None:
        return None
    body: JsonObject = {"id": shell.id, "type": shell.type}
    body |= {k: v for k, v in (("label", shell.label), ("description", shell.description)) if v}
    kept = configs.without_defaults(shell.type, given)
    return ParsedNode(shell.id, place, shell.type, config, {**body, "config": kept} if kept else body, moved)


def _is_of_use(issue: Issue) -> bool:
    """Also where the type cannot run yet: what is written wrongly, not what such a config would need beside it."""
    return issue.code != "FIELD_REQUIRED" and (issue.code != "UNKNOWN_FIELD" or bool(issue.fix))


def _in_place(raw: JsonObject) -> JsonObject:
    """A node whose fields stand where they belong, so that a misplaced one does not make others look wrong."""
    kept = {name: value for name, value in raw.items() if name in NodeFields.model_fields}
    kind, config = raw.get("type"), raw.get("config")
    names = configs.config_names(kind) if isinstance(kind, str) and kind in KNOWN_TYPES else ()
    misplaced = {name: value for name, value in raw.items() if name in names and name not in kept}
    inside = config if isinstance(config, dict) else {}
    return {**kept, "config": {**misplaced, **inside}} if misplaced else kept


def _whole(faults: list[reading.Field], shape: str) -> list[reading.Field]:
    """What is no object at all is told what it has to look like."""
    return [fault if fault.path else replace(fault, sentence=f"{fault.sentence} {shape}") for fault in faults]


def _shell_issue(fault: reading.Field, at: str, raw: JsonValue, node_id: str) -> Issue:
    kind = raw.get("type") if isinstance(raw, dict) else None
    name = str(fault.path[-1]) if fault.path else ""
    if fault.kind == "unknown" and isinstance(kind, str) and kind in KNOWN_TYPES and name in configs.config_names(kind):
        message = f"`{name}` belongs in the node's `config`"
        fix = reading.moved(at + pointer(name), at + pointer("config", name))
        return Issue("UNKNOWN_FIELD", message, pointer=at + pointer(name), node_id=node_id, fix=fix)
    return reading.issue(fault, at, known=field_names(NodeFields), node_id=node_id)


def _id_issues(node_id: str, at: str) -> list[Issue]:
    if node_id in RESERVED_IDS:
        return [Issue("NODE_ID_RESERVED", f'"{node_id}" has a meaning of its own', pointer=at + "/id", node_id=node_id)]
    if not _is_name(node_id):
        message = "a node id has 1 to 64 letters, digits and the signs _ . -"
        return [Issue("NODE_ID_INVALID", message, pointer=at + "/id", node_id=node_id)]
    return []


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 64 and text.isascii() and text.translate(_SIGNS).isalnum()


_SIGNS: Final = str.maketrans({"_": "a", ".": "a", "-": "a"})


def _type_issue(kind: str, at: str, node_id: str) -> Issue:
    if kind in UNAVAILABLE_TYPES:
        return Issue("NODE_TYPE_UNAVAILABLE", UNAVAILABLE_TYPES[kind], pointer=at + "/type", node_id=node_id)
    near = reading.closest(kind, (*NODE_TYPES, *UNAVAILABLE_TYPES))
    hint = f'; did you mean "{near}"?' if near else f"; there are {', '.join(NODE_TYPES)}"
    fix: tuple[JsonObject, ...] = ({"op": "replace", "path": at + "/type", "value": near},) if near else ()
    message = f'there is no node type "{kind}"{hint}'
    return Issue("NODE_TYPE_UNKNOWN", message, pointer=at + "/type", node_id=node_id, fix=fix)


def json_schema() -> JsonObject:
    """The published JSON Schema of a spec (2020-12), a new copy."""
    from agent_graph.core import spec_schema

    return spec_schema.json_schema()
