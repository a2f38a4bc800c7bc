"""Closed regions: what lies between a fork and the node where its ways meet, with no other way in or out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agent_graph.core.dominators import NONE, immediate_dominators
from agent_graph.core.issues import Issue
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.nodes.base import error_targets
from agent_graph.core.topology import ENTRY, Region, Topology, bits, members
from agent_graph.core.wiring import Wiring

OUTSIDE: Final = -1


def over_data(wiring: Wiring, built: Topology) -> tuple[dict[int, Region], list[Issue]]:
    """By fan-out over data: the part of the graph that runs for each item; REGION_NOT_CLOSED where that has holes."""
    found: dict[int, Region] = {}
    issues: list[Issue] = []
    taken: dict[int, int] = {}
    for place, node in enumerate(wiring.nodes):
        if node.type != "parallel" or node.config.for_each is None or node.config.graph_name:
            continue
        leave = wiring.index[node.config.join]
        inside = nodes_between(built, wiring.index[node.config.entry], leave)
        hole = _hole(wiring, built, inside, fork=place, leave=leave)
        if not hole and taken.setdefault(leave, place) != place:
            hole = f'"{wiring.nodes[leave].id}" is the join of "{wiring.nodes[taken[leave]].id}" already'
        if hole:
            message = f'what "{node.id}" runs for each item is no part of its own: {hole}'
            issues.append(Issue("REGION_NOT_CLOSED", message, pointer=node.pointer("/join"), node_id=node.id))
            continue
        edge = built.edge_between[place, wiring.index[node.config.entry]]
        found[place] = Region(edge, leave, bits(inside, built.node_count))
    return found, issues


def extents(wiring: Wiring, built: Topology) -> tuple[dict[int, tuple[tuple[int, int], ...]], list[Issue]]:
    """By static fork with a policy, by branch: its edge to the join, and its nodes; REGION_NOT_CLOSED too."""
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    issues: list[Issue] = []
    for place, node in enumerate(wiring.nodes):
        config = node.config
        if node.type != "parallel" or config.for_each is not None:
            continue
        alone, timed = config.fail_policy != "fail_fast", config.timeout_ms is not None
        if not alone and not timed and config.max_parallelism is None:
            continue
        leave = wiring.index[config.join]
        branches = [nodes_between(built, wiring.index[branch["entry"]], leave) for branch in config.branches]
        hole = _branch_hole(wiring, built, branches, place, leave=leave)
        if not hole and (alone or timed):
            hole = _beside_early(wiring, built, branches)
        if hole:
            what = "so none can fail alone" if alone else "so nothing bounds them as a whole"
            message = f'the branches of "{node.id}" are no parts of their own, {what}: {hole}'
            issues.append(Issue("REGION_NOT_CLOSED", message, pointer=node.pointer("/join"), node_id=node.id))
            continue
        ways_in = {built.edges[edge].source: edge for edge in reversed(built.in_edges[leave])}
        found[place] = tuple(
            (min(ways_in[node] for node in inside if node in ways_in), bits(inside - {leave}, built.node_count))
            for inside in branches
        )
    return found, issues


def _branch_hole(wiring: Wiring, built: Topology, branches: Sequence[set[int]], fork: int, *, leave: int) -> str:
    """What leads into or out of a branch elsewhere, or, where each may fail alone, from one to another; "" when
    nothing does."""
    nodes, config = wiring.nodes, wiring.nodes[fork].config
    whole: set[int] = set().union(*branches)
    seen = whole - {leave}
    entries = [wiring.index[branch["entry"]] for branch in config.branches]
    for entry, branch in zip(entries, branches, strict=True):
        if leave not in branch:
            return f'nothing leads from "{nodes[entry].id}" to "{nodes[leave].id}"'
        if fork in branch:
            return f'a way leads back to it before "{nodes[leave].id}"'
        alone = config.fail_policy != "fail_fast"
        inside, doors = (branch, [entry]) if alone else (whole, entries)
        for node in sorted(branch - {leave}):
            if way_in := _way_in(wiring, built, node, inside, doors={(fork, door) for door in doors}):
                return way_in
            if _can_end(wiring, built, node):
                return f'"{nodes[node].id}" can end before "{nodes[leave].id}"'
    others = (built.edges[edge].source for edge in built.in_edges[leave] if built.edges[edge].source not in seen)
    source = next(others, None)
    return "" if source is None else f'"{_name(wiring, source)}" leads to "{nodes[leave].id}" as well'


def _beside_early(wiring: Wiring, built: Topology, branches: Sequence[set[int]]) -> str:
    """A join that does not wait for all leaves out what failed by itself: the two are not mixed."""
    whole = bits(set().union(*branches), built.node_count)
    leaves = (wiring.nodes[region.exit].id for region in built.early.values() if region.nodes & whole)
    return next(
        (f'"{leave}" among them does not wait for all, and leaves out what failed anyway' for leave in leaves), ""
    )


def _way_in(wiring: Wiring, built: Topology, node: int, inside: set[int], *, doors: set[tuple[int, int]]) -> str:
    for edge in built.in_edges[node]:
        source = built.edges[edge].source
        if source not in inside and (source, node) not in doors:
            return f'"{_name(wiring, source)}" leads into it, to "{wiring.nodes[node].id}"'
    return ""


def _name(wiring: Wiring, source: int) -> str:
    return "START" if source == ENTRY else wiring.nodes[source].id


def early(wiring: Wiring, built: Topology) -> tuple[dict[int, Region], list[Issue]]:
    """By fork: what lies between it and a join that does not wait for all; REGION_NOT_CLOSED where that has holes."""
    found: dict[int, Region] = {}
    issues: list[Issue] = []
    waiting = [place for place, node in enumerate(wiring.nodes) if node.type == "join" and node.config.wait != "all"]
    if not waiting:
        return found, issues
    out = [[built.edges[edge].target for edge in row] for row in built.out_all]
    into = [[built.edges[edge].source for edge in row] for row in built.in_edges]
    above = immediate_dominators(wiring.entry, out, into)
    for place in waiting:
        node, fork = wiring.nodes[place], above[place]
        wait = node.config.wait
        if isinstance(wait, dict) and wait["count"] > len(into[place]):
            message = f"it waits for {wait['count']} branches, and {len(into[place])} lead to it"
            issues.append(Issue("FIELD_INVALID", message, pointer=node.pointer("/wait"), node_id=node.id))
            continue
        hole = _hole_before(wiring, built, fork=fork, leave=place)
        if hole:
            message = f"it can go on without all branches only where these are a part of their own: {hole}"
            issues.append(Issue("REGION_NOT_CLOSED", message, pointer=node.pointer("/wait"), node_id=node.id))
            continue
        found[fork] = Region(ENTRY, place, bits(_between(built, fork, place), built.node_count))
    return found, issues


def _between(built: Topology, fork: int, leave: int) -> set[int]:
    """The nodes that `fork` leads to, up to and with `leave`."""
    found: set[int] = set()
    for edge in built.out_all[fork]:
        found |= nodes_between(built, built.edges[edge].target, leave)
    return found


def _hole_before(wiring: Wiring, built: Topology, *, fork: int, leave: int) -> str:
    nodes = wiring.nodes
    if fork == NONE or len(built.out_all[fork]) < 2:
        return "no node starts them all"
    name = nodes[fork].id
    inside = _between(built, fork, leave)
    if fork in inside:
        return f'a way leads back to "{name}" before "{nodes[leave].id}"'
    if _can_end(wiring, built, fork):
        return f'"{name}" can end before "{nodes[leave].id}"'
    for node in sorted(inside):  # two such parts lie in one another or apart: else a way would lead into one of them
        if node in wiring.elsewhere:
            return f'`on_budget` leads into them, to "{nodes[node].id}"'
        for edge in built.in_edges[node]:
            source = built.edges[edge].source
            if source not in inside and source != fork:
                start = "START" if source == ENTRY else nodes[source].id
                return f'"{start}" leads into them, to "{nodes[node].id}"'
        if node != leave and _can_end(wiring, built, node):
            return f'"{nodes[node].id}" can end before "{nodes[leave].id}"'
    back = next((built.edges[edge].target for edge in built.out_all[leave] if built.edges[edge].target in inside), None)
    return "" if back is None else f'"{nodes[leave].id}" leads back into them, to "{nodes[back].id}"'


def innermost(regions: Mapping[int, Region], node_count: int) -> list[int]:
    """By node: the fan-out over data in whose items it runs, the innermost one; OUTSIDE for none."""
    home = [OUTSIDE] * node_count
    for fork, region in sorted(regions.items(), key=lambda one: -one[1].nodes.bit_count()):
        for node in members(region.nodes):
            home[node] = fork
    return home


def nodes_between(built: Topology, entry: int, leave: int) -> set[int]:
    """The nodes from `entry` up to `leave`, both included."""
    found: set[int] = set()
    open_ = [entry]
    while open_:
        node = open_.pop()
        if node not in found:
            found.add(node)
            open_ += [] if node == leave else [built.edges[edge].target for edge in built.out_all[node]]
    return found


def _hole(wiring: Wiring, built: Topology, inside: set[int], *, fork: int, leave: int) -> str:
    """What leads in or out elsewhere; "" when nothing does."""
    nodes = wiring.nodes
    if leave not in inside:
        return f'nothing leads from "{nodes[fork].config.entry}" to "{nodes[leave].id}"'
    if fork in inside:
        return f'a way leads back to it before "{nodes[leave].id}"'
    last = nodes[leave]
    if KNOWN_TYPES[last.type].targets(last.config) or error_targets(last.config):
        return f'"{last.id}" chooses where it goes, and what ends an item cannot'
    entry = wiring.index[nodes[fork].config.entry]
    for node in sorted(inside):
        if node in wiring.elsewhere:
            return f'`on_budget` leads into it, to "{nodes[node].id}"'
        if way_in := _way_in(wiring, built, node, inside, doors={(fork, entry)}):
            return way_in
        if node != leave and _can_end(wiring, built, node):
            return f'"{nodes[node].id}" can end before "{last.id}"'
    back = next((built.edges[edge].target for edge in built.out_all[leave] if built.edges[edge].target in inside), None)
    return "" if back is None else f'"{last.id}" leads back into it, to "{nodes[back].id}"'


def _can_end(wiring: Wiring, built: Topology, node: int) -> bool:
    """Whether a token can end at the node: a way to END that is declared or chosen."""
    parsed = wiring.nodes[node]
    chosen = [*KNOWN_TYPES[parsed.type].targets(parsed.config), *error_targets(parsed.config)]
    if any(target.id not in wiring.index for target in chosen):
        return True
    return built.ends[node] and not wiring.replaces_edges(node)
