"""Static branches whose failure their `parallel` puts up with: each gives what it knew as one token to the join.

Engine.md 4. The failed firing stays active until the rest of its branch is cancelled, so that nobody takes the branch
for through; then the branch's tokens are gathered and one is put on its edge to the join.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_graph.core import events as e
from agent_graph.core.effects import Write
from agent_graph.core.firing import Firing, Lost, Token
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.merge import Writer
from agent_graph.core.places import admit
from agent_graph.core.run import Run
from agent_graph.core.topology import members


def lose(run: Run, firing: Firing, error: JsonObject) -> bool:
    """A firing has failed: whether a static branch around it takes that upon itself."""
    frame = firing.frame
    key = _innermost(frame, firing.node)
    if key is None:
        return False
    firing.lost = True
    lost = frame.lost.setdefault(key, Lost(error))
    mark = Write("set", ("errors", firing.declared.id), {name: error[name] for name in ("code", "message")})
    writer = Writer(firing.node, (firing.depth, firing.node, firing.nth), firing.path, firing.past, -1)
    token = Token(firing.past | frame.state.add(writer, (mark,)), firing.tips, firing.depth)
    frame.depths[firing.node], frame.last[firing.node] = firing.depth, token
    _gather(frame, lost, token)
    run.losing[frame.path] = None
    return True


def cancelled(firing: Firing) -> None:
    """A firing of a branch that is being ended is cancelled: what it knew is the branch's."""
    frame = firing.frame
    for (fork, number), lost in frame.lost.items():
        if frame.graph.extents[fork][number][1] >> firing.node & 1 and not firing.lost:
            _gather(frame, lost, Token(firing.past, firing.tips, firing.depth))


def to_end(frame: Frame) -> Iterator[tuple[list[Firing], e.BranchFailed]]:
    """By branch that is being ended: what runs in it, and the fact that follows."""
    for (fork, number), lost in frame.lost.items():
        nodes = frame.graph.extents[fork][number][1]
        node = frame.graph.nodes[fork]
        running = [one for one in frame.running.values() if nodes >> one.node & 1 and not one.lost]
        yield running, e.BranchFailed(node.id, node.config.branches[number]["id"], lost.error, frame.path)


def ended(_graph: Graph, run: Run, _event: e.Event, fact: e.BranchFailed) -> None:
    """Put the branch's one token on its way to the join."""
    frame = run.frames.get(fact.frame)
    fork = None if frame is None else frame.graph.index.get(fact.parallel)
    if frame is None or fork is None:
        return
    branches = frame.graph.nodes[fork].config.branches
    number = next((place for place, one in enumerate(branches) if one["id"] == fact.branch), -1)
    lost = frame.lost.pop((fork, number), None)
    if lost is None:
        return
    if not frame.lost:
        run.losing.pop(frame.path, None)
    edge, nodes = frame.graph.extents[fork][number]
    for firing in [one for one in frame.running.values() if nodes >> one.node & 1]:
        frame.drop(firing)
    leave = frame.graph.topology.edges[edge].target
    for token in _swept(frame, nodes, leave):
        _gather(frame, lost, token)
    frame.put(edge, Token(lost.past, lost.tips, lost.depth))
    held = [waiting for node in members(nodes) for waiting in frame.blocked_by.pop(node, ())]
    frame.settle([leave, *held])
    admit(run, frame)


def _swept(frame: Frame, nodes: int, leave: int) -> list[Token]:
    """Take away the tokens that wait for `nodes`, and those they have sent to `leave`."""
    found: list[Token] = []
    for number, queue in list(frame.tokens.items()):
        edge = frame.graph.topology.edges[number]
        if nodes >> edge.target & 1 or (edge.target == leave and edge.source >= 0 and nodes >> edge.source & 1):
            found += queue
            del frame.tokens[number]
            full = frame.full[edge.target]
            full.discard(number)
            if not full:
                del frame.full[edge.target]
                frame.soft.discard(edge.target)
                frame.active &= ~(1 << edge.target) | frame.running_set
    return found


def _innermost(frame: Frame, node: int) -> tuple[int, int] | None:
    """The fork and branch, of those that put up with failures, that are the closest around a node."""
    around = [
        (nodes.bit_count(), fork, number)
        for fork, branches in frame.graph.extents.items()
        for number, (_, nodes) in enumerate(branches)
        if nodes >> node & 1
    ]
    return min(around)[1:] if around else None


def _gather(frame: Frame, lost: Lost, token: Token) -> None:
    lost.past |= token.past
    lost.tips = frame.state.merge_tips((*lost.tips, *token.tips))
    lost.depth = max(lost.depth, token.depth)
