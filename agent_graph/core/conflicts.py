"""PARALLEL_WRITE_CONFLICT: two writers of one path that run side by side on every run that reaches the second.

Candidates come from bit sets over the graph without its backward edges; each is then proved on the whole graph. What
cannot be proved is no issue: at run time a fixed order decides (engine.md 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from agent_graph.core import statepath
from agent_graph.core.choices import EXIT, Selections, can_end
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import END_RUN
from agent_graph.core.issues import Issue
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.nodes.base import error_targets
from agent_graph.core.ops.transforms import overwrites
from agent_graph.core.regions import OUTSIDE, innermost
from agent_graph.core.topology import Topology, bits
from agent_graph.core.wiring import Wiring

SIZE: Final = 4_000_000_000
"""Nodes times contended writers beyond which nothing is searched: the sets would not fit into memory."""
STEPS: Final = 200_000
"""Writers and pairs looked at, at most, in search of candidates."""
PROOFS: Final = 200
"""Candidates that are proved or dropped, at most, in one graph."""
SHOWN: Final = 12
"""Nodes one issue names."""

Path = tuple[str, ...]


@dataclass(slots=True)
class _Fork:
    """Two ways of one selection of `node`: `first` certainly writes, `second` writes beside it when it writes."""

    node: int
    way: int
    first: int
    second: int


@dataclass(slots=True)
class _Search:
    wiring: Wiring
    built: Topology
    ways: Sequence[Selections]
    writers: list[int]
    """The contended writers: nodes that share a path with another one. Sets of them have bit i for writers[i]."""
    rivals: list[int]
    """By contended writer: with whom it shares a path."""
    reach: list[int] = field(default_factory=list)
    """By node: the contended writers that a forward way leads to, itself included."""
    avoid: list[int] = field(default_factory=list)
    """By node: the contended writers that choices can leave out."""
    steps: int = 0
    proofs: int = 0

    def spent(self) -> bool:
        return self.steps >= STEPS or self.proofs >= PROOFS


def write_conflicts(
    wiring: Wiring, built: Topology, ways: Sequence[Selections], *, reducers: Mapping[str, str]
) -> list[Issue]:
    """One issue a path, naming the writers that meet without a reducer.

    None in a graph that can end the whole run: whether a second writer comes to its end hangs on the timing there.
    """
    if _can_end_run(wiring):
        return []
    writes = _writes(wiring, built, reducers)
    groups = _groups(writes)
    gathered = _gathered(wiring, built, reducers)
    writers = sorted(set().union(*groups, *(everybody for _, everybody in gathered.values())))
    if not writers or len(writers) * built.node_count > SIZE:
        return []
    search = _Search(wiring, built, ways, writers, _rivals(writers, groups, list(gathered.values())))
    for path, (_, everybody) in gathered.items():  # last, so that a path without a reducer names a pair first
        for node in everybody:
            writes.setdefault(node, []).append(path)
    _spread(search)
    found: dict[Path, list[int]] = {}
    for fork in _candidates(search):
        if search.spent():
            break
        search.steps += 1
        path = _shared(writes[fork.first], writes[fork.second])
        known = found.get(path, [])
        if (fork.first in known and fork.second in known) or len(known) >= SHOWN:
            continue
        if _may_miss(built, fork):
            continue
        search.proofs += 1
        if _proved(search, fork):
            found[path] = list(dict.fromkeys([*known, fork.first, fork.second]))
    return [_issue(wiring, path, sorted(nodes), gathered=path in gathered) for path, nodes in found.items()]


def _may_miss(built: Topology, fork: _Fork) -> bool:
    """Both lie before a join that does not wait for all: one of them may be left out."""
    return any(region.nodes >> fork.first & region.nodes >> fork.second & 1 for region in built.early.values())


def _can_end_run(wiring: Wiring) -> bool:
    return bool(wiring.ends_run) or any(
        target.id == END_RUN
        for node in wiring.nodes
        for target in (*KNOWN_TYPES[node.type].targets(node.config), *error_targets(node.config))
    )


def _writes(wiring: Wiring, built: Topology, reducers: Mapping[str, str]) -> dict[int, list[Path]]:
    """By node that can run: the paths it writes, without those whose key has a reducer."""
    found: dict[int, list[Path]] = {}
    home = innermost(built.regions, built.node_count)
    for place, node in enumerate(wiring.nodes):
        if not built.reachable >> place & 1:
            continue
        for text in KNOWN_TYPES[node.type].writes(node.id, node.config):
            path = statepath.split(text)
            if not any(".".join(path[:length]) in reducers for length in range(1, len(path) + 1)):
                found.setdefault(place, []).append((_state(home[place]), *path))
    return found


def _state(fork: int) -> str:
    """Names the state a node writes to: that of its graph, or that of an item of `fork`. The first step of paths."""
    return "" if fork == OUTSIDE else str(fork)


def _gathered(wiring: Wiring, built: Topology, reducers: Mapping[str, str]) -> dict[Path, tuple[set[int], set[int]]]:
    """By key with a reducer that somebody overwrites: who does, and everybody who writes it.

    Contributions to such a key go together, but not with a `replace` or `delete` beside them (engine.md 3).
    """
    found: dict[Path, tuple[set[int], set[int]]] = {}
    home = innermost(built.regions, built.node_count)
    for place, node in enumerate(wiring.nodes):
        if not built.reachable >> place & 1:
            continue
        over = set(overwrites(node.config.operations)) if node.type == "state_transform" else set()
        for text in KNOWN_TYPES[node.type].writes(node.id, node.config):
            path = statepath.split(text)
            for length in range(1, len(path) + 1):
                if ".".join(path[:length]) in reducers:
                    key = (_state(home[place]), *path[:length])
                    overwriters, everybody = found.setdefault(key, (set(), set()))
                    everybody.add(place)
                    if text in over:
                        overwriters.add(place)
    return {key: nodes for key, nodes in found.items() if nodes[0] and len(nodes[1]) > 1}


def _groups(writes: Mapping[int, Sequence[Path]]) -> list[set[int]]:
    """The nodes that write a path or what it lies in, where that is more than one node."""
    exact: dict[Path, set[int]] = {}
    for node, paths in writes.items():
        for path in paths:
            exact.setdefault(path, set()).add(node)
    found = []
    for path, nodes in exact.items():
        around = [exact[path[:length]] for length in range(1, len(path)) if path[:length] in exact]
        everybody = nodes.union(*around)
        if len(everybody) > 1:
            found.append(everybody)
    return found


def _rivals(
    writers: Sequence[int], groups: Sequence[set[int]], gathered: Sequence[tuple[set[int], set[int]]]
) -> list[int]:
    number = {node: i for i, node in enumerate(writers)}
    rivals = [0] * len(writers)
    for nodes in groups:
        mask = bits((number[node] for node in nodes), len(writers))
        for node in nodes:
            rivals[number[node]] |= mask
    for overwriters, everybody in gathered:
        over, all_ = (bits((number[node] for node in nodes), len(writers)) for nodes in (overwriters, everybody))
        for node in everybody:
            rivals[number[node]] |= all_ if node in overwriters else over
    return [mask & ~(1 << i) for i, mask in enumerate(rivals)]


def _spread(search: _Search) -> None:
    """`reach` and `avoid` of every node in one pass against the forward order."""
    forward, ways = search.built.forward, search.ways
    count = search.built.node_count
    search.reach, search.avoid = [0] * count, [0] * count
    everything = (1 << len(search.writers)) - 1
    bit = {node: 1 << i for i, node in enumerate(search.writers)}
    for node in sorted(range(count), key=forward.__getitem__, reverse=True):
        own = bit.get(node, 0)
        reach, avoid = own, 0
        for targets in ways[node]:
            left_out = everything
            for target in targets:
                if target == EXIT:
                    continue
                if forward[target] <= forward[node]:
                    left_out = 0  # round a cycle: no way to end, and what it leads to lies behind
                else:
                    reach |= search.reach[target]
                    left_out &= search.avoid[target]
            avoid |= left_out
        search.reach[node], search.avoid[node] = reach, avoid & ~own


def _candidates(search: _Search) -> Iterator[_Fork]:
    """Pairs behind different ways of one selection. The smaller side is gone through, so trees stay cheap."""
    forward = search.built.forward
    for node, options in enumerate(search.ways):
        if search.spent() or not search.built.reachable >> node & 1:
            continue
        for targets in options:
            ahead = [t for t in targets if t != EXIT and forward[t] > forward[node] and search.reach[t]]
            if len(ahead) > 1:
                yield from _pairs(search, node, ahead)


def _pairs(search: _Search, node: int, ahead: Sequence[int]) -> Iterator[_Fork]:
    reach, rivals, writers = search.reach, search.rivals, search.writers
    others = _unions_without([reach[target] for target in ahead])
    for way, beside in zip(ahead, others, strict=True):
        mine = reach[way] & ~beside
        certain, theirs = mine & ~search.avoid[way], beside & ~reach[way]
        fewer = min(certain.bit_count(), theirs.bit_count())
        if not fewer or search.spent():
            continue
        search.steps += fewer
        if certain.bit_count() == fewer:
            for first in _each(certain):
                for second in _each(rivals[first] & theirs):
                    yield _Fork(node, way, writers[first], writers[second])
        else:
            for second in _each(theirs):
                for first in _each(rivals[second] & certain):
                    yield _Fork(node, way, writers[first], writers[second])


def _unions_without(sets: Sequence[int]) -> list[int]:
    """By place: the union of all the other sets."""
    before, after = [0], [0]
    for one in sets[:-1]:
        before.append(before[-1] | one)
    for one in reversed(sets[1:]):
        after.append(after[-1] | one)
    return [left | right for left, right in zip(before, reversed(after), strict=True)]


def _each(nodes: int) -> Iterator[int]:
    """The nodes of a sparse set, without looking at the gaps."""
    while nodes:
        low = nodes & -nodes
        yield low.bit_length() - 1
        nodes ^= low


def _proved(search: _Search, fork: _Fork) -> bool:
    """Neither writer is in the other's past, and the first one writes whatever is chosen after the fork.

    Where the fork lies on a cycle, its next round must come after both: else tokens of two rounds can meet.
    """
    node, first, second = fork.node, fork.first, fork.second
    after_first, after_second = _after(search, first, {node}), _after(search, second, {node})
    if second in after_first or first in after_second or _can_miss(search, fork):
        return False
    if not search.built.in_cycle >> node & 1:
        return True
    return node not in _after(search, second, after_first) and node not in _after(search, first, after_second)


def _after(search: _Search, start: int, closed: set[int]) -> set[int]:
    """What a token of `start` can lead to without passing through `closed` (the first of which it may touch)."""
    found: set[int] = set()
    open_ = [start]
    while open_:
        for targets in search.ways[open_.pop()]:
            for target in targets:
                if target != EXIT and target not in found:
                    found.add(target)
                    if target not in closed:
                        open_.append(target)
    return found


def _can_miss(search: _Search, fork: _Fork) -> bool:
    """Choices can end the token on the fork's way, or lead it back to the fork, before the first writer fires."""
    region = sorted({fork.way, *_after(search, fork.way, {fork.node, fork.first})})
    place = {node: i for i, node in enumerate(region)}
    never: Selections = ((place[fork.first],),)
    inner: list[Selections] = []
    for node in region:
        if node == fork.first:
            inner.append(never)
        elif node == fork.node:
            inner.append(((EXIT,),))
        else:
            inner.append(tuple(tuple(EXIT if t == EXIT else place[t] for t in ts) for ts in search.ways[node]))
    return can_end(inner)[place[fork.way]]


def _shared(left: Sequence[Path], right: Sequence[Path]) -> Path:
    """The path that both write: the longer one where one lies in the other."""
    return next(max(a, b, key=len) for a in left for b in right if a[: len(b)] == b[: len(a)])


def _issue(wiring: Wiring, path: Path, nodes: Sequence[int], *, gathered: bool) -> Issue:
    key, names = ".".join(path[1:]), [f'"{wiring.nodes[node].id}"' for node in nodes]
    repair = (
        "its reducer gathers what is contributed, and a `replace` or `delete` beside that would throw some of it away:"
        " do that before the branches part or after they meet"
        if gathered
        else f"nothing says which counts: give them keys of their own and join these, or name a reducer for `{path[1]}`"
    )
    message = f"{', '.join(names[:-1])} and {names[-1]} write `{key}` side by side, and {repair}"
    first, *others = (wiring.nodes[node].pointer() for node in nodes)
    return Issue("PARALLEL_WRITE_CONFLICT", message, pointer=first, node_id=wiring.nodes[nodes[0]].id,
                 related=tuple(others))  # fmt: skip
