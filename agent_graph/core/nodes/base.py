"""What a node type is: a frozen config, what it may touch and choose, and one pure step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

from annotated_types import Ge, Le

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


Milliseconds = Annotated[int, Ge(1), Le(366 * 86_400_000)]
"""A span of time; a year at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """The fields every node type's ``config`` has. Field names and defaults are those of the spec.

    Validated by ``TypeAdapter(Config).validate_json(..., strict=True)``: "3" and true are no integers.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    output_key: str = ""
    """State path of what the node makes; "" = the current value, or nothing where a type makes nothing."""
    input_key: str = ""
    """State path of ``{input}``; "" = the current value."""
    timeout_ms: Milliseconds | None = 120_000
    """Bounds one attempt; a pure step always keeps it."""
    retry: dict[str, Any] | None = None
    on_error: str | dict[str, Any] = "fail"
    requirements: list[str] = field(default_factory=list)
    """Labels such as "REQ-7"; no part of behaviour."""
    executor: Literal["server", "caller"] = "server"
    merge: Literal["round", "each"] = "round"
    mutex: str = ""


UNAVAILABLE_EVERYWHERE: Final = {
    "retry": "nothing retries a node yet; leave `retry` out",
    "on_error": 'a node\'s failure fails the run; only "fail" is available yet',
    "executor": 'nodes are performed by the server; "caller" is not available yet',
    "merge": 'a node fires once per round; "each" is not available yet',
    "mutex": "nothing holds a mutex yet; leave `mutex` out",
}
"""The common fields nothing acts on yet."""


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
