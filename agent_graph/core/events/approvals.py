"""Facts about a gate."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class GatePlaced(Fact):
    """From here on every firing of `node` that has not begun asks a person first; `by` says who wanted that."""

    type: ClassVar[str] = "gate_placed"
    node: str
    prompt: str
    expiry_ms: int
    audience: tuple[str, ...] = ()
    allowed_decisions: tuple[str, ...] = ("approve", "reject")
    by: str = ""
    via: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalOpened(Fact):
    """A gate asks; `expiry_ms` counts from this event's `at_ms`, `remind_ms` back from its end (0 = no reminder).

    An edited subject has to fit `subject_schema`, if that says anything. Without `self_approval` whoever started the
    run may not decide."""

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
    self_approval: bool = True
    remind_ms: int = 0
    subject_schema: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalVoted(Fact):
    """`vote` is {decision, decision_note, decided_by, via, subject_digest, principal?, on_behalf_of?, patch?}; its time
    is the event's. `subject_digest` is of what was voted on, after the `patch` of an edit; with an edit `subject` is
    that value itself, and from here on what the gate asks about."""

    type: ClassVar[str] = "approval_voted"
    firing: str
    approval_id: str
    vote: JsonObject
    subject: JsonValue = None


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
class ApprovalReminded(Fact):
    """A gate's time is nearly over, and nobody has decided."""

    type: ClassVar[str] = "approval_reminded"
    firing: str
    approval_id: str


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
