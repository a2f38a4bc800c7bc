"""From a spec to a graph: every check at once for one that is sent, none for one that is stored.

`load_graph` is on the way of every run: it imports no pydantic and computes nothing again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_graph.core import nesting, signals
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import Graph, Node, Output
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value, digest
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nesting import Stored
from agent_graph.core.nodes import DECLARED_TYPES, KNOWN_TYPES, NODE_TYPES
from agent_graph.core.topology import Topology
from agent_graph.errors import InputInvalid, InputTooDeep, InputTooLarge

if TYPE_CHECKING:
    from agent_graph.core.checks.whole import Judged
    from agent_graph.core.spec import ParsedNode, ParsedSpec

Level: TypeAlias = Literal["structure", "semantic", "strict"]
"""How much is looked at: nodes, edges and their fields; the graph as a whole too; or also what only may go wrong."""
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
    judged: bool = False
    """The graph as a whole was looked at: its parts are right."""


def compile_graph(
    raw: JsonValue, *, limits: Limits = DEFAULTS, stored: Stored = _NONE, level: Level = "semantic"
) -> Compiled:
    """Check `raw` and make a graph of it. Never raises; whatever is wrong is an issue, and every `fix` was tried.

    `stored` are the graphs it may name (`nesting.named_in`), by (name, version); "" is the current version. At the
    level "structure" only its parts and their connections are looked at, and no graph is made.
    """
    found = _compiled(raw, limits, stored, level)
    if not any(issue.fix for issue in found.issues):
        return found
    from agent_graph.core.checks.repairs import proved

    def check(mended: JsonValue) -> tuple[bool, tuple[Issue, ...]]:
        again = _compiled(mended, limits, stored, level)
        return again.judged, again.issues

    return replace(found, issues=proved(raw, found.issues, judged=found.judged, check=check))


def _compiled(raw: JsonValue, limits: Limits, stored: Stored, level: Level) -> Compiled:
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
    checked, more = _checked(parsed, limits, level)
    inner, wrong = nesting.pins(parsed, stored)
    issues += [*more, *wrong, *signals.inner_conflicts(parsed, inner)]
    if checked is None or any(issue.severity == "error" for issue in issues):
        return Compiled(None, _as_sent(raw, issues), judged=checked is not None)
    spec = nesting.pinned(minimal(parsed), inner)
    kept = checked.stored
    if inner:
        kept["subgraphs"] = {one.version: one.name for one in inner.values()}
    configs = _configs(spec) if inner else [(node.type, node.config) for node in parsed.nodes]
    graph = _graph(spec, digest(spec), kept, configs=configs, topology=checked.topology,
                   subgraphs={one.version: one for one in inner.values()})  # fmt: skip
    deep = nesting.too_deep(graph, parsed)
    if deep:
        return Compiled(None, _as_sent(raw, [*issues, *deep]), judged=True)
    return Compiled(graph, _as_sent(raw, issues), kept, judged=True)


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
    topology = Topology.from_json(compiled["topology"])
    return _graph(spec, version, compiled, configs=_configs(spec), topology=topology, subgraphs=subgraphs)


def _configs(spec: JsonObject) -> list[tuple[str, Any]]:
    body: Any = spec
    return [(one["type"], NODE_TYPES[one["type"]].Config(**one.get("config", {}))) for one in body["nodes"]]


def _graph(
    spec: JsonObject, version: str, compiled: Mapping[str, Any], *, configs: Sequence[tuple[str, Any]],
    topology: Topology, subgraphs: Mapping[str, Graph],
) -> Graph:  # fmt: skip
    """`configs`: by node, its type and config."""
    extents = {
        int(fork): tuple((edge, int(nodes, 16)) for edge, nodes in branches)
        for fork, branches in compiled.get("extents", {}).items()
    }
    body: Any = spec
    nodes = [
        Node(one["id"], index, kind, config, NODE_TYPES[kind].prepare(config), one.get("label", ""),
             one.get("description", ""))
        for index, (one, (kind, config)) in enumerate(zip(body["nodes"], configs, strict=True))
    ]  # fmt: skip
    return Graph(
        name=body["name"],
        version=version,
        spec=spec,
        nodes=tuple(nodes),
        index={node.id: node.index for node in nodes},
        topology=topology,
        reducers=dict(body.get("reducers", {})),
        max_iterations=compiled["max_iterations"],
        max_parallelism=body.get("max_parallelism", 8),
        output=Output(**compiled["output"]),
        input_schema=body.get("input_schema"),
        metadata=body.get("metadata", {}),
        budgets=body.get("budgets", {}),
        extents=extents,
        narrow=_narrow(nodes, extents),
        subgraphs=dict(subgraphs),
    )


def _narrow(nodes: Sequence[Node], extents: Mapping[int, Sequence[tuple[int, int]]]) -> dict[int, tuple[int, ...]]:
    """By node, the static forks around it that bound how many calls are in flight."""
    from agent_graph.core.topology import members

    found: dict[int, tuple[int, ...]] = {}
    for fork, branches in extents.items():
        inside = {node for _, part in branches for node in members(part)}
        for node in sorted(inside) if nodes[fork].config.max_parallelism is not None else ():
            found[node] = (*found.get(node, ()), fork)
    return found


def is_reserved(key: str) -> bool:
    """Whether a top-level key of the state belongs to the engine."""
    return key in RESERVED_KEYS or key.startswith("__")


def _checked(parsed: ParsedSpec, limits: Limits, level: Level) -> tuple[Judged | None, list[Issue]]:
    """What is stored with the version, None when an error stands in the way, and what the checks found."""
    from agent_graph.core.wiring import wire

    issues = _content_issues(parsed, limits)
    wiring, found = wire(parsed)
    issues += found
    if wiring is None:
        return None, issues
    if level == "structure" or any(_is_of_shape(issue) for issue in issues):
        return None, issues  # what follows would be guessed from a shape that will change
    from agent_graph.core import regions
    from agent_graph.core.checks.whole import judge

    built = wiring.topology()
    built.regions, found = regions.over_data(wiring, built)
    built.early, more = regions.early(wiring, built)
    found += more
    extents, holes = regions.extents(wiring, built)
    found += holes
    if found:
        return None, [*issues, *found]  # what runs where is not known
    judged = judge(parsed, wiring, built, strict=level == "strict")
    if extents:
        judged.stored["extents"] = {
            str(fork): [[edge, hex(nodes)] for edge, nodes in branches] for fork, branches in extents.items()
        }
    return judged, [*issues, *judged.issues]


def _is_of_shape(issue: Issue) -> bool:
    """An error of a node, an edge or what the input looks like; what is only not available yet says clearly enough
    what it is."""
    return (
        issue.severity == "error"
        and issue.code != "NODE_TYPE_UNAVAILABLE"
        and issue.pointer.startswith(("/nodes", "/edges", "/input_schema"))
    )


def _content_issues(parsed: ParsedSpec, limits: Limits) -> list[Issue]:
    """What is wrong with nodes taken alone, with reducers and with the input schema."""
    from agent_graph.core import schema, statepath

    issues = signals.schema_conflicts(parsed.nodes)
    for node in parsed.nodes:
        kind = KNOWN_TYPES[node.type]
        found = [*kind.check(node.id, node.config, limits), *_unused_retry(node)]
        for issue in found:
            related = tuple(node.pointer(one) for one in issue.related)
            fix = tuple({**step, "path": node.pointer(str(step["path"]))} for step in issue.fix)
            issues.append(
                replace(issue, pointer=node.pointer(issue.pointer), node_id=node.id, related=related, fix=fix)
            )
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
    if node.type == "llm" or node.type in DECLARED_TYPES or node.config.retry is None:
        return []
    message = f"only calls are made again, and a `{node.type}` makes none"
    fix: tuple[JsonObject, ...] = ({"op": "remove", "path": "/retry"},)
    return [Issue("FIELD_UNUSED", message, severity="warning", pointer="/retry", node_id=node.id, fix=fix)]


def _where_written(node: ParsedNode, path: str) -> str:
    names = ("output_key", "output", "counter_key")
    return next((node.pointer("/" + name) for name in names if getattr(node.config, name, "") == path), node.pointer())


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
