"""Where tokens of different rounds could meet (engine.md 2): LOOP_CROSSES_FORK, JOIN_BESIDE_LOOP,
NODE_WAITS_FOR_DECISION, LOOP_NOT_NESTED."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from agent_graph.core.checks.shape import NodeLike, Shape
from agent_graph.core.choices import EXIT
from agent_graph.core.issues import Issue, Severity
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.spec import ParsedNode

_STEPS: Final = 300_000
"""Nodes looked at by one of these checks, at most; beyond that nothing more is said."""
_SHOWN: Final = 20


class _Spent(Exception):
    """The search is given up."""


class _Walk:
    """Reach without some nodes, within a bound of steps."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.left = _STEPS

    def reach(self, starts: Collection[int], closed: Collection[int]) -> set[int]:
        """What a token of `starts` can lead to without passing `closed`; those are neither counted nor passed."""
        found = {node for node in starts if node != EXIT and node not in closed}
        open_ = list(found)
        ways = self.shape.ways
        while open_:
            node = open_.pop()
            self.left -= 1 + len(ways[node])
            if self.left < 0:
                raise _Spent
            for targets in ways[node]:
                for target in targets:
                    if target != EXIT and target not in found and target not in closed:
                        found.add(target)
                        open_.append(target)
        return found


def round_issues(shape: Shape) -> Iterator[Issue]:
    """All of them; a cycle that crosses a fork is not told of the node its branches meet at too."""
    walk = _Walk(shape)
    crossing: list[Issue] = []
    _gather(loops_across_forks(shape, walk), crossing)
    crossed = {shape.built.component[shape.index[issue.node_id]] for issue in crossing}
    found = crossing
    for check in (joins_beside_loops(shape, _Walk(shape), crossed), waits_for_decisions(shape), loose_loops(shape)):
        _gather(check, found)
    yield from found


def _gather(check: Iterator[Issue], found: list[Issue]) -> None:
    """What was found before a search is given up stays."""
    with suppress(_Spent):
        for issue in check:
            found.append(issue)  # noqa: PERF402  (`extend` would lose what came before)


def _forks(shape: Shape) -> Iterator[tuple[int, Sequence[int]]]:
    """Selections on a cycle that start several branches."""
    for node, options in enumerate(shape.ways):
        if shape.built.in_cycle >> node & 1 and shape.reached(node):
            for targets in options:
                ahead = [target for target in targets if target != EXIT]
                if len(ahead) > 1:
                    yield node, ahead


def loops_across_forks(shape: Shape, walk: _Walk) -> Iterator[Issue]:
    """LOOP_CROSSES_FORK: a branch goes back to its fork, or before it, without having met the others."""
    component = shape.built.component
    for fork, ahead in _forks(shape):
        if not any(component[way] == component[fork] for way in ahead):
            continue
        before = {node for node in shape.branches.dominators(fork) if component[node] == component[fork]} | {fork}
        reached = [walk.reach([way], before) for way in ahead]
        for place, way in enumerate(ahead):
            others: set[int] = set().union(*(one for at, one in enumerate(reached) if at != place))
            if way in before:
                back, own = [fork], {way}
            else:
                own = walk.reach([way], before | others)
                back = [node for node in own if _leads_to(shape, node, before)]
            if back and (reached[place] & others or way in before):
                yield _crossing(shape, fork, min(back), set().union(*reached))
                break


def _leads_to(shape: Shape, node: int, there: Collection[int]) -> bool:
    return any(target in there for targets in shape.ways[node] for target in targets)


def _crossing(shape: Shape, fork: int, back: int, region: set[int]) -> Issue:
    node, source = shape.nodes[fork], shape.nodes[back]
    serious = [place for place in region if _is_serious(shape.nodes[place])]
    severity: Severity = "error" if serious else "warning"
    why = "tokens of two rounds can meet"
    if serious:
        why = f'an old answer of "{shape.nodes[min(serious)].id}" could meet a new draft'
    message = (
        f'"{source.id}" leads back to "{node.id}" or before it while the other branches of that fork still run,'
        f" so {why}; join the branches first, then let a router go back"
    )
    if source.type == "human_approval":
        message += ' (`on_request_changes: "continue"` lets the decision flow on to it)'
    return _issue("LOOP_CROSSES_FORK", message, severity, shape, [back, fork])


def _is_serious(node: NodeLike) -> bool:
    return node.type == "human_approval" or hasattr(KNOWN_TYPES[node.type], "acts")


def joins_beside_loops(shape: Shape, walk: _Walk, crossed: Collection[int]) -> Iterator[Issue]:
    """JOIN_BESIDE_LOOP: a cycle sends tokens to a node outside by one way each round and by another way at the end."""
    component = shape.built.component
    exits: dict[int, set[tuple[int, int]]] = {}
    each_round: dict[int, set[tuple[int, int]]] = {}
    for node, options in enumerate(shape.ways):
        if component[node] in crossed or not shape.built.in_cycle >> node & 1 or not shape.reached(node):
            continue
        for targets in options:
            outside = [t for t in targets if t != EXIT and component[t] != component[node]]
            exits.setdefault(component[node], set()).update((node, t) for t in outside)
            if any(t != EXIT and component[t] == component[node] for t in targets):
                each_round.setdefault(component[node], set()).update((node, t) for t in outside)
    for number, leaving in each_round.items():
        for way in sorted(leaving):
            others = sorted(exits[number] - {way})
            found = _first_meeting(shape, walk, way, others)
            if found is not None:
                yield _beside(shape, way, found)
                break


def _first_meeting(shape: Shape, walk: _Walk, way: tuple[int, int], others: Sequence[tuple[int, int]]) -> int | None:
    """The first node, in forward order, that `way` and one of the others lead to."""
    cycle = shape.built.component[way[0]]
    inside = {node for node, number in enumerate(shape.built.component) if number == cycle}
    mine = walk.reach([way[1]], inside)
    theirs = walk.reach([target for _, target in others], inside)
    return min(mine & theirs, key=shape.built.forward.__getitem__, default=None)


def _beside(shape: Shape, way: tuple[int, int], meeting: int) -> Issue:
    source, node = shape.nodes[way[0]], shape.nodes[meeting]
    message = (
        f'"{node.id}" is fed by the cycle of "{source.id}" in every round and by another way too, so what it joins'
        " may be of different rounds; gather the rounds in a key with a reducer and read it behind the cycle"
    )
    return _issue("JOIN_BESIDE_LOOP", message, "warning", shape, [meeting, way[0]])


def waits_for_decisions(shape: Shape) -> Iterator[Issue]:
    """NODE_WAITS_FOR_DECISION: a gate of another branch may send its token back here, so the first run waits for it."""
    walk = _Walk(shape)
    for gate, node in enumerate(shape.nodes):
        if node.type != "human_approval" or not shape.reached(gate):
            continue
        for target in _returned_to(shape, node.config):
            if len(shape.built.in_edges[target]) > 1 and _waits(shape, walk, gate, target):
                yield _waiting(shape, gate, target)


def _returned_to(shape: Shape, config: Any) -> list[int]:
    ways = [way for way in (config.on_reject, config.on_request_changes) if isinstance(way, list)]
    expire = config.on_expire
    ways += [expire["goto"]] if isinstance(expire, dict) and isinstance(expire.get("goto"), list) else []
    return list(dict.fromkeys(shape.index[name] for way in ways for name in way if name in shape.index))


def _waits(shape: Shape, walk: _Walk, gate: int, target: int) -> bool:
    """Some fork starts both, and the gate is not passed on the way to its target, nor that on the way to the gate."""
    out = [shape.built.edges[i].target for i in shape.built.out_declared[gate]]
    if target in walk.reach(out, {gate}):
        return False  # what is approved gets there too: it brings the branches together
    entry = shape.built.edges[0].target
    early = walk.reach([entry], {target})
    if gate not in early:
        return False
    for node in sorted(early):
        for targets in shape.ways[node]:
            ahead = [way for way in targets if way != EXIT]
            if len(ahead) < 2 or node == gate:
                continue
            to_gate = {way for way in ahead if gate in walk.reach([way], {target})}
            to_target = {way for way in ahead if target in walk.reach([way], {gate})}
            if to_gate and to_target and (len(to_gate | to_target) > 1):
                return True
    return False


def _waiting(shape: Shape, gate: int, target: int) -> Issue:
    message = (
        f'"{shape.nodes[target].id}" does not start before somebody has decided at "{shape.nodes[gate].id}", for that'
        " gate may still send its token there; let another node do the rework, or put the gate before the fork"
    )
    return _issue("NODE_WAITS_FOR_DECISION", message, "warning", shape, [target, gate])


def loose_loops(shape: Shape) -> Iterator[Issue]:
    """LOOP_NOT_NESTED: a `loop` whose rounds are not counted, because its body is entered from elsewhere too, or that
    has none, because nothing leads back."""
    built = shape.built
    for loop, node in enumerate(shape.nodes):
        if node.type != "loop" or not shape.reached(loop) or node.config.entry not in shape.index:
            continue
        start = shape.index[node.config.entry]
        back = [
            built.edges[i].source for i in built.in_edges[loop]
            if i and built.edges[i].source != loop and built.feeders(i) >> start & 1
        ]  # fmt: skip
        strange = [source for source in back if not built.bodies.get(loop, 0) >> source & 1]
        if not back and start != loop:
            message = (
                f'nothing leads from "{node.config.entry}" back to the loop "{node.id}", so the body runs once and'
                f' "{node.config.exit}" never comes; draw the edge from the end of the body to "{node.id}"'
            )
            yield _issue("LOOP_NOT_NESTED", message, "warning", shape, [loop, start])
        elif strange:
            message = (
                f'the body of "{node.id}" can be entered without passing it, so a token that comes back by'
                f' "{shape.nodes[strange[0]].id}" starts its count anew; lead into the body by the loop alone'
            )
            yield _issue("LOOP_NOT_NESTED", message, "warning", shape, [loop, *strange[:_SHOWN]])


def _issue(code: str, message: str, severity: Severity, shape: Shape, places: Sequence[int]) -> Issue:
    first, *others = (shape.nodes[place] for place in dict.fromkeys(places))
    assert isinstance(first, ParsedNode)
    related = tuple(node.pointer() for node in others if isinstance(node, ParsedNode))
    return Issue(code, message, severity=severity, pointer=first.pointer(), node_id=first.id, related=related)
