"""From a spec to a graph: every check at once for one that is sent, none for one that is stored.

`load_graph` is on the way of every run: it imports no pydantic and computes nothing again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agent_graph.core import nesting
from agent_graph.core.graph import Graph, Node, Output
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value, digest
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nesting import Stored
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.topology import Topology
from agent_graph.errors import InputInvalid, InputTooDeep, InputTooLarge

if TYPE_CHECKING:
    from agent_graph.core.spec import ParsedNode, ParsedSpec
    from agent_graph.core.wiring import Wiring

RESERVED_KEYS: Final = frozenset({"outputs", "errors", "loops"})
"""Keys of the state that belong to the engine, beside all that start with ``__``."""
_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a spec; `graph` is None when an issue is an error."""

    graph: Graph | None
    issues: tuple[Issue, ...]
    compiled: JsonObject = field(default_factory=dict)
    """What `load_graph` needs beside the minimal form; stored with the version."""


def compile_graph(raw: JsonValue, *, limits: Limits = DEFAULTS, stored: Stored = _NONE) -> Compiled:
    """Check `raw` and make a graph of it. Never raises; whatever is wrong is an issue.

    `stored` are the graphs it may name (`nesting.named_in`), by (name, version); "" is the current version.
    """
    from agent_graph.core.spec import minimal, parse_spec

    try:
        check_value(raw, max_depth=limits.json_depth, max_bytes=limits.spec_bytes)
    except (InputTooDeep, InputTooLarge) as error:
        return Compiled(None, (Issue("LIMIT_EXCEEDED", error.message),))
    except InputInvalid as error:
        return Compiled(None, (Issue("FIELD_INVALID", error.message),))
    parsed, issues = parse_spec(raw, limits=limits)
    if parsed is None:
        return Compiled(None, tuple(issues))
    checked, more = _checked(parsed, limits)
    inner, wrong = nesting.pins(parsed, stored)
    issues += [*more, *wrong, *nesting.too_deep(inner, parsed)]
    if checked is None or any(issue.severity == "error" for issue in issues):
        return Compiled(None, _as_sent(raw, issues))
    spec = nesting.pinned(minimal(parsed), inner)
    if inner:
        checked["subgraphs"] = {one.version: one.name for one in inner.values()}
    graph = load_graph(spec, digest(spec), checked, subgraphs={one.version: one for one in inner.values()})
    return Compiled(graph, _as_sent(raw, issues), checked)


def load_graph(
    spec: JsonObject,
    version: str,
    compiled: Mapping[str, Any],
    *,
    subgraphs: Mapping[str, Graph] = MappingProxyType({}),
) -> Graph:
    """The graph of a minimal form that was checked when it was stored. `version` is its digest.

    `subgraphs` are those in ``compiled["subgraphs"]`` ({version: name}), by version.
    """
    body: Any = spec
    nodes = []
    for index, one in enumerate(body["nodes"]):
        kind = NODE_TYPES[one["type"]]
        config = kind.Config(**one.get("config", {}))
        nodes.append(
            Node(one["id"], index, one["type"], config, kind.prepare(config), one.get("label", ""),
                 one.get("description", ""))
        )  # fmt: skip
    return Graph(
        name=body["name"],
        version=version,
        spec=spec,
        nodes=tuple(nodes),
        index={node.id: node.index for node in nodes},
        topology=Topology.from_json(compiled["topology"]),
        reducers=dict(body.get("reducers", {})),
        max_iterations=compiled["max_iterations"],
        max_parallelism=body.get("max_parallelism", 8),
        output=Output(**compiled["output"]),
        input_schema=body.get("input_schema"),
        metadata=body.get("metadata", {}),
        subgraphs=dict(subgraphs),
    )


def is_reserved(key: str) -> bool:
    """Whether a top-level key of the state belongs to the engine."""
    return key in RESERVED_KEYS or key.startswith("__")


def _checked(parsed: ParsedSpec, limits: Limits) -> tuple[JsonObject | None, list[Issue]]:
    """What is stored with the version, None when an error stands in the way, and what the checks found."""
    from agent_graph.core.wiring import wire

    issues = _content_issues(parsed, limits)
    wiring, found = wire(parsed)
    issues += found
    if wiring is None:
        return None, issues
    if any(issue.severity == "error" and issue.pointer.startswith(("/nodes", "/edges")) for issue in issues):
        return None, issues  # what follows would be guessed from a shape that will change
    built = wiring.topology()
    compiled, found = _shape_issues(parsed, wiring, built)
    return compiled, issues + found


def _content_issues(parsed: ParsedSpec, limits: Limits) -> list[Issue]:
    """What is wrong with nodes taken alone, with reducers and with the input schema."""
    from agent_graph.core import schema, signals, statepath

    issues = signals.schema_conflicts(parsed.nodes)
    for node in parsed.nodes:
        kind = NODE_TYPES[node.type]
        found = [*kind.check(node.id, node.config, limits), *_unused_retry(node)]
        for issue in found:
            related = tuple(node.pointer(one) for one in issue.related)
            issues.append(replace(issue, pointer=node.pointer(issue.pointer), node_id=node.id, related=related))
        for path in kind.writes(node.id, node.config):
            try:
                key = statepath.split(path)[0]
            except ValueError:
                continue  # the type's own check says so
            if is_reserved(key) and not any(issue.code == "RESERVED_KEY" for issue in found):
                message = f"`{key}` belongs to the engine; write to another key"
                issues.append(Issue("RESERVED_KEY", message, pointer=_where_written(node, path), node_id=node.id))
    top: Any = parsed.top
    for key in top.get("reducers", {}):
        if is_reserved(key):
            message = f"`{key}` belongs to the engine and takes no reducer"
            issues.append(Issue("RESERVED_KEY", message, pointer=pointer("reducers", key)))
    if "input_schema" in top:
        issues += schema.check(top["input_schema"], "/input_schema", limits=limits)
    return issues


def _unused_retry(node: ParsedNode) -> list[Issue]:
    if node.type == "llm" or node.config.retry is None:
        return []
    message = f"only calls are made again, and a `{node.type}` makes none"
    fix: tuple[JsonObject, ...] = ({"op": "remove", "path": node.pointer("/retry")},)
    return [Issue("FIELD_UNUSED", message, severity="warning", pointer="/retry", node_id=node.id, fix=fix)]


def _where_written(node: ParsedNode, path: str) -> str:
    names = ("output_key", "output", "counter_key")
    return next((node.pointer("/" + name) for name in names if getattr(node.config, name, "") == path), node.pointer())


def _shape_issues(parsed: ParsedSpec, wiring: Wiring, built: Topology) -> tuple[JsonObject, list[Issue]]:
    """What the graph as a whole shows, and the facts that are stored with it."""
    from agent_graph.core import conflicts, cycles, iterations, results

    top: Any = parsed.top
    ways = wiring.ways(built)
    bounds = iterations.loop_bounds(wiring)
    least = iterations.default_bound(bounds, built)
    declared = top.get("max_iterations")
    issues = _unreachable(wiring, built)
    issues += _without_default(wiring)
    issues += cycles.endless_cycles(wiring, built, ways)
    if declared is not None:
        issues += iterations.too_few(wiring, built, ways, declared=declared)
    issues += conflicts.write_conflicts(wiring, built, ways, reducers=top.get("reducers", {}))
    output, found = results.infer(wiring, built, ways, declared=top.get("output_key", ""))
    issues += found
    compiled: JsonObject = {
        "topology": built.to_json(),
        "max_iterations": least if declared is None else declared,
        "output": {"path": output.path, "declared": output.declared, "by_end": dict(output.by_end)},
    }
    return compiled, issues


def _unreachable(wiring: Wiring, built: Topology) -> list[Issue]:
    return [
        Issue("NODE_UNREACHABLE", f'nothing leads to "{node.id}"', severity="warning", pointer=node.pointer(),
              node_id=node.id)
        for place, node in enumerate(wiring.nodes)
        if not built.reachable >> place & 1
    ]  # fmt: skip


def _without_default(wiring: Wiring) -> list[Issue]:
    message = "a router whose rules all fail fails the run; say `default`, and `[]` if the branch may end there"
    return [
        Issue("NO_DEFAULT_ROUTE", message, severity="warning", pointer=node.pointer(), node_id=node.id,
              fix=_default_fix(node))
        for node in wiring.nodes
        if node.type == "router" and node.config.default is None
    ]  # fmt: skip


def _default_fix(node: ParsedNode) -> tuple[JsonObject, ...]:
    config: Any = node.minimal.get("config", {})
    kept = {name: value for name, value in config.items() if name not in node.moved}
    if kept:
        return ({"op": "add", "path": node.pointer("/default"), "value": []},)
    return ({"op": "add", "path": node.pointer() + "/config", "value": {"default": []}},)


def _as_sent(raw: JsonValue, issues: Sequence[Issue]) -> tuple[Issue, ...]:
    """Under the older name of `max_iterations` where that was sent."""
    if not isinstance(raw, dict) or "recursion_limit" not in raw or "max_iterations" in raw:
        return tuple(issues)
    older, newer = "/recursion_limit", "/max_iterations"
    return tuple(
        replace(issue, pointer=older, fix=tuple({**step, "path": older} for step in issue.fix))
        if issue.pointer == newer
        else issue
        for issue in issues
    )
