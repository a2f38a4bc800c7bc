"""Where the tokens of a firing go: along edges, into a region, back out of one, or to an end; decides no order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_graph.core import early
from agent_graph.core.firing import Firing, Token
from agent_graph.core.graph import END, END_RUN, SPECIAL_TARGETS

if TYPE_CHECKING:
    from agent_graph.core.frames import Frame


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


def _end(frame: Frame, node: int, token: Token, *, stops: bool) -> None:
    if stops:
        frame.terminating = True
        frame.ended_at.clear()  # whose result counts is certain
    frame.ended.append(token)
    frame.ended_at[node] = token.depth
