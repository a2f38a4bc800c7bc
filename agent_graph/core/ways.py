"""Every legal way a token can go in a graph, named and in words; decides nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.classes import dataclass
from agent_graph.core.events import BudgetRefused, Fact, FramesOpened, NodeFailed, NodeFinished, RouteTaken, RunStarted
from agent_graph.core.graph import END, END_RUN, START, Graph, Node
from agent_graph.core.jsonvalue import JsonObject, compact

WayKey = tuple[str, str, str]
"""(source, transition, target); the transition of a plain edge is ""."""

_SYMBOLS: Final = {
    "eq": "==", "equals": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=",
}  # fmt: skip
_UNARY: Final = {"exists": "exists", "not_exists": "does not exist", "empty": "is empty", "not_empty": "is not empty"}
_RULE_CHARS: Final = 200
EACH: Final = "for_each"
"""The transition by which each item starts; the event that says how many there are tells that it was taken."""
ON_ERROR: Final = "on_error"
"""The transition to the targets of `on_error`; a `node_failed` event tells that it was taken, no `route_taken`."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way from `source` to `target` (node ids, ``START``, ``END``, ``END_RUN``).

    `transitions` are the names a ``route_taken`` event gives it; empty for a plain edge, which is always taken.
    """

    source: str
    target: str
    transitions: tuple[str, ...] = ()
    label: str = ""


def ways(graph: Graph) -> tuple[Way, ...]:
    """All of them, each once: the entry, then node by node in the order of engine.md 2."""
    entry = graph.nodes[graph.topology.edges[0].target].id
    found = [Way(START, entry)]
    way: Any = graph.budgets.get(ON_BUDGET)
    if isinstance(way, dict):
        found += [Way(START, target, (ON_BUDGET,), "on budget") for target in dict.fromkeys(way["goto"] or [END])]
    labels = _edge_labels(graph.spec)
    for node in graph.nodes:
        chooses = node.type in _CHOOSERS and not getattr(node.config, "graph_name", "")
        found += _chosen(node, labels) if chooses else _onward(graph, node, labels)
        if isinstance(node.config.on_error, dict):
            targets = dict.fromkeys(node.config.on_error["goto"] or [END])
            found += [Way(node.id, target, (ON_ERROR,), "on error") for target in targets]
    return tuple(found)


def rule_text(rule: JsonObject) -> str:
    """A router rule or predicate in words, at most 200 characters: ``a.b == "x" and not (c exists)``."""
    text = _predicate(rule, nested=False)
    return text if len(text) <= _RULE_CHARS else text[: _RULE_CHARS - 1] + "\u2026"


def taken(graph: Graph, facts: Iterable[Fact]) -> dict[WayKey, int]:
    """How often each way was taken, from the facts of a run; ways nobody took are left out."""
    by_source: dict[str, list[Way]] = {}
    for way in ways(graph):
        by_source.setdefault(way.source, []).append(way)
    facts = list(facts)
    routes = {fact.firing: fact.transition for fact in facts if isinstance(fact, RouteTaken)}
    counts: dict[WayKey, int] = {}
    for fact in facts:
        if isinstance(fact, RunStarted):
            chosen = [(way, "") for way in by_source[START] if not way.transitions]
        elif isinstance(fact, BudgetRefused):
            goes = fact.then == "goto"
            chosen = [(way, ON_BUDGET) for way in by_source[START] if goes and way.transitions]
        elif isinstance(fact, FramesOpened):
            items = [way for way in by_source.get(node_of(graph, fact.firing), []) if EACH in way.transitions]
            chosen = [(way, EACH) for way in items] * fact.count
        elif isinstance(fact, NodeFinished):
            found = by_source.get(_left_by(graph, fact.firing), [])
            chosen = list(_chosen_by(fact, found, routes.get(fact.firing, "")))
        elif isinstance(fact, NodeFailed) and fact.targets is not None:
            chosen = list(_after_error(fact.targets, by_source.get(node_of(graph, fact.firing), [])))
        else:
            continue
        for way, name in chosen:
            key = (way.source, name, way.target)
            counts[key] = counts.get(key, 0) + 1
    return counts


def _chosen_by(fact: NodeFinished, found: list[Way], transition: str) -> Iterator[tuple[Way, str]]:
    """A transition names one way, or, where a router takes all that hold, several joined by "+"."""
    names = set(transition.split("+"))
    for way in found:
        hit = [name for name in way.transitions if name != ON_ERROR and (name in names or not transition)]
        if not way.transitions:
            if fact.targets is None or way.target in fact.targets:
                yield way, ""
        elif hit and (fact.targets is None or way.target in (fact.targets or (END,))):
            yield way, hit[0]


def _after_error(targets: tuple[str, ...], found: list[Way]) -> Iterator[tuple[Way, str]]:
    """Along `goto` where the node has one, else along its edges; a choosing node's edges are named by what chooses."""
    own = [way for way in found if ON_ERROR in way.transitions]
    for way in {way.target: way for way in reversed(own or found) if way.target in targets}.values():
        yield way, ON_ERROR if own else next(iter(way.transitions), "")


def node_of(graph: Graph, firing: str) -> str:
    """The node of `graph` that a firing is of; "" when it is of a graph inside."""
    *owners, last = firing.split("/")
    regions = graph.topology.regions.keys() | graph.topology.early.keys()
    over_data = all(graph.index.get(owner.partition("#")[0]) in regions for owner in owners)
    return last.partition("#")[0] if over_data else ""


def _left_by(graph: Graph, firing: str) -> str:
    """The node along whose ways a firing went on; "" for the last one of an item, which goes nowhere."""
    node, regions = graph.index.get(node_of(graph, firing)), graph.topology.regions
    if node is None:
        return ""
    owner = graph.index.get(firing.rpartition("/")[0].rpartition("/")[2].partition("#")[0])
    if owner in regions and regions[owner].exit == node:
        return ""
    return graph.nodes[graph.topology.leaves_by(node)].id


def _edge_labels(spec: JsonObject) -> dict[tuple[str, str], str]:
    edges: Any = spec.get("edges", ())
    return {(edge["from"], edge["to"]): str(edge.get("label", "")) for edge in edges}


def _out(graph: Graph, node: Node) -> list[str]:
    topology = graph.topology
    targets = [graph.nodes[topology.edges[i].target].id for i in topology.out_declared[node.index]]
    ends = [END] if topology.ends[node.index] else []
    return [*targets, *ends, *([END_RUN] if topology.ends_run >> node.index & 1 else [])]


def _onward(graph: Graph, node: Node, labels: dict[tuple[str, str], str]) -> Iterator[Way]:
    """The out-edges, and the ways a gate's decisions, a vote's deadlock or a signal that never comes lead elsewhere."""
    if (forked := _elsewhere(node)) is not None:
        ordinary, other, targets = forked
        for target in _out(graph, node):
            yield Way(node.id, target, (ordinary,), labels.get((node.id, target), ""))
        for target in dict.fromkeys(targets or [END]):
            yield Way(node.id, target, (other,), other)
        return
    if node.type != "human_approval":
        yield from (Way(node.id, target, (), labels.get((node.id, target), "")) for target in _out(graph, node))
        return
    ways_by_decision = {
        "approve": "continue", "edit": "continue", "reject": node.config.on_reject,
        "request_changes": node.config.on_request_changes,
    }  # fmt: skip
    allowed = {name: way for name, way in ways_by_decision.items() if name in node.config.allowed_decisions}
    along = tuple(name for name, way in allowed.items() if way == "continue")
    for target in _out(graph, node) if along else ():
        yield Way(node.id, target, along, _joined(" / ".join(along), labels.get((node.id, target), "")))
    for name, way in allowed.items():
        if isinstance(way, list):
            yield from (Way(node.id, target, (name,), name) for target in dict.fromkeys(way or [END]))
    if isinstance(node.config.on_expire, dict):
        goto = dict.fromkeys(node.config.on_expire["goto"] or [END])
        yield from (Way(node.id, target, ("expired",), "expired") for target in goto)


def _elsewhere(node: Node) -> tuple[str, str, list[str]] | None:
    """The name of the way along the edges, that of the other way, and where it leads."""
    config = node.config
    if node.type == "signal" and isinstance(config.on_expire, dict):
        return "received", "expired", config.on_expire["goto"]
    if node.type == "join" and config.mode == "vote" and config.on_deadlock is not None:
        return "decided", "deadlock", config.on_deadlock
    return None


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _chosen(node: Node, labels: dict[tuple[str, str], str]) -> Iterator[Way]:
    """The targets of a choosing node, which replace its out-edges; a declared edge beside them adds its label."""
    for transitions, targets, label in _CHOOSERS[node.type](node.config):
        for target in dict.fromkeys(targets):
            yield Way(node.id, target, transitions, _joined(labels.get((node.id, target), ""), label))


_Choice = tuple[tuple[str, ...], list[str], str]
"""(transitions, targets, label)"""


def _router(config: Any) -> Iterator[_Choice]:
    for place, rule in enumerate(config.rules):
        yield (f"rules/{place}",), rule["targets"], _joined(str(rule.get("label", "")), rule_text(rule))
    routes = config.routes or {}
    for place, (text, target) in enumerate(routes.items() if isinstance(routes, dict) else routes):
        targets = [target] if isinstance(target, str) else target
        yield (f"routes/{place}",), targets, f"contains {compact(text)}"
    if config.default is not None:
        yield ("default",), config.default or [END], "default"


def _loop(config: Any) -> Iterator[_Choice]:
    yield ("entry",), [config.entry], "round"
    limit = f"after {config.max_iterations} rounds"
    until = rule_text(config.until) if config.until else ""
    if config.on_limit is None:
        yield ("exit", "limit"), [config.exit], " or ".join(part for part in (until, limit) if part)
        return
    if until:
        yield ("exit",), [config.exit], until
    yield ("limit",), config.on_limit or [END], limit


def _parallel(config: Any) -> Iterator[_Choice]:
    if config.for_each is not None:
        path = config.for_each.get("path", "") or "the current value"
        yield (EACH,), [config.entry], f"for each of {path}"
    for branch in config.branches:
        yield (f"branches/{branch['id']}",), [branch["entry"]], branch["id"]


_CHOOSERS: Final = {"router": _router, "loop": _loop, "parallel": _parallel}


def _predicate(rule: JsonObject, *, nested: bool) -> str:
    parts: list[str] = []
    for key, word in (("all", " and "), ("any", " or ")):
        members = rule.get(key)
        if isinstance(members, list):
            text = word.join(_predicate(part, nested=True) for part in members if isinstance(part, dict))
            parts.append(f"({text})" if nested and len(members) > 1 else text)
    negated = rule.get("not")
    if isinstance(negated, dict):
        parts.append(f"not ({_predicate(negated, nested=False)})")
    if "path" in rule or "op" in rule:
        parts.append(_comparison(rule))
    return " and ".join(part for part in parts if part) or "always"


def _comparison(rule: JsonObject) -> str:
    path, op = str(rule.get("path", "input")), str(rule.get("op", "eq"))
    if op in _UNARY:
        return f"{path} {_UNARY[op]}"
    operand = str(rule["value_path"]) if "value_path" in rule else compact(rule.get("value"))
    return f"{path} {_SYMBOLS.get(op, op.replace('_', ' '))} {operand}"
