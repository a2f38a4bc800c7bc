"""The shape of a graph as integers and bit sets: edges, reach, components, forward order; nothing of what nodes do.

Nodes are declaration indexes, edges are indexes into `Topology.edges`. A node set is an int with bit i set for node i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject

if TYPE_CHECKING:
    from agent_graph.core.feeders import Cycle

ENTRY = -1
"""The source of the virtual edge that carries the first token."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One way a token can travel, however many rules or declarations name it. `source` is ENTRY for the first."""

    source: int
    target: int
    declared: bool
    """Named by `edges` (or implied: a static branch's last node leads to its join); else only choosable as a target."""


class Region(NamedTuple):
    """What lies between a fork and where its ways meet: nothing enters or leaves it elsewhere."""

    entry: int
    """The edge from the fork into it."""
    exit: int
    """The node where its ways meet; it belongs to the region."""
    nodes: int


@dataclass(slots=True)
class Topology:
    """Built once a version by `build`, stored with it; reach sets are made when first asked for."""

    node_count: int
    edges: tuple[Edge, ...]
    """Edge 0 is the virtual entry edge; the declared edges follow in their order, then the choosable ones by node."""
    in_edges: tuple[tuple[int, ...], ...]
    out_declared: tuple[tuple[int, ...], ...]
    """By node: its declared out-edges, in order. What a firing without chosen targets selects."""
    out_all: tuple[tuple[int, ...], ...]
    """By node: every edge it can put a token on, in the order of engine.md 2: declared edges, then targets."""
    edge_between: dict[tuple[int, int], int]
    ends: tuple[bool, ...]
    """By node: a declared edge leads to END (or it has no declared out-edge at all): its token ends here."""
    ends_run: int
    """The nodes of which a declared edge leads to END_RUN."""
    forward: tuple[int, ...]
    """By node: its place in the forward order; unreachable nodes last."""
    component: tuple[int, ...]
    """By node: the number of its strongly connected component; an edge between components leads to a lower number."""
    in_cycle: int
    """The nodes that lie on a cycle (self-loops too)."""
    behind_cycle: int
    """The nodes that lie in or behind a cycle."""
    reachable: int
    """The nodes that can be reached from the entry, or from where `on_budget` leads."""
    bodies: dict[int, int] = field(default_factory=dict)
    """By loop node: the nodes it dominates on a path from its entry back to it (engine.md 6), itself left out."""
    regions: dict[int, Region] = field(default_factory=dict)
    """By fan-out over data: what runs once for each item, in frames of its own."""
    early: dict[int, Region] = field(default_factory=dict)
    """By fork: what lies between it and a join that does not wait for all; runs once for each firing of the fork."""
    _feeders: dict[int, int] = field(default_factory=dict, compare=False, repr=False)
    _parts: dict[int, Cycle] = field(default_factory=dict, compare=False, repr=False)
    _ancestors: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def leaves_by(self, node: int) -> int:
        """The node along whose out-edges a firing of `node` goes on: itself, or the exit of what it runs over data."""
        region = self.regions.get(node)
        return node if region is None else region.exit

    def ends_run_behind(self, node: int) -> bool:
        """Whether a firing of `node` that chooses nothing ends the run."""
        return self.ends_run != 0 and bool(self.ends_run >> self.leaves_by(node) & 1)

    def feeders(self, edge: int) -> int:
        """The nodes from which a path leads to `edge` that avoids the edge's target (the target itself left out).

        These are the nodes that, while active, can still put a token on `edge` (engine.md 2). Lazily, then kept.
        """
        kept = self._feeders.get(edge)
        if kept is None:
            kept = self._feeders[edge] = self._find_feeders(self.edges[edge])
        return kept

    def _find_feeders(self, edge: Edge) -> int:
        source, target = edge.source, edge.target
        if source in (ENTRY, target):
            return 0
        number = self.component[source]
        if number != self.component[target]:
            return self.ancestors(source)  # a path through the target would make them one component
        if number not in self._parts:
            self._parts[number] = self._part(number)
        return self._parts[number].feeding(source, target)

    def _part(self, number: int) -> Cycle:
        from agent_graph.core.feeders import cycle

        nodes = [node for node, other in enumerate(self.component) if other == number]
        inside: dict[int, list[int]] = {node: [] for node in nodes}
        entering = dict.fromkeys(nodes, 0)
        for node in nodes:
            for i in self.in_edges[node]:
                source = self.edges[i].source
                if source in inside:
                    inside[source].append(node)
                elif source != ENTRY:
                    entering[node] |= self.ancestors(source)
        return cycle(nodes, inside, entering=entering)

    def ancestors(self, node: int) -> int:
        """The nodes from which a path leads to `node`, itself included. Lazily, then kept."""
        kept = self._ancestors.get(self.component[node])
        if kept is None:
            self._find_ancestors()
            kept = self._ancestors[self.component[node]]
        return kept

    def _find_ancestors(self) -> None:
        """All at once, one OR an edge between components: those with the highest number come first."""
        members: list[list[int]] = [[] for _ in range(max(self.component) + 1)]
        for node, number in enumerate(self.component):
            members[number].append(node)
        known = self._ancestors
        for number in range(len(members) - 1, -1, -1):
            found = bits(members[number], self.node_count)
            for node in members[number]:
                for i in self.in_edges[node]:
                    source = self.edges[i].source
                    if source != ENTRY and self.component[source] != number:
                        found |= known[self.component[source]]
            known[number] = found

    def reach(self, nodes: Iterable[int]) -> int:
        """The nodes that a path leads to from any of `nodes`, themselves included; negative ones are none."""
        open_ = [node for node in nodes if node >= 0]
        found = set(open_)
        while open_:
            for i in self.out_all[open_.pop()]:
                target = self.edges[i].target
                if target not in found:
                    found.add(target)
                    open_.append(target)
        return bits(found, self.node_count)

    def to_json(self) -> JsonObject:
        """What `from_json` needs; node sets are hexadecimal. Reach sets are left out: they are made when asked for."""
        body: JsonObject = {
            "nodes": self.node_count,
            "entry": self.edges[0].target,
            "edges": [end for edge in self.edges[1:] for end in (edge.source, edge.target)],
            "declared": sum(edge.declared for edge in self.edges[1:]),
            "ends": hex(bits((i for i, ends in enumerate(self.ends) if ends), self.node_count)),
            "ends_run": hex(self.ends_run),
            "forward": list(self.forward),
            "component": list(self.component),
            "in_cycle": hex(self.in_cycle),
            "behind_cycle": hex(self.behind_cycle),
            "reachable": hex(self.reachable),
            "bodies": {str(node): hex(body) for node, body in self.bodies.items()},
        }
        regions: JsonObject = {str(fork): [r.entry, r.exit, hex(r.nodes)] for fork, r in self.regions.items()}
        early: JsonObject = {str(fork): [r.exit, hex(r.nodes)] for fork, r in self.early.items()}
        return {**body, **({"regions": regions} if regions else {}), **({"early": early} if early else {})}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Topology:
        """The topology `to_json` wrote; nothing is computed again."""
        count, flat, declared = body["nodes"], body["edges"], body["declared"]
        edges = [Edge(ENTRY, body["entry"], False)]
        edges += [Edge(flat[2 * i], flat[2 * i + 1], i < declared) for i in range(len(flat) // 2)]
        ends = int(body["ends"], 16)
        return _wired(
            count, edges, [bool(ends >> i & 1) for i in range(count)], ends_run=int(body.get("ends_run", "0x0"), 16),
            forward=tuple(body["forward"]), component=tuple(body["component"]),
            in_cycle=int(body["in_cycle"], 16), behind_cycle=int(body["behind_cycle"], 16),
            reachable=int(body["reachable"], 16),
            bodies={int(node): int(nodes, 16) for node, nodes in body["bodies"].items()},
            early={int(fork): Region(ENTRY, *_exit(leave)) for fork, leave in body.get("early", {}).items()},
            regions={
                int(fork): Region(entry, leave, int(nodes, 16))
                for fork, (entry, leave, nodes) in body.get("regions", {}).items()
            },
        )  # fmt: skip


def _exit(body: Any) -> tuple[int, int]:
    return body[0], int(body[1], 16)


def build(
    node_count: int,
    entry: int,
    *,
    declared: Sequence[tuple[int, int]],
    targets: Sequence[Sequence[int]],
    ends: Iterable[int] = (),
    ends_run: Iterable[int] = (),
    loops: Mapping[int, int] | None = None,
) -> Topology:
    """The topology of a graph; linear time, no recursion.

    `declared`: (from, to) in the order of `edges`, END left out. `targets`: by node, what it can choose, in the order
    of engine.md 2, END left out. `ends`, `ends_run`: nodes with a declared edge to END, to END_RUN. `loops`: loop
    node -> its entry. A way named twice is one edge.
    """
    edges = [Edge(ENTRY, entry, False)]
    edges += [Edge(source, target, True) for source, target in dict.fromkeys(declared)]
    named = set(declared)
    for node, chosen in enumerate(targets):
        edges += [Edge(node, target, False) for target in dict.fromkeys(chosen) if (node, target) not in named]
    to_end = [False] * node_count
    for node in ends:
        to_end[node] = True
    bare = _wired(node_count, edges, to_end, ends_run=bits(ends_run, node_count), forward=(), component=())
    out = [[edges[i].target for i in row] for row in bare.out_all]
    walk = _walk(node_count, entry, out)
    in_cycle, behind = _cycles(out, walk.component)
    bare.forward, bare.component = walk.forward, walk.component
    bare.in_cycle, bare.behind_cycle = bits(in_cycle, node_count), bits(behind, node_count)
    bare.reachable = bits(walk.reached, node_count)
    if loops:
        from agent_graph.core.dominators import loop_bodies

        into = [[edges[i].source for i in row] for row in bare.in_edges]
        bare.bodies = {k: bits(v, node_count) for k, v in loop_bodies(entry, out, into, loops=loops).items()}
    return bare


def bits(nodes: Iterable[int], node_count: int) -> int:
    """The node set with exactly `nodes` in it; one allocation, however many there are."""
    row = bytearray((node_count >> 3) + 1)
    for node in nodes:
        row[node >> 3] |= 1 << (node & 7)
    return int.from_bytes(row, "little")


def members(nodes: int) -> list[int]:
    """The nodes of a node set, lowest first."""
    return [i for i, digit in enumerate(reversed(f"{nodes:b}")) if digit == "1"]


def _wired(node_count: int, edges: Sequence[Edge], ends: list[bool], **found: Any) -> Topology:
    ends_run: int = found.pop("ends_run", 0)
    into: list[list[int]] = [[] for _ in range(node_count)]
    declared: list[list[int]] = [[] for _ in range(node_count)]
    all_: list[list[int]] = [[] for _ in range(node_count)]
    for i, edge in enumerate(edges):
        into[edge.target].append(i)
        if edge.source != ENTRY:
            all_[edge.source].append(i)
            if edge.declared:
                declared[edge.source].append(i)
    return Topology(
        node_count=node_count,
        edges=tuple(edges),
        in_edges=tuple(map(tuple, into)),
        out_declared=tuple(map(tuple, declared)),
        out_all=tuple(map(tuple, all_)),
        edge_between={(edge.source, edge.target): i for i, edge in enumerate(edges)},
        ends=tuple(ends[n] or not (declared[n] or ends_run >> n & 1) for n in range(node_count)),
        ends_run=ends_run,
        in_cycle=found.pop("in_cycle", 0),
        behind_cycle=found.pop("behind_cycle", 0),
        reachable=found.pop("reachable", 0),
        **found,
    )


@dataclass(frozen=True, slots=True)
class _Walk:
    forward: tuple[int, ...]
    component: tuple[int, ...]
    reached: list[int]


def _walk(node_count: int, entry: int, out: Sequence[Sequence[int]]) -> _Walk:
    """One depth-first search for the forward order and the components (Tarjan 1972), with a stack of its own."""
    seen_at, low, component = [0] * node_count, [0] * node_count, [-1] * node_count
    finished: list[int] = []
    reached = 0
    pending: list[int] = []
    clock = components = 0
    for root in (entry, *range(node_count)):
        if seen_at[root]:
            continue
        clock += 1
        seen_at[root] = low[root] = clock
        pending.append(root)
        stack = [(root, iter(out[root]))]
        while stack:
            node, ways = stack[-1]
            for target in ways:
                if not seen_at[target]:
                    clock += 1
                    seen_at[target] = low[target] = clock
                    pending.append(target)
                    stack.append((target, iter(out[target])))
                    break
                if component[target] < 0 and seen_at[target] < low[node]:
                    low[node] = seen_at[target]
            else:
                stack.pop()
                finished.append(node)
                if stack and low[node] < low[stack[-1][0]]:
                    low[stack[-1][0]] = low[node]
                if low[node] == seen_at[node]:
                    while component[node] < 0:
                        component[pending.pop()] = components
                    components += 1
        if root == entry:
            reached = len(finished)
    order = finished[:reached][::-1] + sorted(finished[reached:])
    forward = [0] * node_count
    for place, node in enumerate(order):
        forward[node] = place
    return _Walk(tuple(forward), tuple(component), finished[:reached])


def _cycles(out: Sequence[Sequence[int]], component: Sequence[int]) -> tuple[list[int], list[int]]:
    """The nodes on a cycle, and those on or behind one."""
    size = [0] * len(out)
    for number in component:
        size[number] += 1
    in_cycle = [node for node, ways in enumerate(out) if size[component[node]] > 1 or node in ways]
    behind, open_ = set(in_cycle), list(in_cycle)
    while open_:
        for target in out[open_.pop()]:
            if target not in behind:
                behind.add(target)
                open_.append(target)
    return in_cycle, list(behind)
