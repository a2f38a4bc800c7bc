"""Whether an output that is handed in can still be taken, and by which firing: what cannot is refused, not passed over.

Told from the graph and from what happened before the point. Where only the way shows it, the run says so at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agent_graph.core import events as e
from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.graph import Graph, Node
from agent_graph.core.issues import suggest
from agent_graph.core.lanes import is_each
from agent_graph.core.nesting import whole
from agent_graph.errors import ForkNotAllowed, InvalidArgument

GATE: Final = "human_approval"
ASKED: Final = "llm"
HEARD: Final = (e.ModelAnswered, e.CacheHit, e.AnswerGiven)
ENDED: Final = (e.NodeFinished, e.NodeFailed, e.FiringCancelled)
_SEGMENT: Final = re.compile(r"([^#\[\]/]+)#([1-9]\d*|\d+\.[1-9]\d*)(?:\[(?:0|[1-9]\d*)\])?")


class Past:
    """What the events before the point say of firings: which have heard their answer, and which are over."""

    def __init__(self, log: Iterable[e.Event]) -> None:
        self.heard: set[str] = set()
        self.over: set[str] = set()
        for event in log:
            fact = event.fact
            if isinstance(fact, (*HEARD, *ENDED)):
                self.heard.add(fact.firing)
                if isinstance(fact, ENDED):
                    self.over.add(fact.firing)
            elif isinstance(fact, e.NodeRetried):
                self.heard.discard(fact.firing)  # its next attempt is asked anew


def check_asked(graph: Graph, node_id: str, *, what: str) -> None:
    """Raises `ForkNotAllowed` for a gate, `InvalidArgument` unless a node of that id asks a model."""
    nodes = [node for inner in whole(graph) for node in inner.nodes]
    own = [node for node in nodes if node.id == node_id]
    if any(node.type == GATE for node in own):
        message = f"{what}: {node_id!r} is a gate, and only a person decides there; fork before it, and it asks"
        raise ForkNotAllowed(message, node_id=node_id)
    if not any(node.type == ASKED for node in own):
        known = sorted({node.id for node in nodes if node.type == ASKED})
        message = f"{what}: no node that asks a model is {node_id!r}{suggest(node_id, known)}"
        raise InvalidArgument(message, argument=what, known=known)


def check_taken(graph: Graph, name: str, past: Past) -> None:
    """Raises `InvalidArgument` unless a firing that takes the output of that name, an id or a path, may still come."""
    if "#" in name:
        _check_path(graph, name, past)
        return
    if _is_asked_once(graph, name) and f"{name}#1" in past.heard:
        raise _not_taken(name, "it has had its answer before that point, and is asked once; fork before it")


def _check_path(graph: Graph, name: str, past: Past) -> None:
    *owners, last = name.split("/")
    here, around = graph, ""
    for segment in owners:
        node = _node(here, segment, name=name, again=_goes_back(graph))
        inner = getattr(node.config, "graph_name", "")
        items = node.index in here.topology.regions or (bool(inner) and node.type != "subgraph")
        if not (inner or items or node.index in here.topology.early):
            raise _not_taken(name, f"nothing runs inside {node.id!r}")
        if items is not segment.endswith("]"):
            form = f"{node.id}#1[0]/" if items else f"{node.id}#1/"
            raise _not_taken(name, f"what runs inside {node.id!r} has paths that begin like {form}")
        firing = around + segment.partition("[")[0]
        if firing in past.over:
            raise _not_taken(name, f"{firing} is over by that point; fork before it")
        around += f"{segment}/"
        here = here.subgraphs.get(node.config.graph_version, here) if inner else here
    node = _node(here, last, name=name, again=_goes_back(graph))
    if last.endswith("]") or node.type != ASKED:
        raise _not_taken(name, f"{last} asks no model")
    if name in past.heard:
        raise _not_taken(name, "it has had its answer before that point; fork before it")


def _node(here: Graph, segment: str, *, name: str, again: bool) -> Node:
    """The node that a segment of a path names, if its firing of that number may come."""
    read = _SEGMENT.fullmatch(segment)
    if read is None:
        form = "one reads like draft#1, one inside another like map#1[0]/draft#1"
        raise _not_taken(name, f"{segment!r} is no firing; {form}")
    node_id, number = read[1], read[2]
    place = here.index.get(node_id)
    if place is None:
        raise _not_taken(name, f"graph {here.name!r} has no node {node_id!r}{suggest(node_id, [*here.index])}")
    if is_each(here, place) is not ("." in number):
        like = f"{node_id}#1.1, by way and count" if is_each(here, place) else f"{node_id}#1"
        raise _not_taken(name, f"firings of {node_id!r} read like {like}")
    if number != "1" and not is_each(here, place) and _fires_once(here, place) and not again:
        raise _not_taken(name, f"{node_id!r} lies on no cycle: there is only {node_id}#1")
    return here.nodes[place]


def _fires_once(graph: Graph, place: int) -> bool:
    """Whether a node has one firing in a frame at most: no way leads back before it, and none counts tokens singly."""
    return not graph.topology.behind_cycle >> place & 1 and not any(is_each(graph, node.index) for node in graph.nodes)


def _goes_back(graph: Graph) -> bool:
    """Whether the end of a budget leads elsewhere in the graph: then nodes that were through may fire again."""
    return isinstance(graph.budgets.get(ON_BUDGET), dict)


def _is_asked_once(graph: Graph, node_id: str) -> bool:
    """Whether a node has one firing in a whole run: it stands in the run's own graph, in nothing that runs often."""
    place = graph.index.get(node_id)
    if place is None or sum(node_id in inner.index for inner in whole(graph)) > 1:
        return False
    inside = (*graph.topology.regions.values(), *graph.topology.early.values())
    runs_often = any(region.nodes >> place & 1 for region in inside) or _goes_back(graph)
    return _fires_once(graph, place) and not runs_often


def _not_taken(name: str, why: str) -> InvalidArgument:
    return InvalidArgument(f"outputs: no firing takes {name!r}: {why}", argument="outputs", name=name)
