"""The facts a run is made of; the event log is the run, and nothing else is.

Every fact names what it is about by paths (``draft#1`` = first firing of node ``draft`` in the root frame), never by
memory address or clock. `Event` puts a fact in its place in the log. A fact's JSON form is its fields plus ``type``;
fields that hold their default are left out, so a later optional field changes no byte of what is stored.
"""

from __future__ import annotations

from dataclasses import MISSING as _NO_DEFAULT
from dataclasses import fields
from typing import Any, Final, TypeAlias

from agent_graph.core.effects import Write
from agent_graph.core.events.approvals import (
    ApprovalDecided,
    ApprovalExpired,
    ApprovalOpened,
    ApprovalReminded,
    ApprovalVoted,
    ApprovalWithdrawn,
    GatePlaced,
)
from agent_graph.core.events.base import Fact
from agent_graph.core.events.budgets import BudgetGranted, BudgetRefused, BudgetSettled
from agent_graph.core.events.firings import (
    AnswerGiven,
    CacheHit,
    EvidenceChecked,
    FiringCancelled,
    JoinClosed,
    LoopExhausted,
    ModelAnswered,
    MutexGranted,
    NodeFailed,
    NodeFinished,
    NodeRetried,
    NodeStarted,
    RouteTaken,
    ToolAnswered,
    ToolCalled,
    Warned,
    WriteConflict,
)
from agent_graph.core.events.frames import BranchFailed, FrameFailed, FramesOpened, ItemsClosed
from agent_graph.core.events.runs import (
    RunAccepted,
    RunCancelled,
    RunCancelRequested,
    RunCompleted,
    RunFailed,
    RunForked,
    RunInterrupted,
    RunResumed,
    RunStarted,
)
from agent_graph.core.events.waits import SignalAwaited, SignalReceived, TimerFired, TimerSet
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject

__all__ = [
    "AnswerGiven",
    "ApprovalDecided",
    "ApprovalExpired",
    "ApprovalOpened",
    "ApprovalReminded",
    "ApprovalVoted",
    "ApprovalWithdrawn",
    "BudgetGranted",
    "BudgetRefused",
    "BudgetSettled",
    "BranchFailed",
    "CacheHit",
    "Event",
    "EvidenceChecked",
    "FACTS",
    "Fact",
    "FactType",
    "FiringCancelled",
    "FrameFailed",
    "FramesOpened",
    "GatePlaced",
    "ItemsClosed",
    "JoinClosed",
    "LoopExhausted",
    "ModelAnswered",
    "MutexGranted",
    "NodeFailed",
    "NodeFinished",
    "NodeRetried",
    "NodeStarted",
    "RouteTaken",
    "RunAccepted",
    "RunCancelRequested",
    "RunCancelled",
    "RunCompleted",
    "RunFailed",
    "RunForked",
    "RunInterrupted",
    "RunResumed",
    "RunStarted",
    "SignalAwaited",
    "SignalReceived",
    "TimerFired",
    "TimerSet",
    "ToolAnswered",
    "ToolCalled",
    "Warned",
    "WriteConflict",
    "from_json",
    "to_json",
]


@dataclass(frozen=True, slots=True)
class Event:
    """A fact in its place: `seq` counts from 0 within the run, `at_ms` is milliseconds since 1970 UTC."""

    seq: int
    at_ms: int
    fact: Fact


ENDS: Final = (NodeFinished, NodeFailed)
"""The facts that end a firing."""
FactType: TypeAlias = type[Fact]
FACTS: dict[str, FactType] = {
    cls.type: cls
    for cls in (
        RunAccepted, RunStarted, RunInterrupted, RunResumed, RunCancelRequested, RunCompleted, RunFailed, RunCancelled,
        RunForked, NodeStarted, ModelAnswered, CacheHit, AnswerGiven, ToolCalled, ToolAnswered, EvidenceChecked,
        NodeFinished, NodeFailed, NodeRetried, RouteTaken, LoopExhausted, WriteConflict, FramesOpened, ItemsClosed,
        JoinClosed, BranchFailed, FrameFailed, FiringCancelled, GatePlaced, ApprovalOpened, ApprovalVoted,
        ApprovalReminded, ApprovalDecided, ApprovalExpired, ApprovalWithdrawn, MutexGranted, BudgetGranted,
        BudgetSettled, BudgetRefused, TimerSet, TimerFired, SignalAwaited, SignalReceived, Warned,
    )
}  # fmt: skip


def _layout(cls: FactType) -> tuple[tuple[str, Any, bool], ...]:
    rows = []
    for f in fields(cls):  # type: ignore[arg-type]  # every fact is a dataclass
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
    if isinstance(fact, NodeFinished) and fact.writes:
        body["writes"] = [write.to_json() for write in fact.writes]
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
    if cls is NodeFinished and "writes" in arguments:
        arguments["writes"] = tuple(map(Write.from_json, arguments["writes"]))
    return cls(**arguments)
