"""Facts about what a run may use: granted before it is used, settled with what was recorded, or refused."""

from __future__ import annotations

from typing import ClassVar, Literal

from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class BudgetGranted(Fact):
    """A firing may begin (`nodes` 1), or make its next call (`llm_calls` 1) with `tokens` held for it."""

    type: ClassVar[str] = "budget_granted"
    firing: str
    attempt: int = 1
    nodes: int = 0
    llm_calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class BudgetSettled(Fact):
    """What a granted call came to: `tokens` as its host counted them, "unknown" where it did not; then `held` of them
    stay held. `llm_calls` is 0 of a call that reached nobody or that another run had paid for."""

    type: ClassVar[str] = "budget_settled"
    firing: str
    attempt: int = 1
    tokens: int | Literal["unknown"] = "unknown"
    held: int = 0
    llm_calls: int = 1


@dataclass(frozen=True, slots=True)
class BudgetRefused(Fact):
    """What was wanted is not left of the budget `budget`: `used` of `most` was, `wanted` more would be.

    `then` says what follows for the run; `targets` where `goto` leads. `firing` is "" when its time is over.
    """

    type: ClassVar[str] = "budget_refused"
    budget: str
    most: int
    used: int
    wanted: int = 0
    then: Literal["fail", "pause", "goto"] = "fail"
    targets: tuple[str, ...] = ()
    firing: str = ""
    attempt: int = 1
