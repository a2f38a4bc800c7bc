"""Branches that cannot end: NO_PATH_TO_END, for what leads into a cycle no run can leave."""

from __future__ import annotations

from collections.abc import Iterator

from agent_graph.core.checks.shape import Shape
from agent_graph.core.issues import Issue
from agent_graph.core.spec import ParsedNode

_SHOWN = 50


def no_path_to_end(shape: Shape) -> Iterator[Issue]:
    """The nodes with which it starts: before each of them an end is still in reach, or nothing lies before it."""
    doomed = {place for place, ends in enumerate(shape.ends) if not ends and shape.reached(place)}
    entry = shape.built.edges[0].target
    shown = 0
    for place in sorted(doomed):
        if shape.built.in_cycle >> place & 1 or shown == _SHOWN:
            continue  # LOOP_WITHOUT_EXIT says what is wrong with these
        sources = {shape.built.edges[i].source for i in shape.built.in_edges[place] if i}
        if place != entry and sources <= doomed:
            continue
        shown += 1
        node, there = shape.nodes[place], _cycle_ahead(shape, place, doomed)
        assert isinstance(node, ParsedNode)
        message = (
            f'whatever is chosen behind "{node.id}", one of its branches gets to "{there.id}" and never ends:'
            f' no way leads from there to END'
        )  # fmt: skip
        yield Issue("NO_PATH_TO_END", message, pointer=node.pointer(), node_id=node.id, related=(there.pointer(),))


def _cycle_ahead(shape: Shape, place: int, doomed: set[int]) -> ParsedNode:
    """The first node of a cycle without an end that is met from `place`."""
    left = doomed - {place}
    open_ = [place]
    at = iter(open_)
    while not shape.built.in_cycle >> (node := next(at)) & 1:  # there is one, or its branches would end
        ahead = {target for targets in shape.ways[node] for target in targets} & left
        left -= ahead
        open_ += sorted(ahead)
    found = shape.nodes[node]
    assert isinstance(found, ParsedNode)
    return found
