"""Closed regions: what lies between a fork and the node where its ways meet, with no other way in or out."""

from __future__ import annotations

from collections.abc import Mapping
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
        inside = _inside(built, wiring.index[node.config.entry], leave)
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
        hole = _hole_before(wiring, built, fork=fork, leave=place, found=found)
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
        found |= _inside(built, built.edges[edge].target, leave)
    return found


def _hole_before(wiring: Wiring, built: Topology, *, fork: int, leave: int, found: Mapping[int, Region]) -> str:
    nodes = wiring.nodes
    if fork == NONE or len(built.out_all[fork]) < 2:
        return "no node starts them all"
    name = nodes[fork].id
    if fork in found:
        return f'"{nodes[found[fork].exit].id}" does not wait for all that "{name}" starts, either'
    inside = _between(built, fork, leave)
    if fork in inside:
        return f'a way leads back to "{name}" before "{nodes[leave].id}"'
    if _can_end(wiring, built, fork):
        return f'"{name}" can end before "{nodes[leave].id}"'
    for region in (*built.regions.values(), *found.values()):
        common = region.nodes & bits(inside, built.node_count)
        if common and common not in (region.nodes, bits(inside, built.node_count)):
            return f'what comes to "{nodes[region.exit].id}" is partly the same'
    for node in sorted(inside):
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


def _inside(built: Topology, entry: int, leave: int) -> set[int]:
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
        for edge in built.in_edges[node]:
            source = built.edges[edge].source
            if source not in inside and (source, node) != (fork, entry):
                name = "START" if source == ENTRY else nodes[source].id
                return f'"{name}" leads into it, to "{nodes[node].id}"'
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
