"""Takes a frame from all it does to other nodes (engine.md 6); says nothing of why."""

from __future__ import annotations

from collections.abc import Sequence

from agent_graph.core import early
from agent_graph.core.contributions import Conflict
from agent_graph.core.firing import Regions, Token, merged
from agent_graph.core.frames import Frame
from agent_graph.core.graph import END_RUN, SPECIAL_TARGETS


def transfer(frame: Frame, targets: Sequence[str]) -> tuple[Conflict, ...]:
    """End all that is active in `frame`, and put what it knew as one token on a virtual edge to each target.

    Returns the conflicts that meet in it.
    """
    known = [token for part in (frame, *early.inside(frame)) for token in early.known(part)]
    known += [Token(lost.past, lost.tips, lost.depth) for lost in frame.lost.values()]
    token, met = merged(known, frame.state), frame.state.conflicts([token.past for token in known])
    for held in (frame.running, frame.tokens, frame.full, frame.blocked_by, frame.watched, frame.soft, frame.lost):
        held.clear()
    frame.enabled, frame.running_set, frame.active, frame.regions = [], 0, 0, Regions()
    nodes = [frame.graph.index[target] for target in targets if target not in SPECIAL_TARGETS]
    for node in nodes:
        give(frame, node, token)
    if len(nodes) < len(targets) or not targets:
        frame.ended.append(token)
    frame.terminating = END_RUN in targets
    frame.settle(nodes)
    return met


def give(frame: Frame, node: int, token: Token) -> None:
    """Put a token on a virtual edge to a node."""
    frame.given[node] = token
    frame.full.setdefault(node, set())
    frame.active |= 1 << node
