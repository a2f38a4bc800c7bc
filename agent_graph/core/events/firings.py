"""Facts about one firing of a node."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from agent_graph.core.effects import Write
from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class NodeStarted(Fact):
    """`model` is the fallback that is asked, "" the node's own."""

    type: ClassVar[str] = "node_started"
    firing: str
    attempt: int = 1
    model: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswered(Fact):
    """`answer` is the JSON form of `effects.ModelAnswer`; `cache_key` what others may find it by."""

    type: ClassVar[str] = "model_answered"
    firing: str
    answer: JsonObject
    attempt: int = 1
    cache_key: str = ""


@dataclass(frozen=True, slots=True)
class CacheHit(Fact):
    """The answer recorded in the run `run_id` is taken; no model is asked. `answer` as in `ModelAnswered`."""

    type: ClassVar[str] = "cache_hit"
    firing: str
    answer: JsonObject
    cache_key: str
    run_id: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class AnswerGiven(Fact):
    """The output that was handed to a fork for this firing is taken in place of a model's. `answer` as in
    `ModelAnswered`."""

    type: ClassVar[str] = "answer_given"
    firing: str
    answer: JsonObject
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ToolCalled(Fact):
    """A model wants a tool called: recorded before the call is made.

    `name` is what the model calls it, `connection` and `tool` what that is; "" when the node offers no such tool.
    """

    type: ClassVar[str] = "tool_called"
    firing: str
    call_id: str
    name: str
    arguments: JsonValue
    connection: str = ""
    tool: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ToolAnswered(Fact):
    """What came of a tool call. `text` is what the model is told, `characters` its length where it was cut.

    `code` says why a call that `failed` did: it is never empty then.
    """

    type: ClassVar[str] = "tool_answered"
    firing: str
    call_id: str
    text: str
    failed: bool = False
    code: str = ""
    characters: int = 0
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class EvidenceChecked(Fact):
    """What an answer cites was compared with the sources as they were captured; the fields of `EvidenceAnswer`."""

    type: ClassVar[str] = "evidence_checked"
    firing: str
    witnesses: tuple[JsonObject, ...] = ()
    problems: tuple[JsonObject, ...] = ()
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class NodeFinished(Fact):
    """A firing is done: what it wrote and where its tokens go.

    `output` and `current` are one-element lists when present (so that null can be told from nothing), `targets` the
    chosen ones of a choosing node, `inputs` the current value a static branch starts with, by target.
    """

    type: ClassVar[str] = "node_finished"
    firing: str
    writes: tuple[Write, ...] = ()
    output: tuple[JsonValue, ...] = ()
    current: tuple[JsonValue, ...] = ()
    targets: tuple[str, ...] | None = None
    inputs: JsonObject = field(default_factory=dict)
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class NodeFailed(Fact):
    """`error` is {code, message, class, details?}, `targets` where `on_error` leads; None: the frame fails."""

    type: ClassVar[str] = "node_failed"
    firing: str
    error: JsonObject
    attempt: int = 1
    targets: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeRetried(Fact):
    """An attempt failed and another one follows `delay_ms` after this event; `error` as in `NodeFailed`.

    `attempt` is the one that failed, `model` the fallback that is asked next, "" the node's own.
    """

    type: ClassVar[str] = "node_retried"
    firing: str
    error: JsonObject
    delay_ms: int
    attempt: int = 1
    model: str = ""


@dataclass(frozen=True, slots=True)
class MutexGranted(Fact):
    """Of those that stood in line for the mutex `name` this firing holds it now, until it is through."""

    type: ClassVar[str] = "mutex_granted"
    firing: str
    name: str


@dataclass(frozen=True, slots=True)
class JoinClosed(Fact):
    """A join that does not wait for all took the tokens of these nodes; `short`: fewer than it waits for could come."""

    type: ClassVar[str] = "join_closed"
    firing: str
    edges: tuple[str, ...] = ()
    short: bool = False


@dataclass(frozen=True, slots=True)
class RouteTaken(Fact):
    """`transition` names the rule, decision or way: ``rules/0``, ``default``, ``approve``, ``exit`` ..."""

    type: ClassVar[str] = "route_taken"
    firing: str
    transition: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoopExhausted(Fact):
    """A loop came to its bound."""

    type: ClassVar[str] = "loop_exhausted"
    firing: str
    count: int


@dataclass(frozen=True, slots=True)
class WriteConflict(Fact):
    """Two concurrent writes of one path met; `winner` and `losers` are firing paths."""

    type: ClassVar[str] = "write_conflict"
    firing: str
    key: str
    winner: str
    losers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FiringCancelled(Fact):
    """A firing was ended before it was done."""

    type: ClassVar[str] = "firing_cancelled"
    firing: str
    reason: str


@dataclass(frozen=True, slots=True)
class Warned(Fact):
    """Something a person should see; nothing depends on it."""

    type: ClassVar[str] = "warning"
    firing: str
    code: str
    message: str
    details: JsonObject = field(default_factory=dict)
