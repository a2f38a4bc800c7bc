"""What a firing sees, over a plain dict; and the shortest way to a node and its step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_graph.core import statepath
from agent_graph.core.effects import MISSING, Answer, MaybeJson, Path
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes import NODE_TYPES


@dataclass
class Seen:
    """`nodes.base.Values` over `state`; `stale` names join inputs of an earlier round."""

    state: JsonObject = field(default_factory=dict)
    current: JsonValue = "the question"
    run_input: JsonValue = "the question"
    reentered: bool = False
    reducers: dict[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    limits: Limits = DEFAULTS

    def read(self, path: str) -> MaybeJson:
        return statepath.read(self.state, path)

    def resolve(self, path: str) -> Path:
        return statepath.resolve(self.state, path)

    def join_input(self, name: str) -> MaybeJson:
        if name in self.stale:
            return MISSING
        return self.read(f"outputs.{name}" if name in self.nodes else name)

    def reducer(self, key: str) -> str:
        return self.reducers.get(key, "")


def node(type_: str, *, id: str = "n", label: str = "", **config: Any) -> Node:  # noqa: A002
    """A checked node without errors, as a compiled graph holds it."""
    module = NODE_TYPES[type_]
    made = module.Config(**config)
    assert [issue for issue in module.check(id, made) if issue.severity == "error"] == []
    return Node(id, 0, type_, made, module.prepare(made), label)


def step(of: Node, values: Seen, answers: Sequence[Answer] = ()) -> Any:
    return NODE_TYPES[of.type].step(of, values, answers)


def found(type_: str, **config: Any) -> list[tuple[str, str]]:
    """(code, pointer) of every issue of a config; each names the node."""
    module = NODE_TYPES[type_]
    issues: Sequence[Issue] = module.check("n", module.Config(**config))
    assert {issue.node_id for issue in issues} <= {"n"}
    return [(issue.code, issue.pointer) for issue in issues]
