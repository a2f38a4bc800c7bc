"""Static branches whose failure their `parallel` puts up with: each gives what it knew as one token to the join.

Engine.md 4. One firing of the branch, the failed one or, where its time is over, the first that is cancelled, stays
active until the rest of the branch is, so that nobody takes the branch for through; then the branch's tokens are
gathered and one is put on its edge to the join.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_graph.core import events as e
from agent_graph.core import extents, mutexes
from agent_graph.core.contributions import Writer
from agent_graph.core.effects import Write
from agent_graph.core.firing import Firing, Lost, Token
from agent_graph.core.frame_tree import fail, forget, is_doomed
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.places import admit, remove
from agent_graph.core.run import Run
from agent_graph.core.topology import members


def lose(run: Run, firing: Firing, error: JsonObject) -> bool:
    """A firing has failed: whether a static branch around it takes that upon itself."""
    frame = firing.frame
    key = extents.innermost(frame, firing.node)
    if key is None:
        return False
    firing.lost = True
    lost = frame.lost.setdefault(key, Lost(error))
    writer = Writer(firing.node, (firing.depth, firing.node, firing.nth), firing.path, firing.past, -1)
    past = firing.past | frame.state.add(writer, (_mark(firing.declared.id, error),))
    token = Token(past, firing.tips, firing.depth)
    frame.depths[firing.node], frame.last[firing.node] = firing.depth, token
    _gather(frame, lost, token)
    run.losing[frame.path] = None
    return True


def _mark(name: str, error: JsonObject) -> Write:
    return Write("set", ("errors", name), {name: error[name] for name in ("code", "message")})


def begin(run: Run, firing: Firing, at_ms: int) -> None:
    """A static fork is through: the time of its branches begins, anew where those of its last firing still run."""
    fork, frame = firing.declared, firing.frame
    if fork.index not in frame.graph.extents or fork.config.timeout_ms is None:
        return
    for path in [path for path in run.until if extents.begun_by(run, path) == (frame, fork.index)]:
        del run.until[path]
    run.until[firing.path] = at_ms + fork.config.timeout_ms


def time_over(run: Run, path: str) -> None:
    """The branches of a static fork have had their time: those that are not through fail."""
    del run.until[path]
    begun = extents.begun_by(run, path)
    assert begun is not None, "frames take the time of their branches with them"
    frame, fork = begun
    node, branches = frame.graph.nodes[fork], frame.graph.extents[fork]
    late = [number for number, (_, nodes) in enumerate(branches) if frame.active & nodes]
    limit = node.config.timeout_ms
    error: JsonObject = {
        "code": "FRAMES_TIMEOUT", "message": f"what runs inside it took longer than {limit} ms", "class": "timeout",
        "details": {"timeout_ms": limit, "done": len(branches) - len(late), "of": len(branches)},
        "node_id": node.id, "node_path": path,
    }  # fmt: skip
    if node.config.fail_policy == "fail_fast":
        fail(run, frame, error)
        return
    for number in late:
        frame.lost.setdefault((fork, number), Lost(error, mark=_unfinished(frame, branches[number][1])))
    run.losing[frame.path] = None


def _unfinished(frame: Frame, nodes: int) -> int:
    """The first node of a branch that is not through; where a fork inside it puts up with failures, that fork is."""
    inner = [(fork, extents.whole(frame.graph, fork)) for fork, _ in extents.lenient(frame.graph) if nodes >> fork & 1]
    inner.sort(key=lambda one: one[1].bit_count())
    return min(
        [node, *(fork for fork, around in inner if around >> node & 1)][-1] for node in members(frame.active & nodes)
    )


def cancelled(run: Run, firing: Firing) -> bool:
    """A firing of a branch that is being ended is cancelled: what it knew is the branch's. Whether it stays active."""
    frame, stays = firing.frame, False
    for (fork, number), lost in frame.lost.items():
        nodes = frame.graph.extents[fork][number][1]
        if nodes >> firing.node & 1 and not firing.lost:
            _gather(frame, lost, Token(firing.past, firing.tips, firing.depth))
            stays = stays or not any(one.lost and nodes >> one.node & 1 for one in frame.running.values())
    if not stays or frame.terminating or frame.path in run.closing or is_doomed(run, frame):
        return False
    firing.lost, firing.owned = True, None
    return True


def to_end(frame: Frame) -> Iterator[tuple[list[Firing], e.BranchFailed]]:
    """By branch that is being ended, and lies in no other: what runs in it, and the fact that follows."""
    for (fork, number), lost in frame.lost.items():
        nodes = _nodes(frame, (fork, number))
        if any(_nodes(frame, other) >> fork & 1 for other in frame.lost):
            continue
        node = frame.graph.nodes[fork]
        running = [one for one in frame.running.values() if nodes >> one.node & 1 and not one.lost]
        yield running, e.BranchFailed(node.id, node.config.branches[number]["id"], lost.error, frame.path)


def _nodes(frame: Frame, key: tuple[int, int]) -> int:
    return frame.graph.extents[key[0]][key[1]][1]


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
    edge, nodes = frame.graph.extents[fork][number]
    for key in [key for key in frame.lost if nodes >> key[0] & 1]:
        inner = frame.lost.pop(key)
        _gather(frame, lost, Token(inner.past, inner.tips, inner.depth))
    if not frame.lost:
        run.losing.pop(frame.path, None)
    for firing in [one for one in frame.running.values() if nodes >> one.node & 1]:
        remove(run, firing)
        forget(run, firing)
        mutexes.release(run, firing)
        frame.drop(firing)
    leave = frame.graph.topology.edges[edge].target
    for token in _swept(frame, nodes, leave):
        _gather(frame, lost, token)
    if lost.mark >= 0:
        _leave_mark(frame, lost)
    frame.put(edge, Token(lost.past, lost.tips, lost.depth))
    held = [waiting for node in members(nodes) for waiting in frame.blocked_by.pop(node, ())]
    frame.settle([leave, *held])
    admit(run, frame)


def _leave_mark(frame: Frame, lost: Lost) -> None:
    """Nothing in the branch has failed by itself: say where it was when its time was over."""
    node = frame.graph.nodes[lost.mark]
    nth = frame.nth.get(node.index, 0)
    writer = Writer(node.index, (lost.depth, node.index, nth), f"{frame.path}{node.id}#{nth}", lost.past, -1)
    lost.past |= frame.state.add(writer, (_mark(node.id, lost.error),))


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


def _gather(frame: Frame, lost: Lost, token: Token) -> None:
    lost.past |= token.past
    lost.tips = frame.state.merge_tips((*lost.tips, *token.tips))
    lost.depth = max(lost.depth, token.depth)
