"""The extents of static forks: which lie around a node, and who of them puts up with failures; changes nothing.

Engine.md 4. Branches open no frame: an extent is a set of nodes in the frame in which its fork has fired, and holds for
all firings of the fork there. What runs in frames inside one of its nodes counts as well where calls are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from agent_graph.core import early
from agent_graph.core.firing import Firing
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph
from agent_graph.core.run import Run

Branches: TypeAlias = tuple[tuple[int, int], ...]


def lenient(graph: Graph) -> Iterator[tuple[int, Branches]]:
    """The forks that put up with failures, with their branches."""
    for fork, branches in graph.extents.items():
        if graph.nodes[fork].config.fail_policy != "fail_fast":
            yield fork, branches


def whole(graph: Graph, fork: int) -> int:
    """All nodes of its branches."""
    found = 0
    for _, nodes in graph.extents[fork]:
        found |= nodes
    return found


def is_in(frame: Frame, fork: int) -> bool:
    """Whether a fork can fire in the frame: that of an item has a part of the nodes only."""
    return frame.inside < 0 or bool(frame.inside >> fork & 1)


def innermost(frame: Frame, node: int) -> tuple[int, int] | None:
    """The fork and branch, of those that put up with failures, that are the closest around a node."""
    around = [
        (nodes.bit_count(), fork, number)
        for fork, branches in lenient(frame.graph)
        for number, (_, nodes) in enumerate(branches)
        if nodes >> node & 1 and is_in(frame, fork)
    ]
    return min(around)[1:] if around else None


def begun_by(run: Run, path: str) -> tuple[Frame, int] | None:
    """The frame and the fork whose firing has that path."""
    inside, slash, name = path.rpartition("/")
    frame = run.frames.get(inside + slash)
    fork = None if frame is None else frame.graph.index.get(name.rpartition("#")[0])
    return None if frame is None or fork is None else (frame, fork)


def bounds(firing: Firing) -> list[tuple[tuple[str, int], int]]:
    """By static fork around a firing that bounds the calls in flight: the frame it fired in, itself, and its bound."""
    found: list[tuple[tuple[str, int], int]] = []
    inner: Firing | None = firing
    while inner is not None:
        frame, graph = inner.frame, inner.frame.graph
        outer = early.outermost(frame)
        found += [
            ((_home(frame, fork).path, fork), graph.nodes[fork].config.max_parallelism)
            for fork in graph.narrow.get(inner.node, ())
            if is_in(outer, fork)
        ]
        inner = outer.owner
    return found


def _home(frame: Frame, fork: int) -> Frame:
    """The frame, or the region of one, that a fork has fired in, or that it has opened, as seen from inside."""
    while frame.part is not None:
        region = frame.part.region
        if region is frame.graph.topology.early.get(fork) or region.nodes >> fork & 1:
            break
        frame = frame.part.around
    return frame
