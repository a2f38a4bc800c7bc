"""What may be missing when it is read, or when the run ends: KEY_MAYBE_UNWRITTEN, said at the level "strict" alone.

Asked is whether choices can lead to the reader, for the first time, without a writer having fired: every token that the
choices on the way leave behind must be able to get there or to end without one too, for the reader waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from agent_graph.core import regions
from agent_graph.core.checks.keys import BOOKS, Path, plain
from agent_graph.core.checks.reading import answered, optional_fix
from agent_graph.core.checks.shape import Shape
from agent_graph.core.choices import EXIT
from agent_graph.core.classes import dataclass
from agent_graph.core.dominators import NONE
from agent_graph.core.issues import Issue
from agent_graph.core.nodes.base import Read
from agent_graph.core.spec import ParsedNode
from agent_graph.core.topology import members

STEPS: Final = 1_000_000
"""Ways looked at in one graph, beyond which nothing more is said."""
Way: TypeAlias = tuple[int, ...]
"""What gets a token at once."""
_ASKING: Final = frozenset({"router", "loop"})
_SHOWN: Final = 6
"""Nodes of a way that a sentence names."""


def unsure_reads(shape: Shape) -> Iterator[Issue]:
    """Every read that fails its node on some way, although a node upstream writes the key; then the declared result."""
    search = Search(shape, STEPS)
    for place, read, writers in reads(shape):
        way = search.way_without(place, writers, plain(read.path))
        if way is not None:
            yield _issue(shape, place, read, writers, way=way)
    path = plain(shape.output.path)
    if shape.output.declared and path and path[0] not in BOOKS and not shape.keys.brought(path):
        writers = members(shape.keys.writers(path))
        if writers and search.ends_without(writers, path):
            yield _of_result(shape, writers)


def reads(shape: Shape) -> Iterator[tuple[int, Read, list[int]]]:
    """(node, read, who writes it) for every read that must find something and that a node upstream answers."""
    for place, node in enumerate(shape.nodes):
        if node.type in _ASKING or not shape.reached(place):
            continue
        seen: set[Path] = set()
        for read in shape.reads[place]:
            path = plain(read.path)
            if read.optional or path in seen or not answered(shape, place, read.path, path):
                continue
            seen.add(path)
            writers = _writers(shape, place, read.path, path)
            if writers and not (place in writers and node.type == "state_transform"):  # it sees its own operations
                yield place, read, [one for one in writers if one != place]


def _writers(shape: Shape, place: int, text: str, path: Path) -> list[int]:
    """The nodes of which one must have fired; [] where something else brings it."""
    if shape.nodes[place].type == "join" and text in shape.index:
        return [shape.index[text]]
    if path[0] in BOOKS:
        named = ".".join(path[1:])
        return [shape.index[named]] if path[0] == "outputs" and named in shape.index else []
    return [] if shape.keys.brought(path) else members(shape.keys.writers(path) & shape.seen(place))


@dataclass(slots=True)
class Search:
    """Ways through one graph. A `loop` is left from where its body ends; ways back to a node that every way passes are
    no part of a first round."""

    shape: Shape
    left: int
    _out: list[list[Way]] = field(default_factory=list)
    """By node: what it can select."""
    _first: list[list[Way]] = field(default_factory=list)
    """The same where a way back counts as an end."""
    _into: list[list[int]] = field(default_factory=list)
    _silent: dict[int, list[Way]] = field(default_factory=dict)
    """By node: what it can select without having written anything."""
    _asked: dict[int, set[Path]] = field(default_factory=dict)
    """By node that chooses: what it looks at; what is behind it may hang on that."""

    def way_without(self, place: int, writers: Sequence[int], path: Path = ()) -> list[int] | None:
        """A way from the entry to `place` on which none of `writers` writes, past all that ask for `path`; None when
        there is none, or it takes too long to tell."""
        tree = self.shape.branches
        entry = self.shape.built.edges[0].target
        self._prepare()
        if tree.above[place] == NONE and place != entry:
            return None  # only `on_budget` leads there
        if self.left <= 0 or any(one not in self._silent and tree.passes(one, place) for one in writers):
            return None
        start = self._start(place, writers)
        around = self._above(place, start)
        good = self._harmless(self._first, around, self._closed(writers, path, around))
        return self._walk(start, place, good)

    def ends_without(self, writers: Sequence[int], path: Path = ()) -> bool:
        """Whether choices can bring the whole run to its end without one of `writers` having written."""
        self._prepare()
        everything = {*range(len(self._out))}
        good = self._harmless(self._out, everything, self._closed(writers, path, everything))
        return self.left > 0 and self.shape.built.edges[0].target in good

    def _start(self, place: int, writers: Sequence[int]) -> int:
        """The nearest node that every way to `place` passes, and every way to a writer before it: none has written
        there."""
        tree, before = self.shape.branches, self.shape.upstream(place)
        entry, start = self.shape.built.edges[0].target, place
        for one in writers:
            self.left -= 1
            while (
                before >> one & 1 and start != entry
                and (start >= tree.count or start in self._silent or not tree.passes(start, one))
            ):  # fmt: skip
                start = tree.above[start]
                self.left -= 1
        return start

    def _closed(self, writers: Sequence[int], path: Path, around: set[int]) -> set[int]:
        """The writers, and whoever looks whether they have written."""
        watched = {("errors", *self.shape.nodes[one].id.split(".")) for one in writers}
        found = {*writers} & around
        for place in self._asked.keys() & around:
            for one in self._asked[place]:
                self.left -= 1
                if one[: len(path)] == path[: len(one)] or any(one[: len(mine)] == mine for mine in watched):
                    found.add(place)
        return found

    def _prepare(self) -> None:
        if self._out:
            return
        shape = self.shape
        self._silent = silent_ways(shape)
        self._into = [[] for _ in shape.ways]
        for place, lost in lost_ways(shape).items():
            self._silent.setdefault(place, []).extend(lost)
        for place, given in enumerate(shape.ways):
            options = given[:1] if shape.built.bodies.get(place) else given
            self._out.append(list(self._onwards(place, [*options, *self._silent.get(place, ())])))
            self._first.append([tuple(EXIT if self._back(place, to) else to for to in way) for way in self._out[-1]])
            for to in {to for way in self._first[-1] for to in way if to != EXIT}:
                self._into[to].append(place)
        self._silent = {place: list(self._onwards(place, options)) for place, options in self._silent.items()}
        self._asked = {
            place: {plain(read.path) for read in shape.reads[place]}
            for place, node in enumerate(shape.nodes) if node.type in _ASKING
        }  # fmt: skip

    def _back(self, place: int, to: int) -> bool:
        forward = self.shape.built.forward
        return to != EXIT and forward[to] <= forward[place] and (to == place or self.shape.branches.passes(to, place))

    def _onwards(self, place: int, options: Sequence[Way]) -> Iterator[Way]:
        """`options` with each way back to a `loop` replaced by the ways out of that."""
        todo = [*options]
        while todo:
            way = todo.pop()
            loop = next((to for to in way if to != EXIT and self.shape.built.bodies.get(to, 0) >> place & 1), EXIT)
            self.left -= 1
            if loop == EXIT or self.left <= 0:
                yield way
            else:
                rest = tuple(to for to in way if to != loop)
                todo += [(*rest, *out) for out in self.shape.ways[loop][1:]]

    def _above(self, place: int, start: int) -> set[int]:
        """The nodes on ways from `start` to `place`, itself left out."""
        found: set[int] = set()
        open_ = [place] if place != start else []
        while open_:
            for node in self._into[open_.pop()]:
                if node not in found and node != place:
                    found.add(node)
                    open_ += [node] if node != start else []
            self.left -= 1
        return found

    def _harmless(self, ways: Sequence[Sequence[Way]], around: set[int], writers: set[int]) -> dict[int, list[Way]]:
        """By node of `around` whose token can end or leave it without a writer: what it selects then.

        The least fixed point, as of `choices.can_end`.
        """
        good: dict[int, list[Way]] = {}
        waiting: dict[int, list[int]] = {}
        left: list[int] = []
        chosen: list[tuple[int, Way]] = []
        ready: list[int] = []
        for node in around:
            options = self._silent.get(node, []) if node in writers else ways[node]
            for targets in options or (() if node in writers else ((),)):
                inner = {to for to in targets if to in around}
                self.left -= 1 + len(inner)
                for to in inner:
                    waiting.setdefault(to, []).append(len(left))
                if not inner:
                    ready.append(len(left))
                left.append(len(inner))
                chosen.append((node, targets))
        while ready:
            node, targets = chosen[ready.pop()]
            new = node not in good
            good.setdefault(node, []).append(targets)
            for number in waiting.get(node, ()) if new else ():
                left[number] -= 1
                if not left[number]:
                    ready.append(number)
        return good

    def _walk(self, entry: int, place: int, good: Mapping[int, Sequence[Way]]) -> list[int] | None:
        """The shortest way from `entry` to `place` over harmless nodes."""
        came: dict[int, int] = {entry: NONE}
        open_ = [entry]
        for node in open_:
            if node == place:
                break
            for to in (to for targets in good.get(node, ()) for to in targets):
                if (to == place or to in good) and to not in came:
                    came[to] = node
                    open_.append(to)
        if place not in came or self.left <= 0:
            return None
        way = [place]
        while came[way[-1]] != NONE:
            way.append(came[way[-1]])
        return way[::-1]


def silent_ways(shape: Shape) -> dict[int, list[Way]]:
    """By node: what it selects when it has failed, or nothing came, and it wrote nothing."""
    found: dict[int, list[Way]] = {}
    for place, node in enumerate(shape.nodes):
        if node.config.on_error == "continue":
            out = tuple(shape.built.edges[i].target for i in shape.built.out_declared[place])
            found[place] = [out or (EXIT,)]
        elif node.config.on_error != "fail":
            found[place] = [_nodes(shape, node.config.on_error["goto"])]
        expired = getattr(node.config, "on_expire", None)
        if node.type == "signal" and isinstance(expired, dict):
            found.setdefault(place, []).append(_nodes(shape, expired["goto"]))
    return found


def lost_ways(shape: Shape) -> dict[int, list[Way]]:
    """By node in a branch that may fail alone, or be cancelled by a join that does not wait for it: where its token is
    then."""
    found: dict[int, list[Way]] = {}
    for region in shape.built.early.values():
        for place in members(region.nodes & ~(1 << region.exit)):
            found.setdefault(place, []).append((EXIT,))
    for node in shape.nodes:
        config: Any = node.config
        if node.type == "parallel" and config.for_each is None and config.fail_policy != "fail_fast":
            leave = shape.index[config.join]
            for branch in config.branches:
                for place in regions.nodes_between(shape.built, shape.index[branch["entry"]], leave) - {leave}:
                    found.setdefault(place, []).append((leave,))
    return found


def _nodes(shape: Shape, names: Sequence[str]) -> Way:
    return tuple(shape.index.get(name, EXIT) for name in names) or (EXIT,)


def _issue(shape: Shape, place: int, read: Read, writers: Sequence[int], *, way: Sequence[int]) -> Issue:
    node, built = shape.nodes[place], shape.built
    assert isinstance(node, ParsedNode)
    later = [one for one in writers if one not in way and built.component[one] == built.component[place]]
    failing = [shape.nodes[one].id for one in writers if one in way]
    why = f"on the way {_shown([shape.nodes[one].id for one in way])} nothing has written it"
    if failing:
        why += f': "{failing[0]}" may write nothing and go on'
    elif later or not writers:
        why += " the first time"
    if not shape.keys.closed and plain(read.path)[0] not in BOOKS and read.path not in shape.index:
        why += "; if the run's input brings it, name it in `input_schema`"
    related = tuple(one.pointer() for one in (shape.nodes[i] for i in writers[:_SHOWN]) if isinstance(one, ParsedNode))
    return Issue("KEY_MAYBE_UNWRITTEN", f'"{node.id}" reads `{read.path}`, and {why}', severity="warning",
                 pointer=node.pointer(read.pointer), node_id=node.id, related=related,
                 fix=optional_fix(node, read))  # fmt: skip


def _of_result(shape: Shape, writers: Sequence[int]) -> Issue:
    message = (
        f"`output_key` names `{shape.output.path}` as the result, and a run can end without a node having written it:"
        " it fails then"
    )
    related = tuple(one.pointer() for one in (shape.nodes[i] for i in writers[:_SHOWN]) if isinstance(one, ParsedNode))
    return Issue("KEY_MAYBE_UNWRITTEN", message, severity="warning", pointer="/output_key", related=related)


def _shown(names: Sequence[str]) -> str:
    if len(names) > _SHOWN:
        names = [*names[:2], "...", *names[-3:]]
    return " > ".join(name if name == "..." else f'"{name}"' for name in names)
