"""What a node type is: a frozen config, what it may touch and choose, and one pure step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from agent_graph.core.effects import Answer, Done, Effect, MaybeJson, Path
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonValue


class Values(Protocol):
    """What one firing sees: exactly what its causal past wrote."""

    @property
    def current(self) -> JsonValue:
        """The current value (``{input}`` without an `input_key`)."""
        ...

    @property
    def run_input(self) -> JsonValue: ...

    @property
    def reentered(self) -> bool:
        """A token taken came from inside the body of this loop node."""
        ...

    def read(self, path: str) -> MaybeJson:
        """The value at a state path (dotted or JSON Pointer); ``outputs.<node>``, ``errors.<node>``, ``loops.<node>``
        read the engine's own books. An existing flat key that contains dots is found first."""
        ...

    def resolve(self, path: str) -> Path:
        """The segments a write to `path` goes to; an existing flat key that contains dots is one segment."""
        ...

    def join_input(self, name: str) -> MaybeJson:
        """A join's input: a node id means that node's output, else a path. MISSING too when it is stale
        (written before this join's previous firing, engine.md 3) and the join does not allow that."""
        ...

    def reducer(self, key: str) -> str:
        """The reducer of a top-level key, "" when it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A node (or END) a config can choose; `pointer` leads to it from the config."""

    id: str
    pointer: str


@dataclass(frozen=True, slots=True)
class Read:
    """A state path a config reads; `optional` reads may find nothing."""

    path: str
    pointer: str
    optional: bool = False


class NodeType(Protocol):
    """A module of `core.nodes`. Everything here is pure."""

    Config: ClassVar[type]
    """Frozen slotted dataclass: the fields of ``config`` with types and defaults; validated by `core.spec`."""
    CHOOSES: ClassVar[bool]
    """Its targets replace its out-edges (router, loop, static parallel)."""
    UNAVAILABLE: ClassVar[dict[str, str]]
    """Known fields nothing acts on yet, with the reason; a value other than the default is refused."""

    def prepare(self, config: Any) -> Any:
        """Patterns, templates and tables made once; called only when `check` found no error."""
        ...

    def check(self, node_id: str, config: Any) -> Sequence[Issue]:
        """What is wrong with this config alone; pointers are relative to the config."""
        ...

    def targets(self, config: Any) -> Sequence[Target]:
        """What it can choose, in the order of engine.md 2 (rules, default; branches; entry, exit; on_reject, ...)."""
        ...

    def reads(self, config: Any) -> Sequence[Read]: ...

    def writes(self, node_id: str, config: Any) -> Sequence[str]:
        """State paths it can write, as written in the config."""
        ...

    def writes_current(self, config: Any) -> bool:
        """It sets the current value."""
        ...

    def step(self, node: Node, values: Values, answers: Sequence[Answer]) -> Done | Effect:
        """Raises `NodeFailure` when the firing fails."""
        ...
