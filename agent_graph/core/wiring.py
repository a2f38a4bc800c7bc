"""How the nodes of a spec connect: ids become indexes, targets and implied edges become ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from agent_graph.core import budgets
from agent_graph.core import fields as reading
from agent_graph.core.choices import EXIT, Selections, selections
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import END, END_RUN, SPECIAL_TARGETS, START
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.nodes.base import error_targets
from agent_graph.core.spec import ParsedEdge, ParsedNode, ParsedSpec
from agent_graph.core.topology import Topology, build

_COMPARISONS: Final = 20_000
"""Of unknown ids with known ones: beyond that many no nearest one is looked up."""


@dataclass(slots=True)
class Wiring:
    """Nodes by their place among those that could be read."""

    nodes: tuple[ParsedNode, ...]
    index: dict[str, int]
    entry: int
    declared: list[tuple[int, int]] = field(default_factory=list)
    """Edges in order, then the implied ones; without those that are never taken."""
    ends: set[int] = field(default_factory=set)
    ends_run: set[int] = field(default_factory=set)
    targets: list[list[int]] = field(default_factory=list)
    elsewhere: tuple[int, ...] = ()
    """Where `on_budget` leads, EXIT included: on ways that are no edges."""

    def replaces_edges(self, node: int) -> bool:
        """Whether what the node chooses stands for its out-edges."""
        parsed = self.nodes[node]
        return KNOWN_TYPES[parsed.type].CHOOSES and not getattr(parsed.config, "graph_name", "")

    def topology(self) -> Topology:
        loops = {
            node: self.index[parsed.config.entry]
            for node, parsed in enumerate(self.nodes)
            if parsed.type == "loop" and parsed.config.entry in self.index
        }
        return build(
            len(self.nodes), self.entry, declared=self.declared, targets=self.targets, ends=self.ends, loops=loops,
            ends_run=self.ends_run,
        )  # fmt: skip

    def ways(self, built: Topology) -> list[Selections]:
        """By node: what its firing can select."""
        found = []
        for node, parsed in enumerate(self.nodes):
            out = tuple(built.edges[i].target for i in built.out_declared[node])
            out += (EXIT,) if built.ends[node] or built.ends_run >> node & 1 else ()
            found.append(selections(parsed.type, parsed.config, out, self.index))
        return found


def wire(spec: ParsedSpec) -> tuple[Wiring | None, list[Issue]]:
    """Every id that names nothing, every edge twice or never taken; None when no graph can be made of it."""
    issues = _doubles(spec)
    index: dict[str, int] = {}
    for place, node in enumerate(spec.nodes):
        index.setdefault(node.id, place)
    names = _Names(index, dict.fromkeys((*index, *(one for _, one in spec.unread))), spec.named, issues)
    wiring = Wiring(spec.nodes, index, index.get(spec.entry, 0))
    if spec.entry and spec.named and spec.entry not in names.known:
        message = f'`entry` names "{spec.entry}", and there is no such node{names.of_nodes(spec.entry)}'
        issues.append(Issue("ENTRY_UNKNOWN", message, pointer="/entry", fix=names.renamed(spec.entry, "/entry")))
    _wire_targets(wiring, names)
    _wire_elsewhere(wiring, spec.top.get("budgets", {}), names)
    _wire_edges(wiring, spec.edges, names)
    for at, end in spec.loose:
        if end != START:
            names.check(end, at)
    usable = spec.complete and not any(issue.severity == "error" for issue in issues) and spec.entry in index
    if usable:
        wiring.declared += _implied(wiring)
    return (wiring if usable else None), issues


def _doubles(spec: ParsedSpec) -> list[Issue]:
    issues: list[Issue] = []
    first: dict[str, int] = {}
    for place, node_id in sorted([*((node.place, node.id) for node in spec.nodes), *spec.unread]):
        if first.setdefault(node_id, place) != place:
            at, related = f"/nodes/{place}/id", (f"/nodes/{first[node_id]}/id",)
            issues.append(Issue("DUPLICATE_NODE", f'there are two nodes "{node_id}"', pointer=at, node_id=node_id,
                                related=related))  # fmt: skip
    return issues


@dataclass(slots=True)
class _Names:
    """The ids of a spec, and the issues of what is none. Silent where a node does not say its id."""

    index: dict[str, int]
    """The nodes that could be read."""
    known: dict[str, None]
    """All."""
    named: bool
    issues: list[Issue]
    compared: int = 0

    def hint(self, name: str) -> str:
        if name.upper() in (START, END, END_RUN):
            return f'; did you mean "{name.upper()}"?'
        return self.of_nodes(name)

    def of_nodes(self, name: str) -> str:
        """A hint at a node, where nothing but a node can stand."""
        if self.compared > _COMPARISONS:
            return ""
        self.compared += len(self.known)
        return reading.did_you_mean(name, self.known)

    def renamed(self, name: str, at: str) -> tuple[JsonObject, ...]:
        """The patch that puts what was probably meant at `at`."""
        if name.upper() == END and at != "/entry":
            return ({"op": "replace", "path": at, "value": END},)
        near = reading.closest(name, self.known) if self.compared <= _COMPARISONS else ""
        return ({"op": "replace", "path": at, "value": near},) if near else ()

    def check(self, name: str, at: str, *, node_id: str = "", edge: str = "") -> None:
        if name not in SPECIAL_TARGETS and name not in self.known and self.named:
            message = f'there is no node "{name}"{self.hint(name)}'
            self.issues.append(Issue("UNKNOWN_NODE", message, pointer=at, node_id=node_id, edge=edge,
                                     fix=self.renamed(name, at)))  # fmt: skip


def _wire_targets(wiring: Wiring, names: _Names) -> None:
    for parsed in wiring.nodes:
        chosen = [*KNOWN_TYPES[parsed.type].targets(parsed.config), *error_targets(parsed.config)]
        for target in chosen:
            names.check(target.id, parsed.pointer(target.pointer), node_id=parsed.id)
        if parsed.type == "parallel" and parsed.config.join and "/join" not in [t.pointer for t in chosen]:
            names.check(parsed.config.join, parsed.pointer("/join"), node_id=parsed.id)
        wiring.targets.append([wiring.index[target.id] for target in chosen if target.id in wiring.index])


def _wire_elsewhere(wiring: Wiring, bounds: Any, names: _Names) -> None:
    chosen = budgets.targets(bounds)
    for place, name in enumerate(chosen):
        names.check(name, pointer("budgets", budgets.ON_BUDGET, "goto", place))
    if bounds.get(budgets.ON_BUDGET, "fail") not in ("fail", "pause"):
        wiring.elsewhere = tuple(dict.fromkeys(wiring.index.get(name, EXIT) for name in chosen)) or (EXIT,)


def _wire_edges(wiring: Wiring, edges: Sequence[ParsedEdge], names: _Names) -> None:
    seen: dict[tuple[str, str], int] = {}
    ids: dict[str, int] = {}
    for edge in edges:
        if _is_double(edge, seen, ids, names.issues):
            continue
        if edge.source in (END, END_RUN) or edge.target == START:
            names.issues.append(_backwards(edge))
            continue
        source, target = wiring.index.get(edge.source), wiring.index.get(edge.target)
        if source is None and edge.source != START:
            names.check(edge.source, edge.pointer + "/from", edge=edge.name)
        if target is None:
            names.check(edge.target, edge.pointer + "/to", edge=edge.name)
        if source is None or not _is_taken(wiring, edge, source, names.issues):
            continue
        if edge.target == END:
            wiring.ends.add(source)
        elif edge.target == END_RUN:
            wiring.ends_run.add(source)
        elif target is not None:
            wiring.declared.append((source, target))


def _backwards(edge: ParsedEdge) -> Issue:
    if edge.target == START:
        return Issue("FIELD_INVALID", "nothing leads to START", pointer=edge.pointer + "/to", edge=edge.name)
    message = f"nothing comes after {edge.source}"
    return Issue("FIELD_INVALID", message, pointer=edge.pointer + "/from", edge=edge.name)


def _is_double(edge: ParsedEdge, seen: dict[tuple[str, str], int], ids: dict[str, int], issues: list[Issue]) -> bool:
    first = seen.setdefault((edge.source, edge.target), edge.place)
    if first != edge.place:
        message = f'there are two edges from "{edge.source}" to "{edge.target}"'
        issues.append(Issue("DUPLICATE_EDGE", message, pointer=edge.pointer, edge=edge.name,
                            related=(f"/edges/{first}",), fix=_without(edge)))  # fmt: skip
        return True
    if edge.id and ids.setdefault(edge.id, edge.place) != edge.place:
        message = f'there are two edges with the id "{edge.id}"'
        related = (f"/edges/{ids[edge.id]}/id",)
        issues.append(Issue("DUPLICATE_EDGE", message, pointer=edge.pointer + "/id", edge=edge.id, related=related))
    return False


def _without(edge: ParsedEdge) -> tuple[JsonObject, ...]:
    return ({"op": "remove", "path": edge.pointer},)


def _is_taken(wiring: Wiring, edge: ParsedEdge, source: int, issues: list[Issue]) -> bool:
    """Whether a token can travel along the edge; beside targets that replace the edges only one of them can."""
    node = wiring.nodes[source]
    kind = KNOWN_TYPES[node.type]
    if not wiring.replaces_edges(source):
        return True
    if node.type == "parallel" and edge.target == node.config.join:
        return False  # may stand, and says nothing: the branches lead there
    targets = [target.id for target in (*kind.targets(node.config), *error_targets(node.config))]
    if edge.target not in targets:
        message = f'"{node.id}" goes where its config says, and "{edge.target}" is not among its targets'
        issues.append(Issue("EDGE_NEVER_TAKEN", message, pointer=edge.pointer, node_id=node.id, edge=edge.name,
                            fix=_without(edge)))  # fmt: skip
    return edge.target in targets


def _implied(wiring: Wiring) -> list[tuple[int, int]]:
    """A static branch's node without out-edges leads to the `join` of the innermost `parallel` around it."""
    joins = {
        place: wiring.index.get(node.config.join, EXIT)
        for place, node in enumerate(wiring.nodes)
        if node.type == "parallel"
    }
    if not joins:
        return []
    out = [  # without what an error leads to: a handler is no part of a branch
        [wiring.index[target.id] for target in KNOWN_TYPES[node.type].targets(node.config) if target.id in wiring.index]
        for node in wiring.nodes
    ]
    for source, target in wiring.declared:
        out[source].append(target)
    led = {source for source, _ in wiring.declared} | set(
        wiring.ends | wiring.ends_run
    )  # the targets of a gate or an error are no out-edges
    regions = {place: _region(place, joins, out) for place in joins}
    owners: dict[int, list[int]] = {}
    for place, region in regions.items():
        for node in region:
            if node not in led and not wiring.replaces_edges(node):
                owners.setdefault(node, []).append(place)
    found = []
    for node in sorted(owners):
        inner = [p for p in owners[node] if not any(q in regions[p] for q in owners[node] if q != p)]
        found += [(node, joins[place]) for place in inner or owners[node] if joins[place] != EXIT]
    return found


def _region(place: int, joins: Mapping[int, int], out: Sequence[Sequence[int]]) -> set[int]:
    """The nodes from the branch entries up to the join; an inner `parallel` counts as leading to its join."""
    stop = joins[place]
    found: set[int] = set()
    open_ = list(out[place])
    while open_:
        node = open_.pop()
        if node in found or node in (stop, EXIT):
            continue
        found.add(node)
        open_ += out[node]
        if node in joins:
            open_.append(joins[node])
    return found
