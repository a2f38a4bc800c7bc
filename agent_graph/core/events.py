"""The facts a run is made of; the event log is the run, and nothing else is.

Every fact names what it is about by paths (``draft#1`` = first firing of node ``draft`` in the root frame), never by
memory address or clock. `Event` puts a fact in its place in the log. A fact's JSON form is its fields plus ``type``;
fields that hold their default are left out, so a later optional field changes no byte of what is stored.
"""

from __future__ import annotations

from dataclasses import MISSING as _NO_DEFAULT
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

from agent_graph.core.jsonvalue import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Fact:
    """What all facts share."""

    type: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class RunAccepted(Fact):
    """`limits` are those a step applies, where they differ from the defaults (`limits.recorded`)."""

    type: ClassVar[str] = "run_accepted"
    run_id: str
    graph_id: str
    graph_version: str
    input: JsonValue
    thread_id: str = ""
    model: str = ""
    started_by: str = ""
    limits: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunStarted(Fact):
    """A driver took the run up for the first time."""

    type: ClassVar[str] = "run_started"


@dataclass(frozen=True, slots=True)
class RunInterrupted(Fact):
    """Nobody drives the run until it is resumed."""

    type: ClassVar[str] = "run_interrupted"
    reason: str
    error: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunResumed(Fact):
    """A driver took the run up again."""

    type: ClassVar[str] = "run_resumed"


@dataclass(frozen=True, slots=True)
class RunCancelRequested(Fact):
    """Somebody wants the run to end."""

    type: ClassVar[str] = "run_cancel_requested"
    reason: str


@dataclass(frozen=True, slots=True)
class RunCompleted(Fact):
    """Nothing was left to do, and the result was written."""

    type: ClassVar[str] = "run_completed"


@dataclass(frozen=True, slots=True)
class RunFailed(Fact):
    """`error` is {code, message, node_id?, node_path?, details?}."""

    type: ClassVar[str] = "run_failed"
    error: JsonObject


@dataclass(frozen=True, slots=True)
class RunCancelled(Fact):
    """The run ended because somebody wanted it to."""

    type: ClassVar[str] = "run_cancelled"
    reason: str


@dataclass(frozen=True, slots=True)
class NodeStarted(Fact):
    """`model` is the fallback that is asked, "" the node's own."""

    type: ClassVar[str] = "node_started"
    firing: str
    attempt: int = 1
    model: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswered(Fact):
    """`answer` is the JSON form of `effects.ModelAnswer`."""

    type: ClassVar[str] = "model_answered"
    firing: str
    answer: JsonObject
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class NodeFinished(Fact):
    """A firing is done: what it wrote and where its tokens go.

    `writes` is a list of [op, path segments..., value?] (`effects.Write`), `output` and `current` are one-element
    lists when present (so that null can be told from nothing), `targets` the chosen ones of a choosing node, `inputs`
    the current value a static branch starts with, by target.
    """

    type: ClassVar[str] = "node_finished"
    firing: str
    writes: tuple[JsonValue, ...] = ()
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
class TimerFired(Fact):
    """What a firing waited for by the clock is over."""

    type: ClassVar[str] = "timer_fired"
    firing: str


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
class FrameFailed(Fact):
    """A failure reached a frame; what runs in it is cancelled."""

    type: ClassVar[str] = "frame_failed"
    error: JsonObject
    frame: str = ""


@dataclass(frozen=True, slots=True)
class FiringCancelled(Fact):
    """A firing was ended before it was done."""

    type: ClassVar[str] = "firing_cancelled"
    firing: str
    reason: str


@dataclass(frozen=True, slots=True)
class ApprovalOpened(Fact):
    """A gate asks; `expiry_ms` counts from this event's `at_ms`."""

    type: ClassVar[str] = "approval_opened"
    firing: str
    approval_id: str
    round: int
    prompt: str
    subject: JsonValue
    subject_digest: str
    audience: tuple[str, ...]
    allowed_decisions: tuple[str, ...]
    expiry_ms: int
    quorum: int = 1
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalVoted(Fact):
    """`vote` is {decision, decision_note, decided_by, via, principal?}; its time is the event's."""

    type: ClassVar[str] = "approval_voted"
    firing: str
    approval_id: str
    vote: JsonObject


@dataclass(frozen=True, slots=True)
class ApprovalDecided(Fact):
    """A gate got its answer."""

    type: ClassVar[str] = "approval_decided"
    firing: str
    approval_id: str
    decision: str
    note: str
    by: str
    via: str


@dataclass(frozen=True, slots=True)
class ApprovalExpired(Fact):
    """A gate's time was over before anybody decided."""

    type: ClassVar[str] = "approval_expired"
    firing: str
    approval_id: str


@dataclass(frozen=True, slots=True)
class ApprovalWithdrawn(Fact):
    """A gate was closed because its run ended."""

    type: ClassVar[str] = "approval_withdrawn"
    firing: str
    approval_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Warned(Fact):
    """Something a person should see; nothing depends on it."""

    type: ClassVar[str] = "warning"
    firing: str
    code: str
    message: str
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """A fact in its place: `seq` counts from 0 within the run, `at_ms` is milliseconds since 1970 UTC."""

    seq: int
    at_ms: int
    fact: Fact


FactType: TypeAlias = type[Fact]
FACTS: dict[str, FactType] = {
    cls.type: cls
    for cls in (
        RunAccepted, RunStarted, RunInterrupted, RunResumed, RunCancelRequested, RunCompleted, RunFailed, RunCancelled,
        NodeStarted, ModelAnswered, NodeFinished, NodeFailed, NodeRetried, TimerFired, RouteTaken, LoopExhausted,
        WriteConflict, FrameFailed, FiringCancelled, ApprovalOpened, ApprovalVoted, ApprovalDecided, ApprovalExpired,
        ApprovalWithdrawn, Warned,
    )
}  # fmt: skip


def _layout(cls: FactType) -> tuple[tuple[str, Any, bool], ...]:
    rows = []
    for f in fields(cls):
        default: Any = f.default
        factory: Any = f.default_factory
        if default is _NO_DEFAULT and factory is not _NO_DEFAULT:
            default = factory()
        rows.append((f.name, default, isinstance(default, tuple) or "tuple" in str(f.type)))
    return tuple(rows)


_LAYOUTS = {cls: _layout(cls) for cls in FACTS.values()}
_PLACE = frozenset({"type", "seq", "at_ms", "prev"})
_NAMES = {cls: _PLACE.union(name for name, _, _ in layout) for cls, layout in _LAYOUTS.items()}


def to_json(fact: Fact) -> JsonObject:
    """The JSON object of `fact`: its fields that differ from their default, and ``type``."""
    body: dict[str, Any] = {"type": fact.type}
    for name, default, _ in _LAYOUTS[type(fact)]:
        value = getattr(fact, name)
        if value is not default and (default is _NO_DEFAULT or type(value) is not type(default) or value != default):
            body[name] = value
    return body


def from_json(body: JsonObject) -> Fact:
    """The fact of a stored JSON object, beside which its place in the log may stand.

    KeyError for a type or field this program does not know, TypeError when a field is missing.
    """
    cls = FACTS[str(body["type"])]
    arguments: dict[str, Any] = {}
    if unknown := body.keys() - _NAMES[cls]:
        raise KeyError(", ".join(sorted(unknown)))
    for name, _, is_tuple in _LAYOUTS[cls]:
        if name in body:
            value = body[name]
            arguments[name] = tuple(value) if is_tuple and isinstance(value, list) else value
    return cls(**arguments)
