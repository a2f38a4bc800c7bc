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
    forked_from: JsonObject = field(default_factory=dict)
    """{run_id, seq} of a run that begins with another's events, up to and with that one."""


@dataclass(frozen=True, slots=True)
class RunForked(Fact):
    """What stands before this are the events of the run `run_id` up to its event `last`; from here on the run's are
    its own. It was forked before the firing `before` ("" = at that event), by `by`, via `via`.

    `put` are keys of the state that hold these values from here on, `gone` those that are no more: of the run's state,
    or of that of the open `frame` (``map#1[2]``). `models` are what nodes ask from here on, by id, `model` what those
    do that name none; `outputs` what nodes, by id or path of a firing, say next without being asked. `budgets` and
    `policy` are as in `RunAccepted`. `asks` are the questions that people are asked before anything goes on, as
    `core.forks.Question`. `version` is the graph version in which the events before this were recorded, where it is
    another.
    """

    type: ClassVar[str] = "run_forked"
    run_id: str
    last: int
    before: str = ""
    put: JsonObject = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    models: JsonObject = field(default_factory=dict)
    model: str = ""
    outputs: JsonObject = field(default_factory=dict)
    version: str = ""
    budgets: JsonObject = field(default_factory=dict)
    policy: JsonObject = field(default_factory=dict)
    asks: tuple[JsonObject, ...] = ()
    by: str = ""
    via: str = ""
    frame: str = ""


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
