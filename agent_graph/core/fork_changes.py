"""What a fork changes: the state, what nodes say next, which models they ask; checked, and changing nothing yet.

No change stands in for a person: the place where a gate keeps its decision cannot be patched, and only a model's answer
can be handed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from agent_graph.core import statepath
from agent_graph.core.classes import dataclass
from agent_graph.core.contributions import BOOKS
from agent_graph.core.firing import Firing
from agent_graph.core.graph import Graph
from agent_graph.core.guarded import decided_at
from agent_graph.core.issues import suggest
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value, json_equal
from agent_graph.core.nesting import whole
from agent_graph.core.nodes.llm import model_name_wrong
from agent_graph.core.outcome import state
from agent_graph.core.patch import PatchFailed, applied
from agent_graph.core.run import Run
from agent_graph.errors import ForkNotAllowed, InvalidArgument, ReservedKey

GATE = "human_approval"
ASKED = "llm"


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

    @property
    def anything(self) -> bool:
        return bool(self.put or self.gone or self.models or self.outputs or self.model)

    def touches(self, firing: Firing) -> bool:
        """What this firing is asked, or says, is changed."""
        node = firing.declared.id
        own = node in self.models or node in self.outputs or firing.path in self.outputs
        return own or bool(self.model)

    def to_json(self, version: str) -> JsonObject:
        """What people are shown: {patch?, models?, outputs?, model?, graph_version?}."""
        body: JsonObject = {
            "patch": list(self.patch), "models": self.models, "outputs": self.outputs, "model": self.model,
            "graph_version": version,
        }  # fmt: skip
        return {name: value for name, value in body.items() if value}


@dataclass(frozen=True, slots=True)
class Changes:
    """What was asked for: a JSON Patch (RFC 6902) of the state; by node id, or path of a firing, what it says next; by
    node id, the model it asks; the one that nodes ask which name none."""

    patch: tuple[JsonObject, ...] = ()
    outputs: Mapping[str, JsonValue] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    model: str = ""

    def made(self, graph: Graph, run: Run) -> Changed:
        """The changes of `run`, which goes on as a run of `graph`.

        Raises `InvalidArgument` for what does not fit or names no node, `InputTooLarge` and `InputTooDeep` for a state
        beyond the run's limits, `ReservedKey`, and `ForkNotAllowed` for what only a person can say.
        """
        put, gone = self._state(graph, run)
        for name in self.outputs:
            self._asked(graph, name.rpartition("/")[2].partition("#")[0], what="outputs")
        for name, model in self.models.items():
            self._asked(graph, name, what="models")
            if model_name_wrong(model):
                raise InvalidArgument(f"models: {model!r} is no name of a model", argument="models")
        check_value(dict(self.outputs), max_depth=run.limits.json_depth, max_bytes=run.limits.value_bytes)
        other = self.model if self.model != run.model else ""
        return Changed(put, gone, dict(self.models), dict(self.outputs), self.patch, other)

    @staticmethod
    def _asked(graph: Graph, name: str, *, what: str) -> None:
        """Raises unless a node of that id asks a model."""
        nodes = [node for inner in whole(graph) for node in inner.nodes]
        own = [node for node in nodes if node.id == name]
        if any(node.type == GATE for node in own):
            message = f"{what}: {name!r} is a gate, and only a person decides there; fork before it, and it asks"
            raise ForkNotAllowed(message, node_id=name)
        if not any(node.type == ASKED for node in own):
            known = sorted({node.id for node in nodes if node.type == ASKED})
            message = f"{what}: no node that asks a model is {name!r}{suggest(name, known)}"
            raise InvalidArgument(message, argument=what, known=known)

    def _state(self, graph: Graph, run: Run) -> tuple[JsonObject, tuple[str, ...]]:
        """The keys that hold another value, and those that are gone."""
        if not self.patch:
            return {}, ()
        before = state(run)
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
        check_decisions(graph, before, after)
        return put, gone


def check_decisions(graph: Graph, before: JsonObject, after: JsonObject) -> None:
    """Raises `ForkNotAllowed` where a place that holds what people decided would hold another value."""
    for node_id, path in decided_at(graph):
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
