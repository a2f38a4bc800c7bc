"""A profile: the bounds a graph is held to, read from TOML or JSON and made tighter by an override; it judges nothing.

Every field has one of five *senses*, which say what tighter means: `most` a number (the lower one), `only` the things
that are allowed (those in both), `need` the things that must be there (those in either), `flag` a demand (made by
either), `soft` rules a person may waive (those in both).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from agent_graph.core.budgets import NAMES as BUDGETS
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import suggest
from agent_graph.core.jsonvalue import JsonObject

CHANNELS: Final = ("elicitation", "console", "cli", "assistant")
LONGEST: Final = 200
"""Characters of one name in a profile."""
MOST_NAMES: Final = 1_000
LARGEST: Final = 10**15


def _bound(sense: str, meaning: str, known: tuple[str, ...] = ()) -> Any:
    default = {"most": None, "only": None, "need": (), "flag": False, "soft": ()}[sense]
    return field(default=default, metadata={"sense": sense, "meaning": meaning, "known": known})


@dataclass(frozen=True, slots=True)
class Profile:
    """The bounds. None in a `most` or `only` field bounds nothing."""

    name: str = "custom"
    node_types: tuple[str, ...] | None = _bound("only", "the node types a graph may have")
    max_nodes: int | None = _bound("most", "nodes of a graph and of the graphs in it, together")
    max_edges: int | None = _bound("most", "declared edges of a graph and of the graphs in it, together")
    max_iterations: int | None = _bound("most", "the longest chain of steps in one frame")
    max_loop_rounds: int | None = _bound("most", "rounds of any one loop")
    max_parallelism: int | None = _bound("most", "calls in flight in the whole run")
    max_prompt_bytes: int | None = _bound("most", "bytes of the text that stands in one node's prompt")
    max_input_bytes: int | None = _bound("most", "bytes of the run's input as JSON")
    max_llm_calls: int | None = _bound("most", "calls of models; also the run's budget")
    max_tokens: int | None = _bound("most", "tokens of prompts and answers; also the run's budget")
    max_node_firings: int | None = _bound("most", "firings of nodes; also the run's budget")
    max_wall_clock_ms: int | None = _bound("most", "milliseconds of a run; also the run's budget")
    models: tuple[str, ...] | None = _bound(
        "only", "the models that may be asked; a `*` at the end stands for anything"
    )
    connections: tuple[str, ...] | None = _bound("only", "the named connections that may be used")
    channels: tuple[str, ...] | None = _bound("only", "the channels a gate may be decided through", CHANNELS)
    approval_before: tuple[str, ...] = _bound("need", "node types that only run behind a gate")
    requirements: tuple[str, ...] = _bound("need", "tags that some node must carry")
    budgets: tuple[str, ...] = _bound("need", "budgets that must be set", BUDGETS)
    pinned_subgraphs: bool = _bound("flag", "a subgraph names the version it means")
    review: tuple[str, ...] = _bound("soft", "the rules among these that a person may waive by starting the run")

    def describe(self) -> JsonObject:
        """What it bounds, by field; what it leaves open is left out."""
        shown: JsonObject = {"name": self.name}
        for f in _BOUNDS:
            value = getattr(self, f.name)
            if value not in (None, (), False):
                shown[f.name] = list(value) if isinstance(value, tuple) else value
        return shown

    def run_budgets(self) -> dict[str, int]:
        """The budgets a run gets whether or not it asks for them."""
        found = {budget: getattr(self, own) for budget, own in BUDGET_OF.items()}
        return {budget: value for budget, value in found.items() if value is not None}


_BOUNDS: Final = tuple(f for f in fields(Profile) if f.name != "name")
NAMES: Final = tuple(f.name for f in _BOUNDS)
SENSES: Final = MappingProxyType({f.name: str(f.metadata["sense"]) for f in _BOUNDS})
MEANINGS: Final = MappingProxyType({f.name: str(f.metadata["meaning"]) for f in _BOUNDS})
BUDGET_OF: Final = MappingProxyType({
    "max_llm_calls": "max_llm_calls", "max_tokens": "max_tokens", "max_nodes": "max_node_firings",
    "max_wall_clock_ms": "max_wall_clock_ms",
})  # fmt: skip
"""By budget of a run, the field that bounds it (`max_nodes` of a profile is the size of the graph)."""
EFFECTS: Final = ("tool", "http", "graphql")
BUILT_IN: Final[Mapping[str, Profile]] = MappingProxyType({
    "baseline": Profile("baseline"),
    "strict": Profile(
        "strict", max_nodes=200, max_edges=1_000, max_iterations=500, max_loop_rounds=20, max_parallelism=8,
        max_prompt_bytes=65_536, max_input_bytes=262_144, max_llm_calls=200, max_wall_clock_ms=3_600_000,
        approval_before=EFFECTS, pinned_subgraphs=True,
    ),
})  # fmt: skip
"""`baseline` holds a graph to what this server can do and to nothing else."""


class Problem(NamedTuple):
    """Why a profile or an override cannot be used: a code and a sentence."""

    code: str
    message: str
    field: str = ""


def read_profile(name: str, body: Mapping[str, Any]) -> tuple[Profile, tuple[Problem, ...]]:
    """The profile that `body` says, and all that is wrong with it."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for key, value in body.items():
        if key not in SENSES:
            message = f"there is no rule {key!r}{suggest(str(key), NAMES)}"
            problems.append(Problem("POLICY_RULE_UNKNOWN", message, str(key)))
            continue
        known = next(f.metadata["known"] for f in _BOUNDS if f.name == key)
        wrong = _fault(key, value, NAMES if key == "review" else known)
        if wrong:
            problems.append(Problem("POLICY_VALUE_INVALID", f"{key} {wrong}", key))
        else:
            values[key] = tuple(dict.fromkeys(value)) if isinstance(value, list | tuple) else value
    return Profile(name, **values), tuple(problems)


def _fault(name: str, value: Any, known: tuple[str, ...]) -> str:
    """What is wrong with a field's value, as the end of a sentence."""
    match SENSES[name]:
        case "most":
            right = type(value) is int and 0 < value <= LARGEST
            return "" if right else f"is a whole number from 1 to {LARGEST}"
        case "flag":
            return "" if isinstance(value, bool) else "is true or false"
    if not isinstance(value, list | tuple) or len(value) > MOST_NAMES:
        return f"is a list of at most {MOST_NAMES} names"
    for one in value:
        if not isinstance(one, str) or not 0 < len(one) <= LONGEST:
            return f"is a list of names of at most {LONGEST} characters"
        if known and one not in known:
            return f"holds {one!r}{suggest(one, known)}; there are {', '.join(known)}"
        if "*" in one.removesuffix("*"):
            return f"holds {one!r}: a * stands at the end only"
    return ""


def tighten(profile: Profile, override: Profile, given: Mapping[str, Any], *, loosen: bool = False) -> tuple[
    Profile, tuple[Problem, ...]
]:  # fmt: skip
    """`profile` with the fields of `override` that were `given`.

    Where a field would bound less than before it stays as it was and is told, unless the server lets it (`loosen`).
    """
    problems: list[Problem] = []
    values = {name: getattr(profile, name) for name in NAMES}
    for name in NAMES:
        if name not in given:
            continue
        mine, theirs = values[name], getattr(override, name)
        if loosen or _no_looser(SENSES[name], mine, theirs):
            values[name] = theirs
        else:
            message = f"{name} of the profile {profile.name} may be made tighter, not looser"
            problems.append(Problem("POLICY_OVERRIDE_LOOSENS", message, name))
    return Profile(profile.name, **values), tuple(problems)


def _no_looser(sense: str, before: Any, after: Any) -> bool:
    match sense:
        case "most":
            return before is None or after <= before
        case "only":
            return before is None or all(any(covers(allowed, one) for allowed in before) for one in after)
        case "need":
            return set(before) <= set(after)
        case "flag":
            return bool(after) or not before
        case _:
            return set(after) <= set(before)


def covers(allowed: str, name: str) -> bool:
    """`allowed` names `name`, or with a `*` at its end whatever starts as it does (other patterns of that kind too)."""
    if not allowed.endswith("*"):
        return allowed == name
    return name.startswith(allowed[:-1])
