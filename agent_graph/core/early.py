"""Regions of joins that do not wait for all: tokens of their own, and the event at which such a join fires.

Engine.md 2, "Early joins". A region is a frame in a frame: it has its own tokens and its own count of firings for every
firing of its fork, and the state, reducers and depth of the frame around it. In that frame the join stands for it: it
counts as running until the firing of the join is through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_graph.core.firing import Firing, Part, Token
from agent_graph.core.lanes import Turn

if TYPE_CHECKING:
    from agent_graph.core.frames import Frame
    from agent_graph.core.topology import Region

RANK_BITS = 64
"""Of a firing's number within its frame, in the order of writes."""


def outermost(frame: Frame) -> Frame:
    """The frame that has the state: the one around all regions."""
    while frame.around is not None:
        frame = frame.around
    return frame


def rank(frame: Frame, firing: Firing) -> int:
    """A firing's number in the order of writes: in a region that of the fork comes first."""
    return (0 if frame.part is None else frame.part.rank) << RANK_BITS | firing.nth


def open_region(
    frame: Frame, firing: Firing, region: Region, *, tokens: list[tuple[int, Token]], forked: Token
) -> None:
    """A fork is through: what it starts runs in a region."""
    inner = type(frame)(frame.graph, f"{firing.path}/", run_input=frame.run_input)
    lay(inner, Part(frame, region, forked, rank(frame, firing)))
    frame.regions.fresh.append(inner)
    inner.settle([inner.put(edge, token) for edge, token in tokens])
    look(inner)


def lay(inner: Frame, part: Part) -> None:
    """Put a region into the frame around it."""
    around, leave = part.around, part.region.exit
    inner.part, inner.state, inner.join_seen = part, around.state, around.join_seen
    around.regions.open[inner.path] = inner
    around.regions.standing[leave] = around.regions.standing.get(leave, 0) + 1
    around.running_set |= 1 << leave
    around.active |= 1 << leave


def look(frame: Frame) -> None:
    """Fire the join of a region when enough has come, or when no more can."""
    part = frame.part
    if part is None or part.closed:
        return
    leave, nodes, topology = part.region.exit, frame.graph.nodes, frame.graph.topology
    wait = nodes[leave].config.wait
    enough = wait["count"] if isinstance(wait, dict) else 1
    if len(part.arrived) < enough and _more_can_come(frame, part):
        return
    part.closed = True
    frame.nth[leave] = 1
    edges = sorted(part.arrived)
    taken = [part.arrived[edge] for edge in edges] or [part.forked]
    firing = frame.fire(leave, taken, Turn(edges, leave, 1, "1"))
    firing.closed_by = tuple(nodes[topology.edges[edge].source].id for edge in edges)
    firing.short = len(edges) < enough


def _more_can_come(frame: Frame, part: Part) -> bool:
    topology = frame.graph.topology
    edges = topology.in_edges[part.region.exit]
    return any(topology.feeders(edge) & frame.active for edge in edges if edge not in part.arrived)


def home(frame: Frame, node: int, *, past: int = 0) -> tuple[Frame, list[int]]:
    """The frame in which the tokens of a firing go on, with that `past`, and the nodes there that may have waited."""
    if frame.part is None or node != frame.part.region.exit:
        return frame, [*frame.blocked_by.pop(node, ()), node]
    frame.part.kept |= past
    return frame.part.around, _rejoin(frame.part)


def _rejoin(part: Part) -> list[int]:
    """The join of a region is through: it stands for the region no longer."""
    around, node = part.around, part.region.exit
    around.regions.standing[node] -= 1
    if around.regions.standing[node]:
        return []
    del around.regions.standing[node]
    around.leave(node, stood=True)
    return [*around.blocked_by.pop(node, ())]


def arrived(frame: Frame) -> set[int]:
    """The in-edges of its join that a region has tokens on."""
    return set() if frame.part is None else {*frame.part.arrived}


def forget(frame: Frame, *, but: set[int]) -> None:
    """Take back what came on other in-edges of the join."""
    if frame.part is not None:
        frame.part.arrived = {edge: token for edge, token in frame.part.arrived.items() if edge in but}


def reached(firing: Firing) -> Frame | None:
    """The frame that the failure of a firing reaches; None where a region goes on without that branch."""
    frame, node = firing.frame, firing.node
    if frame.part is None:
        return frame
    dirty: list[int] = []
    while frame.part is not None:
        inner = frame
        frame, more = home(frame, node)
        dirty += more
        if frame is inner:
            break
    if frame.part is None:
        return frame
    if not ended(frame):
        frame.settle(dirty)
    look(frame)
    return None


def ended(frame: Frame) -> bool:
    """A region whose join has fired, and what runs in it still is to be cancelled."""
    part = frame.part
    return part is not None and part.closed and bool(frame.graph.nodes[part.region.exit].config.cancel_rest)


def is_lost(firing: Firing, frame: Frame) -> bool:
    """Whether a firing in a region that has `ended`, or in frames inside it, is to be cancelled."""
    assert frame.part is not None, "only a region ends so"
    inside = firing.frame.path.startswith(frame.path)
    return inside and not (firing.frame is frame and firing.node == frame.part.region.exit)


def inside(frame: Frame) -> list[Frame]:
    """The regions in a frame, and those in them."""
    return [one for region in frame.regions.open.values() for one in (region, *inside(region))]


def known(frame: Frame) -> list[Token]:
    """What all that is active in a frame knew; of a region whose join has fired that of the join alone."""
    part = frame.part
    firings = list(frame.running.values())
    if part is not None and part.closed:
        firings = [firing for firing in firings if firing.node == part.region.exit]
    tokens = [Token(firing.past, firing.tips, firing.depth - 1) for firing in firings]
    if part is not None and part.closed:
        return tokens
    tokens += [token for queue in frame.tokens.values() for token in queue]
    return tokens if part is None else [*tokens, *part.arrived.values()]
