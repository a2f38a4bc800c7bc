"""What a run may use and what of it is used: bounds read from a spec or a caller, and a ledger; no scheduling here.

A ledger is kept only for a run that has a bound. Tokens are counted three ways, which are never mixed: *spent* (as
hosts counted them), *held* for calls in flight, and *kept* for calls whose host said nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, Final

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel
from agent_graph.core.events import BudgetRefused, BudgetSettled, Fact, from_json, to_json
from agent_graph.core.issues import suggest
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.errors import InvalidBudgets

LLM_CALLS: Final = "max_llm_calls"
TOKENS: Final = "max_tokens"
NODES: Final = "max_nodes"
WALL_CLOCK: Final = "max_wall_clock_ms"
MEANING: Final = {
    LLM_CALLS: "calls of models",
    TOKENS: "tokens of prompts and answers",
    NODES: "firings of nodes",
    WALL_CLOCK: "milliseconds from its start on",
}
NAMES: Final = tuple(MEANING)
MOST: Final = 10**15
"""No bound is larger."""
ON_BUDGET: Final = "on_budget"
"""In place of a firing's path: the run itself asks for more, or goes elsewhere."""
BYTES_PER_TOKEN: Final = 3
"""What a prompt's tokens are estimated by; English has about four, other writing fewer."""
ANSWER_TOKENS: Final = 1_024
"""Held for an answer whose node bounds it by no `max_tokens`, as far as so much is left."""


def check(given: JsonValue) -> JsonObject:
    """The bounds a caller gave for a run. Raises `InvalidBudgets`."""
    if not isinstance(given, dict) or not given:
        raise InvalidBudgets(f"budgets are an object with some of {', '.join((*NAMES, ON_BUDGET))}")
    for name, value in given.items():
        if name == ON_BUDGET:
            if value not in ("fail", "pause"):
                message = "on_budget of a run is fail or pause; where else it leads is said in the graph's own budgets"
                raise InvalidBudgets(message, name=name)
        elif name not in NAMES:
            known = suggest(name, (*NAMES, ON_BUDGET)) or f"; there are {', '.join(NAMES)}"
            raise InvalidBudgets(f"there is no budget {name!r}{known}", name=name)
        elif type(value) is not int or not 0 < value <= MOST:
            raise InvalidBudgets(f"{name} is a whole number from 1 to {MOST}", name=name)
    return dict(given)


def tightened(own: Mapping[str, Any], given: Mapping[str, Any]) -> JsonObject:
    """The bounds that hold for a run of a graph with its `own` when a caller gave some: of two the lower one.

    Raises `InvalidBudgets` for a `pause` where the graph itself bounds its runs and does not let anybody raise that.
    """
    bounds: dict[str, Any] = {**own, **given}
    for name in NAMES:
        if name in own and name in given:
            bounds[name] = min(own[name], given[name])
    bounded = any(name in own for name in NAMES)
    if given.get(ON_BUDGET) == "pause" and bounded and own.get(ON_BUDGET, "fail") != "pause":
        message = "the graph's own budgets end its runs: on_budget pause would let somebody raise them"
        raise InvalidBudgets(message, name=ON_BUDGET)
    return bounds


@dataclass(slots=True)
class Ledger:
    """The books of one run. `sizes` are the bounds it was given: what one approval adds; `most` those in force."""

    sizes: dict[str, int]
    most: dict[str, int]
    on_budget: JsonValue = "fail"
    """fail, pause or {goto}."""
    by_policy: dict[str, str] = field(default_factory=dict)
    """By budget that a policy profile set: its name."""
    calls: int = 0
    nodes: int = 0
    spent: int = 0
    kept: int = 0
    unreported: int = 0
    """Calls whose host did not say what they took."""
    held: dict[str, int] = field(default_factory=dict)
    """By firing with a granted call that is not settled yet."""
    entered: set[str] = field(default_factory=set)
    """Firings that were granted and have not started."""
    due: dict[str, BudgetSettled] = field(default_factory=dict)
    """By firing: how its call is to be settled."""
    untold: list[Fact] = field(default_factory=list)
    """What a transfer of the root frame still has to tell."""
    parked: dict[str, None] = field(default_factory=dict)
    """Refused firings that wait for the answer to what the run asks. They hold no place."""
    refused: str = ""
    """The budget that the run asks, or is about to ask, more of."""
    round: int = 0
    """How often it has asked."""
    asked_at_ms: int | None = None
    """When it asked what is not answered yet."""
    deadline_ms: int | None = None
    """When its time is over, milliseconds UTC; None before it starts, and when nothing bounds its time."""
    transferred: bool = False

    @property
    def stands_still(self) -> bool:
        """Its time is over and somebody is asked for more: nothing is begun meanwhile."""
        return self.refused == WALL_CLOCK

    def used(self, name: str) -> int:
        """How much of a budget is used or held."""
        if name == TOKENS:
            return self.spent + self.kept + sum(self.held.values())
        return self.calls if name == LLM_CALLS else self.nodes

    def left(self, name: str) -> int:
        """How much of it may still be granted."""
        return max(0, self.most[name] - self.used(name)) if name in self.most else MOST

    def settle(self, firing: str, attempt: int, tokens: int | None) -> None:
        """A granted call has ended; None when its host said not what it took."""
        if firing in self.held:
            unknown = BudgetSettled(firing, attempt, held=self.held[firing])
            self.due[firing] = unknown if tokens is None else BudgetSettled(firing, attempt, tokens)

    def give_back(self, firing: str, attempt: int) -> None:
        """A granted call reached nobody."""
        if firing in self.held:
            self.due[firing] = BudgetSettled(firing, attempt, 0, llm_calls=0)

    def refuse(self, name: str, wanted: int, *, firing: str, attempt: int, used: int | None = None) -> BudgetRefused:
        """What is recorded when `wanted` is not left; `used` where it is no count of the books'."""
        used, most = self.used(name) if used is None else used, self.most[name]
        if isinstance(self.on_budget, dict) and not self.transferred:
            targets: Any = self.on_budget["goto"]
            return BudgetRefused(name, most, used, wanted, "goto", tuple(targets), firing, attempt)
        pause = self.on_budget == "pause"
        return BudgetRefused(name, most, used, wanted, "pause" if pause else "fail", (), firing, attempt)

    def to_json(self) -> JsonObject:
        """What `from_json` needs."""
        body: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        body["entered"], body["parked"] = sorted(self.entered), [*self.parked]
        body["due"] = [to_json(fact) for fact in self.due.values()]
        body["untold"] = [to_json(fact) for fact in self.untold]
        return body

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Ledger:
        """The ledger `to_json` wrote."""
        due: list[Any] = [from_json(fact) for fact in body["due"]]
        return Ledger(**{
            **body, "entered": set(body["entered"]), "parked": dict.fromkeys(body["parked"]),
            "due": {fact.firing: fact for fact in due}, "untold": [from_json(fact) for fact in body["untold"]],
        })  # fmt: skip

    def told(self) -> JsonObject:
        """By budget, how much is used, as far as it is counted; without the run's time."""
        unknown = {TOKENS} if self.unreported else set()
        names = [name for name in self.most if name != WALL_CLOCK]
        return {
            name: "unknown" if name in unknown else self.spent if name == TOKENS else self.used(name) for name in names
        }

    def view(self) -> JsonObject:
        """By budget {max, used}; of tokens also what is reserved, and of how many calls nothing is known."""
        body: JsonObject = {}
        told = self.told()
        for name in NAMES:
            if name not in self.most:
                continue
            counted: JsonObject = {"max": self.most[name]}
            if name == TOKENS:
                counted |= {"used": told[name], "recorded": self.spent, "reserved": self.kept + sum(self.held.values())}
                counted["unreported_calls"] = self.unreported
            elif name == WALL_CLOCK:
                counted["deadline_at_ms"] = self.deadline_ms
            else:
                counted["used"] = told[name]
            body[name] = counted
        return {**body, ON_BUDGET: self.on_budget}


def ledger(bounds: Mapping[str, Any], *, policy: Mapping[str, Any] = MappingProxyType({})) -> Ledger | None:
    """The books of a run with these bounds, some of which a policy set; None when there is none."""
    sizes = {name: bounds[name] for name in NAMES if name in bounds}
    by_policy = dict.fromkeys(policy.get("bounds", ()), policy.get("profile", ""))
    return Ledger(sizes, dict(sizes), bounds.get(ON_BUDGET, "fail"), by_policy) if sizes else None


def prompt_tokens(call: CallModel) -> int:
    """An estimate of what a call's messages take, never told as a count."""
    size = sum(len(str(message.get("content", "")).encode()) for message in call.messages)
    return -(-size // BYTES_PER_TOKEN) + 1


def wanted_tokens(call: CallModel) -> tuple[int, int]:
    """(what must be left for a call, what is held for it if so much is left)."""
    bound: Any = call.options.get("num_predict")
    prompt = prompt_tokens(call)
    if type(bound) is int and bound > 0:
        return prompt + bound, prompt + bound
    return prompt + 1, prompt + ANSWER_TOKENS


def targets(bounds: Mapping[str, Any]) -> Sequence[str]:
    """The nodes that `on_budget` leads to."""
    way: Any = bounds.get(ON_BUDGET)
    return way["goto"] if isinstance(way, dict) else ()
