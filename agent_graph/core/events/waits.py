"""Facts about what a firing waits for beside people: the clock, and messages from outside."""

from __future__ import annotations

from typing import ClassVar

from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class TimerFired(Fact):
    """What a firing waited for by the clock is over."""

    type: ClassVar[str] = "timer_fired"
    firing: str
