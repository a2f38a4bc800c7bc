"""A second reading of engine.md sections 2 and 3, as slow and literal as it can be; it shares no scheduler code.

Pasts are plain sets of points, every view folds all contributions of its past anew, reach is a search of the graph
without the node. Of the program it uses the node types' steps, the reducers and the path operations, nothing else.
A firing that fails and whose node does not go on stays active for ever here, so the reading finds every firing that
no failure can prevent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent_graph.core import statepath
from agent_graph.core.effects import MISSING, Answer, AskApproval, CallModel, Done, MaybeJson, ModelAnswer
from agent_graph.core.graph import Graph
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.ops import reducers
from agent_graph.errors import NodeFailure
from tests.properties.shape_reading import Feeds, after, declared_of, error_targets_of, forward_order, ways_of
from tests.properties.world import World

Point: TypeAlias = tuple[str, ...]
"""A firing, (node, nth), or the current value a static branch starts with: (node, nth, entry of the branch)."""
Past: TypeAlias = frozenset[Point]
START: Point = ()
"""The run's input as the first write of the current value."""


@dataclass(frozen=True, slots=True)
class Token:
    past: Past
    depth: int


@dataclass(slots=True)
class Firing:
    """One firing; `done` and `error` are None while it runs."""

    node: str
    nth: int
    depth: int
    past: Past
    reentered: bool
    parts: tuple[Past, ...]
    """The pasts that come together in it: of each token it took and of its node's previous firing."""
    answers: list[Answer] = field(default_factory=list)
    done: Done | None = None
    selected: tuple[str, ...] = ()
    """Where its tokens went."""
    error: NodeFailure | None = None
    failed: NodeFailure | None = None
    """Why it failed while the run went on; `done` is empty then."""
    silent: bool = False
    """A gate nobody decides."""

    @property
    def point(self) -> Point:
        return (self.node, str(self.nth))

    @property
    def path(self) -> str:
        return f"{self.node}#{self.nth}"


class View:
    """What one firing sees; satisfies `nodes.base.Values`."""

    def __init__(self, reading: Reading, firing: Firing) -> None:
        self.reading, self.firing = reading, firing
        self.run_input = reading.run_input
        self.limits = DEFAULTS
        self.reentered = firing.reentered
        self.current = reading.current_of(reading.seen_write(firing.past))
        self.state = reading.state(firing.past)
        self.books = {
            **self.state, "outputs": reading.outputs(firing.past), "errors": reading.failures(firing.past),
        }  # fmt: skip

    def read(self, path: str) -> MaybeJson:
        return statepath.read(self.books, path)

    def resolve(self, path: str) -> tuple[str, ...]:
        return statepath.resolve(self.books, path)

    def reducer(self, key: str) -> str:
        return self.reading.graph.reducers.get(key, "")

    def join_input(self, name: str) -> MaybeJson:
        """A node's output or what is at a path, unless it is of an earlier round of this join."""
        reading, firing = self.reading, self.firing
        if name in reading.ways:
            value: MaybeJson = self.books["outputs"].get(name, MISSING)
            writers = reading.output_writers(name, firing.past)
        else:
            value, writers = self.read(name), reading.path_writers(self.resolve(name), firing.past)
        if value is MISSING or not writers or reading.config(firing.node).allow_stale:
            return value
        if writers[-1][0] in self.books["errors"]:
            return MISSING
        if firing.nth == 1:
            return value
        before = reading.firings[(firing.node, str(firing.nth - 1))].past
        return MISSING if reading.in_or_behind_cycle(writers[-1][0]) and writers[-1] in before else value


class Reading:
    """Plays one run to its end; `pick` says which of the running firings is done next."""

    def __init__(self, graph: Graph, run_input: Any, world: World, pick: Callable[[Sequence[Firing]], Firing]) -> None:
        self.graph, self.run_input, self.world, self.pick = graph, run_input, world, pick
        spec: Any = graph.spec
        self.spec: dict[str, Any] = spec
        self.ways, self.declared, self.forward = ways_of(self.spec), declared_of(self.spec), forward_order(self.spec)
        self.declared_at = {node["id"]: index for index, node in enumerate(self.spec["nodes"])}
        self.edges: dict[tuple[str, str], list[Token]] = {
            (source, target): [] for source, targets in self.ways.items() for target in targets
        }
        self.edges[("", self.spec["entry"])] = [Token(frozenset(), 0)]
        self.firings: dict[Point, Firing] = {}
        self.running: dict[str, Firing] = {}
        self.ended: list[Token] = []
        self.finished: list[Firing] = []
        """The firings that are done, in the order in which they were."""
        self.told: dict[str, Any] | None = None
        self.circles = 0
        """How often the rule of circles had to choose."""
        self.seen: dict[Point, Point] = {}
        """Write of the current value -> the write that its firing saw."""
        self.feeds = Feeds(self.spec)

    def run(self) -> Reading:
        self.enable()
        while True:
            going = [firing for firing in self.running.values() if firing.error is None and not firing.silent]
            if not going:
                return self
            self.advance(self.pick(going))
            self.enable()

    # ---- section 2: tokens

    def into(self, node: str) -> list[tuple[str, str]]:
        return [edge for edge in self.edges if edge[1] == node]

    def waiting(self) -> list[str]:
        """Nodes that hold tokens and are not running."""
        return [node for node in self.ways if node not in self.running and any(self.edges[e] for e in self.into(node))]

    def waits_for(self, node: str) -> set[str]:
        active = {*self.running, *self.waiting()} - {node}
        empty = [edge for edge in self.into(node) if not self.edges[edge]]
        return {other for other in active if any(self.feeds(other, edge) for edge in empty)}

    def enable(self) -> None:
        """Start every node that may run, and by the rule of circles those that only wait for one another."""
        while True:
            waiting = self.waiting()
            ready = [node for node in waiting if not self.waits_for(node)]
            if not ready:
                ready = self.first_of_circles(waiting)
            if not ready:
                return
            for node in ready:
                self.fire(node)

    def first_of_circles(self, waiting: list[str]) -> list[str]:
        waits = {node: self.waits_for(node) for node in waiting}
        held: set[str] = set()
        while more := {n for n in waiting if n not in held and waits[n] & (held | set(self.running))}:
            held |= more
        free = [node for node in waiting if node not in held]

        among = {node: sorted(waits[node]) for node in free}  # what is not held waits for nothing that is
        reached = {node: after(among, node) for node in free}
        bottom = [node for node in free if all(node in reached[other] for other in reached[node])]
        self.circles += bool(bottom)
        return [min(bottom, key=self.forward.index)] if bottom else []

    def fire(self, node: str) -> None:
        taken = {edge[0]: self.edges[edge].pop(0) for edge in self.into(node) if self.edges[edge]}
        nth = 1 + sum(firing.node == node for firing in self.firings.values())
        parts = [token.past for token in taken.values()]
        depth = max(token.depth for token in taken.values())
        if nth > 1:
            before = self.firings[(node, str(nth - 1))]
            parts.append(before.past | {before.point})
            depth = max(depth, before.depth)
        reentered = any(source in self.body(node) for source in taken)
        firing = Firing(node, nth, depth + 1, frozenset().union(*parts), reentered, tuple(parts))
        self.firings[firing.point] = self.running[node] = firing
        if firing.depth > self.graph.max_iterations:
            firing.error = NodeFailure("MAX_ITERATIONS_EXCEEDED", "too deep")

    def body(self, node: str) -> set[str]:
        """The nodes a loop node dominates on a path from its `entry` back to it."""
        if self.graph.node(node).type != "loop":
            return set()
        without: set[str] = set()
        todo = [self.spec["entry"]]
        while todo:  # what the entry reaches without the loop node, the loop does not dominate
            name = todo.pop()
            if name != node and name not in without:
                without.add(name)
                todo += self.ways[name]
        inside: set[str] = set()
        todo = [self.config(node).entry]
        while todo:
            name = todo.pop()
            if name not in inside | {node, "END"}:
                inside.add(name)
                todo += self.ways[name]
        return {name for name in inside - without if any(self.feeds(name, edge) for edge in self.into(node))}

    def advance(self, firing: Firing) -> None:
        """One step: it is done, it fails, or it gets the answer to what it asks."""
        node = self.graph.node(firing.node)
        try:
            step = NODE_TYPES[node.type].step(node, View(self, firing), tuple(firing.answers))
        except NodeFailure as failure:
            self.fail(firing, failure)
            return
        match step:
            case CallModel():
                answer = self.world.model(firing.path, step)
                if isinstance(answer, ModelAnswer):
                    firing.answers.append(answer)
                else:
                    self.fail(firing, NodeFailure(answer["code"], answer["message"], failure_class=answer["class"]))
            case AskApproval():
                decision = self.world.person(firing.path, step.round, step.allowed_decisions)
                firing.silent = decision is None
                firing.answers += [decision] if decision else []
            case Done():
                self.finish(firing, step)

    def fail(self, firing: Firing, failure: NodeFailure) -> None:
        """The run ends, or goes on along the declared edges or to the targets of `on_error`."""
        node = self.spec["nodes"][self.declared_at[firing.node]]
        if node.get("config", {}).get("on_error", "fail") == "fail":
            firing.error = failure
            return
        firing.failed = failure
        targets = error_targets_of(node)
        self.finish(firing, Done(targets=None if targets is None else tuple(targets)))

    def finish(self, firing: Firing, done: Done) -> None:
        firing.done = done
        self.finished.append(firing)
        del self.running[firing.node]
        saw = self.seen_write(firing.past)
        past = firing.past | {firing.point}
        if done.current is not MISSING:
            self.seen[firing.point] = saw
        targets = self.declared[firing.node] if done.targets is None else list(done.targets)
        firing.selected = tuple(dict.fromkeys(targets or ["END"]))
        for target in firing.selected:
            branch: Point = (*firing.point, target)
            if target in done.inputs:
                self.seen[branch] = saw
            token = Token(past | {branch} if target in done.inputs else past, firing.depth)
            (self.ended if target == "END" else self.edges[(firing.node, target)]).append(token)

    # ---- section 3: state

    def config(self, node: str) -> Any:
        return self.graph.node(node).config

    def order(self, past: Past) -> list[Firing]:
        """The firings of a past that are done, in the order in which their contributions are folded."""
        found = [self.firings[point] for point in past if len(point) == 2]
        return sorted(found, key=lambda firing: (firing.depth, self.declared_at[firing.node], firing.nth))

    def state(self, past: Past) -> Any:
        given = self.run_input if isinstance(self.run_input, dict) else {}
        state: Any = {key: value for key, value in given.items() if key not in self.gate_keys()}
        for firing in self.order(past):
            assert firing.done is not None
            for write in firing.done.writes:
                key, reducer = write.path[0], self.graph.reducers.get(write.path[0], "")
                if write.op == "delete":
                    state = statepath.remove(state, write.path)
                elif write.op == "replace" or not reducer:
                    state = statepath.put(state, write.path, write.value, force=True)
                else:
                    assert len(write.path) == 1, write
                    state = {**state, key: reducers.fold(reducer, state.get(key, MISSING), write.value)}
        return state

    def gate_keys(self) -> set[str]:
        """What only a gate may write: in the input it is not trusted."""
        gates = [node for node in self.graph.nodes if node.type == "human_approval"]
        return {gate.config.output_key or gate.id for gate in gates}

    def outputs(self, past: Past) -> dict[str, Any]:
        """Every node's latest output: a node's firings follow one another, so the last in order is the latest."""
        done = [(firing.node, firing.done) for firing in self.order(past) if firing.done]
        return {node: step.output for node, step in done if step.output is not MISSING}

    def failures(self, past: Past) -> dict[str, Any]:
        """The nodes whose latest firing failed."""
        latest = {firing.node: firing.failed for firing in self.order(past)}
        return {node: {"code": why.code, "message": why.message} for node, why in latest.items() if why}

    def output_writers(self, node: str, past: Past) -> list[Point]:
        found = [firing for firing in self.order(past) if firing.node == node and firing.done]
        return [firing.point for firing in found if firing.done and firing.done.output is not MISSING]

    def path_writers(self, path: tuple[str, ...], past: Past) -> list[Point]:
        """Who wrote at, above or below a path."""
        found = []
        for firing in self.order(past):
            paths = [write.path for write in firing.done.writes] if firing.done else []
            if any(p[: len(path)] == path[: len(p)] for p in paths):
                found.append(firing.point)
        return found

    def in_or_behind_cycle(self, node: str) -> bool:
        circling = [name for name in self.ways if name in after(self.ways, name)]
        return any(name == node or node in after(self.ways, name) for name in circling)

    def past_of(self, write: Point) -> Past:
        """What came before a write: for a branch's own value its firing too."""
        firing = self.firings[write[:2]]
        return firing.past | {firing.point} if len(write) == 3 else firing.past

    def seen_write(self, past: Past) -> Point:
        """The write of the current value that all others descend from, or the nearest one they have in common."""
        writes = [point for point in past if point in self.seen]
        newest = [w for w in writes if not any(w in self.past_of(other) for other in writes)]
        if not newest:
            return START
        chains = []
        for write in newest:
            chain = [write]
            while chain[-1] != START:
                chain.append(self.seen[chain[-1]])
            chains.append(chain)
        return next(write for write in chains[0] if all(write in chain for chain in chains))

    def current_of(self, write: Point) -> Any:
        if write == START:
            return self.run_input
        done = self.firings[write[:2]].done
        assert done is not None
        return done.inputs[write[2]] if len(write) == 3 else done.current

    # ---- the end

    def final_state(self) -> Any:
        """What all tokens that ended have written together, without the engine's own count of rounds."""
        state = self.state(frozenset().union(*(token.past for token in self.ended)))
        return {key: value for key, value in state.items() if key != "loops"}

    def conflicts(self, parts: Sequence[Past]) -> set[tuple[str, str]]:
        """(earlier, later) firings with concurrent writes in conflict that no one of `parts` holds together."""
        union = self.order(frozenset().union(*parts))
        return {
            (one.path, other.path)
            for index, one in enumerate(union)
            for other in union[index + 1 :]
            if one.point not in other.past
            and other.point not in one.past
            and not any({one.point, other.point} <= part for part in parts)
            and self.conflict(one, other)
        }

    def conflict(self, one: Firing, other: Firing) -> bool:
        """One's path is a prefix of the other's and there is no reducer, or one overwrites what a reducer gathers."""
        assert one.done is not None
        assert other.done is not None
        return any(
            a.path[: len(b.path)] == b.path[: len(a.path)]
            and (a.path[0] not in self.graph.reducers or {a.op, b.op} & {"replace", "delete"})
            for a in one.done.writes
            for b in other.done.writes
        )

    def errors(self) -> set[str]:
        return {f"{f.path} {f.error.code}" for f in self.firings.values() if f.error is not None}
