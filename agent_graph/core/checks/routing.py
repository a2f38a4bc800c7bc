"""What a router's rules can decide: RULE_SHADOWED, RULE_UNSATISFIABLE, NO_DEFAULT_ROUTE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent_graph.core.checks.keys import BOOKS, Path, plain
from agent_graph.core.checks.reasoning import STEPS, Domain, Reasoning, Rule, Unknown, contains_text, rule
from agent_graph.core.checks.samples import Sample
from agent_graph.core.checks.shape import NodeLike, Shape
from agent_graph.core.effects import Missing
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact, json_equal
from agent_graph.core.ops.predicates import TYPES
from agent_graph.core.spec import ParsedNode
from agent_graph.core.topology import members
from agent_graph.core.ways import rule_text

_OF_RULE: Final = ("targets", "label")
_STEPS: Final = 4 * STEPS
"""Questions asked about all routers of a graph."""
_NAMED: Final = 3


def router_issues(shape: Shape) -> Iterator[Issue]:
    """For every router, in order."""
    left = _STEPS
    for place, node in enumerate(shape.nodes):
        if node.type == "router":
            assert isinstance(node, ParsedNode)
            rules, names, pointers = _rules(node)
            reasoning = Reasoning(rules, _Known(shape, place), left=min(STEPS, max(left, 0)))
            before = reasoning.left
            yield from _of_router(node, reasoning, names, pointers)
            left -= before - reasoning.left


def _of_router(node: ParsedNode, reasoning: Reasoning, names: list[str], pointers: list[str]) -> Iterator[Issue]:
    complete = False
    try:
        for number, before in reasoning.run():
            if before is None:
                yield _never(node, names[number], pointers[number])
            elif node.config.mode == "first":
                yield _shadowed(node, names, pointers, number, before)
        complete = node.config.default is None and reasoning.exhaustive()
    except Unknown:
        pass
    if node.config.default is None and not complete:
        yield _without_default(node, reasoning)


def _rules(node: ParsedNode) -> tuple[list[Rule], list[str], list[str]]:
    """The rules in their order, each in words and with its pointer."""
    config = node.config
    rules, names, pointers = [], [], []
    for number, body in enumerate(config.rules):
        bare = {name: value for name, value in body.items() if name not in _OF_RULE}
        rules.append(rule(bare))
        names.append(rule_text(bare))
        pointers.append(node.pointer(pointer("rules", number)))
    routes = config.routes or ()
    for number, text in enumerate(routes if isinstance(routes, dict) else [entry[0] for entry in routes]):
        rules.append(contains_text(config.input_key, text))
        names.append(f"contains {compact(text)}")
        pointers.append(node.pointer(pointer("routes", text if isinstance(routes, dict) else number)))
    return rules, names, pointers


def _never(node: ParsedNode, name: str, at: str) -> Issue:
    message = f'the rule `{name}` of "{node.id}" can never hold: no value fits what it asks for'
    return Issue("RULE_UNSATISFIABLE", message, severity="warning", pointer=at, node_id=node.id,
                 fix=({"op": "remove", "path": at},))  # fmt: skip


def _shadowed(node: ParsedNode, names: list[str], pointers: list[str], number: int, before: list[int]) -> Issue:
    shown = " or ".join(f"`{names[one]}`" for one in before[:_NAMED]) + (" or another" if len(before) > _NAMED else "")
    message = f'the rule `{names[number]}` of "{node.id}" never decides: whenever it holds, {shown} has held before it'
    related = tuple(pointers[one] for one in before)
    return Issue("RULE_SHADOWED", message, severity="warning", pointer=pointers[number], node_id=node.id,
                 related=related, fix=({"op": "remove", "path": pointers[number]},))  # fmt: skip


def _without_default(node: ParsedNode, reasoning: Reasoning) -> Issue:
    example = ""
    try:
        value = reasoning.uncovered()
        if not isinstance(value, Missing):
            path = next(iter(reasoning.first)) or "the input"
            example = f", as for {compact(value)[:60]}" if value is not None else f", as when `{path}` is not there"
    except Unknown:
        pass
    message = (
        f'"{node.id}" has no `default`, and where none of its rules holds{example} the run fails; say `default`,'
        " and `[]` if the branch may end there"
    )
    return Issue("NO_DEFAULT_ROUTE", message, severity="warning", pointer=node.pointer(), node_id=node.id,
                 fix=_default_fix(node))  # fmt: skip


def _default_fix(node: ParsedNode) -> tuple[JsonObject, ...]:
    config: Any = node.minimal.get("config", {})
    kept = {name: value for name, value in config.items() if name not in node.moved}
    if kept:
        return ({"op": "add", "path": node.pointer("/default"), "value": []},)
    return ({"op": "add", "path": node.pointer() + "/config", "value": {"default": []}},)


class _Known(Domain):
    """What a router's paths can hold, where one node wrote them whose form is known."""

    def __init__(self, shape: Shape, place: int) -> None:
        self._shape = shape
        self._place = place
        self._schemas: dict[str, Mapping[str, Any]] = {}

    def values(self, path: str) -> Sequence[JsonValue]:
        schema = self._schema(path)
        return [schema["const"]] if "const" in schema else schema.get("enum", ())

    def fits(self, path: str, sample: Sample) -> bool:
        schema, values = self._schema(path), self.values(path)
        if values:
            return sample.exact and any(json_equal(sample.value, value) for value in values)
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return not kinds or any(TYPES[kind](sample.value) for kind in kinds)

    def _schema(self, path: str) -> Mapping[str, Any]:
        if path not in self._schemas:
            self._schemas[path] = _schema_at(self._shape, self._place, path)
        return self._schemas[path]


def _schema_at(shape: Shape, place: int, path: str) -> Mapping[str, Any]:
    """The schema of what is at `path`, whose only writer ran before and says it; {} = nobody knows."""
    segments = plain(path) if path and not path.startswith("__") else ()
    writers = members(shape.keys.writers(segments)) if segments and segments[0] not in BOOKS else []
    if len(writers) != 1 or writers[0] not in shape.branches.dominators(place):
        return {}
    node = shape.nodes[writers[0]]
    if node.config.on_error != "fail" or segments[0] in shape.top.get("reducers", {}):
        return {}
    schema, written = _written(node)
    if written != segments[: len(written)]:
        return {}
    for segment in segments[len(written) :]:
        if (
            not isinstance(schema, Mapping)
            or schema.get("type") != "object"
            or segment not in schema.get("required", ())
        ):
            return {}
        schema = schema.get("properties", {}).get(segment)
    return schema if isinstance(schema, Mapping) else {}


def _written(node: NodeLike) -> tuple[Any, Path]:
    """The schema of what a node writes, and where."""
    config = node.config
    if node.type != "human_approval":
        return getattr(config, "output_schema", None), plain(config.output_key or "/")
    told = [*config.allowed_decisions, *(["expired"] if config.on_expire != "fail" else [])]
    told += ["approve"] if "edit" in told else []
    decision = {"enum": list(dict.fromkeys(told))}
    return {"type": "object", "required": ["decision"], "properties": {"decision": decision}}, plain(
        config.output_key or node.id
    )
