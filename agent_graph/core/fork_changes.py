"""What a fork changes: the state, what nodes say next, which models they ask; checked, and changing nothing yet.

No change stands in for a person: the place where a gate keeps its decision cannot be patched, and only a model's answer
can be handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import chain
from typing import Any, Final

from agent_graph.core import statepath
from agent_graph.core.classes import dataclass
from agent_graph.core.contributions import BOOKS
from agent_graph.core.firing import Firing
from agent_graph.core.fork_outputs import Past, check_asked, check_taken
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph
from agent_graph.core.guarded import decided_at
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value, json_equal
from agent_graph.core.nodes.llm import model_name_wrong
from agent_graph.core.patch import PatchFailed, applied
from agent_graph.core.run import Run
from agent_graph.errors import ForkNotAllowed, InvalidArgument, ReservedKey

LISTED: Final = 50
"""Names a refusal or a question lists at most."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Changes that were found possible, as `RunForked` holds them; `patch` is what was asked for."""

    put: JsonObject = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    models: JsonObject = field(default_factory=dict)
    outputs: JsonObject = field(default_factory=dict)
    patch: tuple[JsonObject, ...] = ()
    model: str = ""
    """What nodes ask that name no model, where that is another."""
    frame: str = ""
    """Whose state is changed: the run's, or that of an open frame, as ``map#1[2]``."""

    @property
    def anything(self) -> bool:
        return bool(self.put or self.gone or self.models or self.outputs or self.model)

    def touches(self, firing: Firing) -> bool:
        """What this firing is asked, or says, is changed."""
        node = firing.declared.id
        own = node in self.models or node in self.outputs or firing.path in self.outputs
        return own or bool(self.model)

    def to_json(self, version: str) -> JsonObject:
        """What people are shown: {patch?, frame?, models?, outputs?, model?, graph_version?}."""
        body: JsonObject = {
            "patch": list(self.patch), "frame": self.frame, "models": self.models, "outputs": self.outputs,
            "model": self.model, "graph_version": version,
        }  # fmt: skip
        return {name: value for name, value in body.items() if value}


@dataclass(frozen=True, slots=True)
class Changes:
    """What was asked for: a JSON Patch (RFC 6902) of the state, the run's own or an open `frame`'s; by node id, or path
    of a firing, what it says next; by node id, the model it asks; the one that nodes ask which name none."""

    patch: tuple[JsonObject, ...] = ()
    outputs: Mapping[str, JsonValue] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    frame: str = ""

    def made(self, graph: Graph, run: Run, past: Past) -> Changed:
        """The changes of `run`, which goes on as a run of `graph`; `past` is of the events that led there.

        Raises `InvalidArgument` for what does not fit, names no node or frame, or comes too late, `InputTooLarge` and
        `InputTooDeep` for a state beyond the run's limits, `ReservedKey`, and `ForkNotAllowed` for what only a person
        can say.
        """
        put, gone = self._state(graph, run)
        for name in self.outputs:
            check_asked(graph, node_of(name), what="outputs")
            check_taken(graph, name, past)
        for name, model in self.models.items():
            check_asked(graph, name, what="models")
            if model_name_wrong(model):
                raise InvalidArgument(f"models: {model!r} is no name of a model", argument="models")
        check_value(dict(self.outputs), max_depth=run.limits.json_depth, max_bytes=run.limits.value_bytes)
        other = self.model if self.model != run.model else ""
        frame = self.frame if put or gone else ""
        return Changed(put, gone, dict(self.models), dict(self.outputs), self.patch, other, frame)

    def _state(self, graph: Graph, run: Run) -> tuple[JsonObject, tuple[str, ...]]:
        """The keys that hold another value, and those that are gone."""
        frame = open_frame(run, self.frame)
        if not self.patch:
            if self.frame:
                raise InvalidArgument("frame says whose state patch changes, and there is no patch", argument="frame")
            return {}, ()
        before = state_of(frame)
        try:
            after = applied(before, self.patch, max_bytes=run.limits.state_bytes)
        except PatchFailed as unfit:
            raise InvalidArgument(f"patch: {unfit}", argument="patch") from None
        if not isinstance(after, dict):
            raise InvalidArgument("patch: a state is an object", argument="patch")
        put: JsonObject = {
            key: value for key, value in after.items() if key not in before or not json_equal(value, before[key])
        }
        gone = tuple(key for key in before if key not in after)
        for key in (*put, *gone):
            if key.startswith("__") or key in BOOKS:
                raise ReservedKey(f"the key {key!r} belongs to the engine; use another name", key=key)
        check_value(after, max_depth=run.limits.json_depth, max_bytes=run.limits.state_bytes)
        inner = [one for one in graphs_around(frame) if one is not run.frames[""].graph]
        check_decisions([*inner, graph], before, after)
        return put, gone


def node_of(path: str) -> str:
    """The id of the node a firing's path is about."""
    return path.rpartition("/")[2].partition("#")[0]


def open_frame(run: Run, name: str) -> Frame:
    """The frame of that name, "" being the root. Raises `InvalidArgument` where none with its own state is open."""
    frame = run.frames.get(f"{name}/" if name else "")
    if frame is None or frame.part is not None:
        known = [path[:-1] for path, one in run.frames.items() if path and one.part is None][:LISTED]
        listed = f"there are {', '.join(known)}" if known else "there is only the run's own"
        message = f"frame: none with a state of its own is open as {name!r} at that point; {listed}"
        raise InvalidArgument(message, argument="frame", known=known)
    return frame


def state_of(frame: Frame) -> JsonObject:
    """All that was ever written in a frame."""
    return frame.state.whole(frame.state.everything())


def graphs_around(frame: Frame) -> list[Graph]:
    """The graphs that a frame is in: its own first, the run's last."""
    found = [frame.graph]
    while frame.owner is not None:
        frame = frame.owner.frame
        found.append(frame.graph)
    return list({graph.version: graph for graph in found}.values())


def check_decisions(graphs: Iterable[Graph], before: JsonObject, after: JsonObject) -> None:
    """Raises `ForkNotAllowed` where a place that holds what people decided would hold another value."""
    for node_id, path in chain.from_iterable(map(decided_at, graphs)):
        was, now = statepath.read(before, path), statepath.read(after, path)
        if was is not now and not json_equal(_one(was), _one(now)):
            message = (
                f"at {path!r} stands what people decided at {node_id!r}: no patch says that, not one of an earlier fork"
                " either; fork before it, and it asks"
            )
            raise ForkNotAllowed(message, node_id=node_id, path=path)


def _one(value: Any) -> JsonValue:
    """A value, or that there is none, as something that can be compared."""
    return [value] if isinstance(value, (dict, list, str, int, float, bool)) or value is None else []
