"""Facts about a run as a whole."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class RunAccepted(Fact):
    """`limits` are those a step applies, where they differ from the defaults (`limits.recorded`); `budgets` those
    in force where they are not the graph's own (`budgets.tightened`). `policy` is
    {profile, waived?, bounds?}: what a person started it in spite of, as [{rule, message, node_path?}], and the names
    of the budgets which the profile set. `started_by` is what the client calls itself, `principal` who it was
    authenticated as ("": the local user, and `started_as` is that user's name)."""

    type: ClassVar[str] = "run_accepted"
    run_id: str
    graph_id: str
    graph_version: str
    input: JsonValue
    thread_id: str = ""
    model: str = ""
    started_by: str = ""
    limits: JsonObject = field(default_factory=dict)
    budgets: JsonObject = field(default_factory=dict)
    policy: JsonObject = field(default_factory=dict)
    principal: str = ""
    started_as: str = ""


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
