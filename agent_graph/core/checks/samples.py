"""Values that stand for all others: of two values in one class no comparison with the given constants tells which.

A finite set of them answers for every JSON value; what depends on more than the class (`contains`, `regex`, ...) is
left open by `settled`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, Final

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonValue, equality_key, is_number, text_of
from agent_graph.core.ops import predicates

_UNIFORM: Final = frozenset({"eq", "lt", "lte", "gt", "gte", "in", "exists", "empty", "is_type"})
"""Ops that cannot tell values of one class from each other."""
TEXT_CONTAINS: Final = "text_contains"
"""What an entry of the older `routes` asks: a text within the text of a value of any type."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value; when it is not `exact` it stands for all of its class but the constants."""

    value: JsonValue
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """One comparison of a path with a constant, its negation left out."""

    path: str
    op: str
    said: str
    """The constant, or the other path, as a text: equal ones are one question."""
    ignore_case: bool = False
    value_path: bool = False
    value: Any = field(default=None, compare=False)


def samples(constants: Iterable[JsonValue]) -> list[Sample]:
    """One value of every class there is beside `constants`, and these themselves. Missing reads as null."""
    plain: dict[str, JsonValue] = {equality_key(one): one for one in (None, True, False, "", [], {}, *constants)}
    found = [Sample(value) for value in plain.values()]
    found += [Sample(value, exact=False) for value in _numbers([v for v in plain.values() if is_number(v)])]
    found += [Sample(value, exact=False) for value in _texts([v for v in plain.values() if isinstance(v, str)])]
    odd = "\U0010ffff?"
    return [*found, Sample([odd], exact=False), Sample({odd: odd}, exact=False)]


def _numbers(constants: list[Any]) -> Iterator[int | float]:
    """Between, below and above the constants: an integer and a number that is none, where there are such."""
    edges: list[Any] = [None, *sorted(constants), None]
    for low, high in pairwise(edges):
        whole = math.floor(low) + 1 if low is not None else math.ceil(high) - 1 if high is not None else 0
        if high is None or whole < high:
            yield whole
        for part in _parts(low, high):
            if (low is None or part > low) and (high is None or part < high) and not part.is_integer():
                yield part
                break


def _parts(low: Any, high: Any) -> Iterator[float]:
    yield from (0.5, -0.5)
    for edge, way in ((low, math.inf), (high, -math.inf)):
        if edge is not None and abs(edge) < 2**52:
            yield edge + math.copysign(0.5, way)
            yield math.nextafter(float(edge), way)


def _texts(constants: list[str]) -> Iterator[str]:
    """A text directly behind every constant is in the class between it and the next one, or is that one."""
    known = set(constants)
    yield from (text + "\0" for text in sorted(constants) if text + "\0" not in known)


def settled(question: Question, given: Sequence[Sample]) -> list[bool | None]:
    """By sample: whether the comparison holds for all values it stands for, for none, or (None) nobody knows."""
    if question.value_path:
        return [None] * len(given)
    if question.op == TEXT_CONTAINS:
        return [question.value in text_of(one.value) if one.exact and one.value is not None else None for one in given]
    rule = {"path": "", "op": question.op, "value": question.value}
    holds = predicates.prepare({**rule, "ignore_case": True} if question.ignore_case else rule)

    def told(sample: Sample) -> bool | None:
        return holds(lambda _path: sample.value) if sample.exact or _uniform(question, sample.value) else None

    return [told(sample) for sample in given]


def _uniform(question: Question, value: JsonValue) -> bool:
    """It cannot tell the values of this class from each other."""
    if isinstance(value, str):
        return question.op in _UNIFORM and not question.ignore_case
    return question.op != "contains" or not isinstance(value, list | dict)


def implies(one: Question, other: Question, *, value: JsonValue) -> bool:
    """Whether `other` holds for every value like `value` for which `one` does."""
    if one.path != other.path or one.ignore_case != other.ignore_case or one.value_path or other.value_path:
        return False
    if one.op == other.op == TEXT_CONTAINS:
        return other.value in one.value
    if not isinstance(value, str) or not isinstance(one.value, str) or not isinstance(other.value, str):
        return False
    match one.op, other.op:
        case "starts_with", "starts_with":
            return one.value.startswith(other.value)
        case "ends_with", "ends_with":
            return one.value.endswith(other.value)
        case "starts_with" | "ends_with" | "contains", "contains":
            return other.value in one.value
        case _:
            return False
