"""Facts about what a firing waits for beside people: the clock, and messages from outside."""

from __future__ import annotations

from typing import ClassVar

from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonValue


@dataclass(frozen=True, slots=True)
class TimerSet(Fact):
    """A firing waits for `until_ms` UTC, or, where that is not given, for `delay_ms` after this event."""

    type: ClassVar[str] = "timer_set"
    firing: str
    delay_ms: int = 0
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TimerFired(Fact):
    """What a firing waited for by the clock is over: a pause between attempts, a timer, the time for a message, or
    that of what runs inside it; of a static fork that is through, the time of its branches."""

    type: ClassVar[str] = "timer_fired"
    firing: str


@dataclass(frozen=True, slots=True)
class SignalAwaited(Fact):
    """A firing waits for a message; with `buffer` it takes the oldest one of that name that came before, if any.

    `expiry_ms` counts from this event; None = it waits as long as it takes.
    """

    type: ClassVar[str] = "signal_awaited"
    firing: str
    name: str
    buffer: bool = True
    expiry_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SignalReceived(Fact):
    """A message came. `firing` is the one that had waited for it, "" when it is kept for the next that does."""

    type: ClassVar[str] = "signal_received"
    name: str
    payload: JsonValue
    firing: str = ""
    by: str = ""
    via: str = ""
