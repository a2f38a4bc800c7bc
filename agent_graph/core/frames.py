"""A frame: tokens on edges, the firings they enable and the state they share; decides nothing about what nodes do.

Engine.md 2, the token rule: a node runs when at least one incoming edge holds a token and every incoming edge either
holds one or can no longer receive one. Tokens are taken here, at the event that enables the node. Work per event is
O(out-degree + nodes it can release): a waiting node is looked at again only when it gets a token or when the one
active node it is known to wait for (its *witness*) is through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

from agent_graph.core import early
from agent_graph.core.circles import first_of_circle
from agent_graph.core.contributions import Conflict, Writer, slot_of
from agent_graph.core.effects import MISSING, Done, MaybeJson, Missing, Path, Write
from agent_graph.core.firing import Firing, Lost, Part, Regions, Token, merged
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.lanes import Turn, is_each, next_turn
from agent_graph.core.merge import State
from agent_graph.core.sending import only_way, send
from agent_graph.core.topology import ENTRY, Edge
from agent_graph.core.weights import Slot


class Frame:
    """One of a run's tree of frames: the root, or one that a firing of another frame, its owner, has opened.

    `path` is the beginning of the paths of its firings: "" for the root, ``map#2[3]/`` for an item of ``map#2``.
    """

    __slots__ = (
        "active", "blocked_by", "depths", "enabled", "ended", "ended_at", "failing", "failure", "full", "given",
        "graph", "inside", "item", "join_seen", "last", "lost", "nth", "owner", "part", "path", "regions",
        "run_input", "running", "running_set", "soft", "state", "terminating", "tokens", "watched",
    )  # fmt: skip

    def __init__(
        self, graph: Graph, path: str = "", *, run_input: JsonValue = None, owner: Firing | None = None
    ) -> None:
        self.graph = graph
        self.path = path
        self.run_input = run_input
        """What ``{run_input}`` stands for in it."""
        self.owner = owner
        """The firing that opened it; it runs in the frame around this one. None for the root."""
        self.item = 0
        """Its place among the frames of its owner."""
        self.inside = -1
        """The nodes it runs, all unless it is a region of its graph: a token that leaves these ends."""
        self.failure: JsonObject | None = None
        """The first failure that reached it: it is about to fail."""
        self.lost: dict[tuple[int, int], Lost] = {}
        self.failing = False
        """The log says that it fails."""
        self.state = State(graph.reducers)
        self.tokens: dict[int, deque[Token]] = {}
        self.full: dict[int, set[int]] = {}
        """Waiting nodes: the in-edges that hold a token."""
        self.running: dict[int, Firing] = {}
        self.running_set = 0
        self.active = 0
        """Bit set of nodes that run or wait with tokens."""
        self.blocked_by: dict[int, set[int]] = {}
        """Witness -> the waiting nodes to look at again when it is through."""
        self.soft: set[int] = set()
        """Waiting nodes whose witness does not run: a circle can only be among these."""
        self.watched: dict[int, int] = {}
        """By waiting node, which of its in-edges its witness can feed: with a thousand of them, not to look at all."""
        self.given: dict[int, Token] = {}
        """Tokens on a virtual edge, by node: it is no edge of the node (engine.md 6)."""
        self.nth: dict[int, int] = {}
        self.depths: dict[int, int] = {}
        """By lane, the depth of its latest firing: it counts for that of the next one."""
        self.last: dict[int, Token] = {}
        """By lane, the token its latest firing made, which belongs to the past of the next one; none in the base."""
        self.join_seen: dict[int, dict[str, int]] = {}
        self.ended: list[Token] = []
        self.ended_at: dict[int, int] = {}
        """By node at which tokens ended, the depth of the latest firing that did; one alone that reached END_RUN."""
        self.terminating = False
        """A token has reached END_RUN: nothing is enabled any more, and what runs is to be cancelled."""
        self.enabled: list[Firing] = []
        """Firings enabled since somebody last took this list."""
        self.part: Part | None = None
        """What makes it a region of another frame, whose state it shares."""
        self.regions = Regions()

    @property
    def around(self) -> Frame | None:
        """Of a region: the frame it is in."""
        return None if self.part is None else self.part.around

    # -- tokens ----------------------------------------------------------------------------------------------------

    def enter(self, edge: int = 0) -> None:
        """Put the first token on `edge`, which leads to the entry."""
        self.settle([self.put(edge, Token(0, (), 0))])

    def finish(self, firing: Firing, done: Done, *, failed: bool = False) -> None:
        """A firing is done: add its contributions, put its tokens, enable what can run now."""
        state, node = self.state, firing.node
        writes = self.written(firing, done)
        if self._alone(firing) and not failed and (edge := only_way(self, firing, done)) is not None:
            self._go_on(firing, edge, writes, done.current)
            return
        past, tips = firing.past, firing.tips
        writes_current = done.current is not MISSING
        if writes or writes_current:
            saw = state.seen(tips) if writes_current else -1
            writer = Writer(node, self._order(firing), firing.path, firing.past, saw, done.current)
            bit = state.add(writer, writes)
            past |= bit
            if writes_current:
                tips = (state.next - 1,)
        token = Token(past, tips, firing.depth)
        by_target = {target: self._branch(firing, token, value) for target, value in done.inputs.items()}
        self.leave(node)
        self.depths[firing.lane] = firing.depth
        self.last[firing.lane] = token  # without what branches start with: that is each branch's own until they meet
        home, dirty = early.home(self, node, past=token.past)
        before = early.arrived(home) if failed else set()
        dirty += send(home, firing, done.targets, token, by_target=by_target)
        if failed:  # its token does not count towards those a join waits for
            early.forget(home, but=before)
        if not early.outermost(home).terminating:
            home.settle(dirty)
            if home.part is not None:
                early.look(home)

    def _alone(self, firing: Firing) -> bool:
        """There is one token, this firing has it, and it saw all that was ever written."""
        elsewhere = self.full or self.given or self.lost or self.regions.open or self.part is not None
        return self.active == 1 << firing.node and self.state.level and not (elsewhere or self.terminating)

    def _go_on(self, firing: Firing, edge: Edge, writes: Sequence[Write], current: MaybeJson) -> None:
        """What `finish` comes to where the token goes on alone: its edge leads to what fires next, nobody waits."""
        node, target = firing.node, edge.target
        self.leave(node)
        self.blocked_by.pop(node, None)
        self.depths[firing.lane] = firing.depth
        self.state.absorb(node, writes, current)
        self.ended.clear()
        self.last.clear()
        nth = self.nth[target] = self.nth.get(target, 0) + 1
        depth = max(firing.depth, self.depths.get(target, 0)) + 1
        reentered = bool(self.graph.topology.bodies.get(target, 0) >> node & 1)
        path = f"{self.path}{self.graph.nodes[target].id}#{nth}"
        self._begin(Firing(self, target, path, nth, depth, 0, (), reentered, target))

    def _order(self, firing: Firing) -> tuple[int, int, int]:
        """Where its writes stand among those of the frame."""
        return firing.depth, firing.node, early.rank(self, firing)

    def written(self, firing: Firing, done: Done) -> Sequence[Write]:
        """What a firing contributes, its output in the engine's books included."""
        if isinstance(done.output, Missing):
            return done.writes
        place = ("outputs", self.graph.nodes[firing.node].id)
        return [*done.writes, Write("set", place, done.output)]

    def drop(self, firing: Firing) -> None:
        """A firing failed or was cancelled: it leaves no tokens and no writes."""
        self.leave(firing.node)

    def failed(self, node: int, past: int) -> MaybeJson:
        """What ``errors.<node>`` holds as seen from `past`: the node's latest firing failed, and the run went on."""
        return self.state.read(("errors", self.graph.nodes[node].id), past)

    def _branch(self, firing: Firing, token: Token, value: object) -> Token:
        state = self.state
        writer = Writer(firing.node, self._order(firing), firing.path, token.past, state.seen(token.tips), value)  # type: ignore[arg-type]  # JSON by construction
        bit = state.add(writer, ())
        return Token(token.past | bit, (state.next - 1,), token.depth)

    def put(self, edge: int, token: Token) -> int:
        """Put a token on an edge; the node it leads to."""
        target = self.graph.topology.edges[edge].target
        if self.part is not None and target == self.part.region.exit:
            self.part.arrived.setdefault(edge, token)
            return target
        self.tokens.setdefault(edge, deque()).append(token)
        self.full.setdefault(target, set()).add(edge)
        self.active |= 1 << target
        return target

    def leave(self, node: int, *, stood: bool = False) -> None:
        """A node runs no longer, or does not stand for a region any more (`stood`)."""
        if not stood:
            del self.running[node]
        self.running_set &= ~(1 << node)
        if node not in self.full:
            self.active &= ~(1 << node)

    # -- the rule --------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Something runs in it, regions included."""
        return bool(self.running or self.regions.open)

    def settle(self, dirty: Iterable[int]) -> None:
        """Enable every node that may run now; when none may, the first node of a circle; until nothing changes."""
        todo = [*{node for node in dirty if node in self.full}]
        if len(todo) > 1:
            todo.sort(key=self.graph.topology.forward.__getitem__)
        while True:
            for node in todo:
                if node not in self.running and self._may_run(node):
                    self._enable(node)
            if not self.soft:
                return
            chosen = first_of_circle(self)
            if chosen is None:
                return
            self._enable(chosen)
            todo = []

    def _may_run(self, node: int) -> bool:
        self.soft.discard(node)
        if len(self.full[node]) == len(self.graph.topology.in_edges[node]) or is_each(self.graph, node):
            return True
        found = self._running_blockers(node)
        if not found:
            found = self.blockers(node)
            if not found:
                return True
            self.soft.add(node)
        self.blocked_by.setdefault((found & -found).bit_length() - 1, set()).add(node)
        return False

    def _running_blockers(self, node: int) -> int:
        """Some running nodes that can still put a token on an empty in-edge; the search goes on where it ended."""
        topology, full = self.graph.topology, self.full[node]
        in_edges = topology.in_edges[node]
        start = self.watched.get(node, 0)
        for place in chain(range(start, len(in_edges)), range(start)):
            edge = in_edges[place]
            found = 0 if edge in full else topology.feeders(edge) & self.running_set
            if found:
                self.watched[node] = place
                return found
        return 0

    def blockers(self, node: int) -> int:
        """The active nodes elsewhere that can still put a token on an empty in-edge of a waiting node."""
        topology, full = self.graph.topology, self.full[node]
        found = 0
        for edge in topology.in_edges[node]:
            if edge not in full:
                found |= topology.feeders(edge)
        return found & self.active & ~(1 << node)

    def _enable(self, node: int) -> None:
        """Take one token from each in-edge that holds one; the firing's past and inputs are fixed from here on."""
        topology = self.graph.topology
        taken: list[Token] = []
        body = topology.bodies.get(node, 0)
        reentered = False
        full = self.full[node]
        turn = next_turn(self, node)
        for edge in turn.edges:
            queue = self.tokens[edge]
            taken.append(queue.popleft())
            if body:
                source = topology.edges[edge].source
                reentered = reentered or (source != ENTRY and bool(body >> source & 1))
            if not queue:
                del self.tokens[edge]
                full.discard(edge)
        if not full:
            del self.full[node]
        if node in self.given:
            taken.append(self.given.pop(node))
        self.soft.discard(node)
        self.fire(node, taken, turn, reentered=reentered)

    def fire(self, node: int, taken: list[Token], turn: Turn, *, reentered: bool = False) -> Firing:
        """A firing with these tokens."""
        state, (_, lane, nth, name) = self.state, turn
        conflicts: tuple[Conflict, ...] = ()
        if lane in self.last:
            taken.append(self.last[lane])
        past, tips, depth = taken[0]
        if len(taken) > 1:
            for token in taken[1:]:
                past |= token.past
                depth = max(depth, token.depth)
            tips = state.merge_tips(tip for token in taken for tip in token.tips)
            conflicts = state.conflicts([token.past for token in taken])
        alone = not (self.active & ~(1 << node) or node in self.full or self.part is not None or self.regions.open)
        if alone and past == state.everything():
            past, tips = self._compact(tips)
        path = f"{self.path}{self.graph.nodes[node].id}#{name}"
        depth = max(depth, self.depths.get(lane, 0)) + 1
        firing = Firing(self, node, path, nth, depth, past, tips, reentered, lane, conflicts=conflicts)
        self._begin(firing)
        return firing

    def _begin(self, firing: Firing) -> None:
        node = firing.node
        self.running_set |= 1 << node
        self.active |= 1 << node
        if self.graph.nodes[node].type == "join" and self.graph.topology.behind_cycle >> node & 1:
            self._remember_inputs(firing)
        self.running[node] = firing
        self.enabled.append(firing)

    def _compact(self, tips: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """One token holds all there is: make it the base, so that memory does not grow with rounds."""
        self.state.compact(tips)
        self.ended.clear()
        self.last.clear()
        return 0, ()

    def _remember_inputs(self, firing: Firing) -> None:
        seen = {}
        for name in self.graph.nodes[firing.node].config.inputs:
            who = self.state.last_writer(*self.input_place(name, firing.past), firing.past)
            if who is not None:
                seen[name] = who[0]
        firing.seen_before = self.join_seen.get(firing.node, {})
        self.join_seen[firing.node] = seen

    def input_place(self, name: str, past: int) -> tuple[Slot, Path]:
        """Where a join's input lives: a node id means that node's output, else a state path."""
        if name in self.graph.index:
            return ("outputs", name), ()
        return slot_of(self.state.resolve(name, past))

    # -- from a snapshot -------------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """Find out anew what waiting nodes wait for. None is enabled: those that may run were, or the frame fails."""
        for node in self.full:
            if node not in self.running:
                self._may_run(node)

    # -- the end ---------------------------------------------------------------------------------------------------

    def merged_end(self) -> Token:
        """All tokens that ended, as one."""
        return merged(self.ended, self.state)

    def end_conflicts(self) -> tuple[Conflict, ...]:
        """Conflicts that meet only where everything ends."""
        return self.state.conflicts([token.past for token in self.ended])
