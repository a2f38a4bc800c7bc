"""What one firing sees: exactly what its causal past wrote; read lazily, never written."""

from __future__ import annotations

from agent_graph.core import extents, statepath
from agent_graph.core.contributions import BOOKS
from agent_graph.core.effects import MISSING, MaybeJson, Missing, Path
from agent_graph.core.firing import Firing
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.topology import members


class View:
    """The `nodes.base.Values` of a firing."""

    __slots__ = ("_firing", "_frame", "_limits")

    def __init__(self, firing: Firing, *, limits: Limits = DEFAULTS) -> None:
        self._frame = firing.frame
        self._firing = firing
        self._limits = limits

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def current(self) -> JsonValue:
        return self._frame.state.current(self._firing.tips)

    @property
    def run_input(self) -> JsonValue:
        return self._frame.run_input

    @property
    def reentered(self) -> bool:
        return self._firing.reentered

    def read(self, path: str) -> MaybeJson:
        segments = statepath.split(path)
        if len(segments) == 1 and segments[0] not in BOOKS:  # most paths
            return self._frame.state.read(segments[0], self._firing.past)
        return statepath.read(self._frame.state.root(path, self._firing.past), path)

    def resolve(self, path: str) -> Path:
        return self._frame.state.resolve(path, self._firing.past)

    def join_input(self, name: str) -> MaybeJson:
        found: MaybeJson = MISSING
        if not self._stale(name):
            by_id = name in self._frame.graph.index
            found = self._frame.state.read(("outputs", name), self._firing.past) if by_id else self.read(name)
        return self._collected(name) if found is MISSING and self._frame.graph.extents else found

    def _collected(self, name: str) -> MaybeJson:
        """``{error}`` for what a failed static branch would have left, where its `parallel` collects failures."""
        frame, past = self._frame, self._firing.past
        for fork, branches in frame.graph.extents.items():
            config = frame.graph.nodes[fork].config
            if config.fail_policy != "collect_partial" or config.join != self._firing.declared.id:
                continue
            for _, nodes in branches:
                if self._is_left_by(name, nodes):
                    failed = (frame.failed(node, past) for node in members(self._own(nodes)))
                    return next(({"error": one} for one in failed if not isinstance(one, Missing)), MISSING)
        return MISSING

    def _own(self, nodes: int) -> int:
        """The nodes of a branch without those whose failures a fork inside it puts up with."""
        for _, branches in extents.lenient(self._frame.graph):
            for _, inner in branches:
                nodes &= ~inner if inner != nodes and inner & ~nodes == 0 else -1
        return nodes

    def _is_left_by(self, name: str, nodes: int) -> bool:
        graph = self._frame.graph
        if name in graph.index:
            return bool(nodes >> graph.index[name] & 1)
        among = [graph.nodes[node] for node in members(nodes)]
        written = [path for node in among for path in NODE_TYPES[node.type].writes(node.id, node.config)]
        return any(statepath.overlap(statepath.split(path), statepath.split(name)) for path in written)

    def _stale(self, name: str) -> bool:
        """Of an earlier round: its writer has failed since, or it lies in or behind a cycle and wrote before this
        join's previous firing."""
        frame, firing = self._frame, self._firing
        if firing.declared.config.allow_stale:
            return False
        who = frame.state.last_writer(*frame.input_place(name, firing.past), firing.past)
        if who is None:
            return False
        if frame.failed(who[1], firing.past) is not MISSING:
            return True
        return who[0] == firing.seen_before.get(name) and bool(frame.graph.topology.behind_cycle >> who[1] & 1)

    def reducer(self, key: str) -> str:
        return self._frame.state.reducers.get(key, "")
