"""Facts about a gate."""

from __future__ import annotations

from typing import ClassVar

from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue


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
