"""Where the tokens of a firing go: along edges, into a region, back out of one, or to an end; decides no order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_graph.core import early
from agent_graph.core.effects import Done
from agent_graph.core.firing import Firing, Token
from agent_graph.core.graph import END, END_RUN, SPECIAL_TARGETS
from agent_graph.core.lanes import is_each

if TYPE_CHECKING:
    from agent_graph.core.frames import Frame
    from agent_graph.core.topology import Edge


def send(
    frame: Frame, firing: Firing, targets: tuple[str, ...] | None, token: Token, *, by_target: dict[str, Token]
) -> list[int]:
    """Put tokens on the chosen edges of `frame`; returns the nodes that got one."""
    topology, node = frame.graph.topology, firing.node
    source = topology.leaves_by(node)
    if targets is None:
        edges, ends = [(edge, token) for edge in topology.out_declared[source]], topology.ends[source]
        stops = bool(topology.ends_run >> source & 1)
    else:
        edges, ends = [], not targets or END in targets
        stops = END_RUN in targets
        for target in dict.fromkeys(targets):
            if target in SPECIAL_TARGETS:
                continue
            place = frame.graph.index[target]
            edge = topology.edge_between.get((node, place))
            edges.append((topology.edge_between[source, place] if edge is None else edge, by_target.get(target, token)))
    inside = frame.inside
    within = edges if inside < 0 else [one for one in edges if inside >> topology.edges[one[0]].target & 1]
    if ends or stops or len(within) < len(edges):
        _end(early.outermost(frame), node, by_target.get(END, token), stops=stops)
    region = topology.early.get(source)
    if region is not None and within:
        early.open_region(frame, firing, region, tokens=within, forked=token)
        return []
    return [frame.put(edge, mine) for edge, mine in within]


def only_way(frame: Frame, firing: Firing, done: Done) -> Edge | None:
    """The edge along which a firing's token goes on, where that is all that comes of it: no end, no fork, no region
    opened or left; and whatever it leads to fires once for a round. None else."""
    topology, node, targets = frame.graph.topology, firing.node, done.targets
    if done.inputs or node in topology.regions or node in topology.early:
        return None
    if targets is None:
        ways = topology.out_declared[node]
        found = ways[0] if len(ways) == 1 and not (topology.ends[node] or topology.ends_run >> node & 1) else None
    else:
        single = len(targets) == 1 and targets[0] not in SPECIAL_TARGETS
        found = topology.edge_between.get((node, frame.graph.index[targets[0]])) if single else None
    if found is None:
        return None
    edge = topology.edges[found]
    inside = frame.inside < 0 or frame.inside >> edge.target & 1
    return edge if inside and not is_each(frame.graph, edge.target) else None


def _end(frame: Frame, node: int, token: Token, *, stops: bool) -> None:
    if stops:
        frame.terminating = True
        frame.ended_at.clear()  # whose result counts is certain
    frame.ended.append(token)
    frame.ended_at[node] = token.depth
