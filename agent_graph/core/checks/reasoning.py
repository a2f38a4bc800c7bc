"""Whether a rule can hold, and whether the ones before it always do; says unknown rather than guess.

A rule is asked for every sample of the paths it reads. What a sample leaves open is assumed both ways, as far as one
assumption does not exclude the other; the rules before it are asked under the same assumptions. A path that a rule does
not read stays unknown, so what is said holds whatever is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from typing import Any, Final, Protocol

from agent_graph.core.checks.samples import TEXT_CONTAINS, Question, Sample, implies, samples, settled
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import MISSING, Missing
from agent_graph.core.jsonvalue import JsonObject, JsonValue, equality_key
from agent_graph.core.ops.predicates import ALIASES

STEPS: Final = 500_000
"""Questions asked about one router, at most."""
_OPEN: Final = 6
"""Open tests of one rule that are assumed both ways; with more of them nothing is said."""
_POINTS: Final = 2_000
"""Combinations of samples of one rule."""
_NEGATIONS: Final = {
    "ne": "eq", "not_in": "in", "not_contains": "contains", "not_exists": "exists", "not_empty": "empty",
}  # fmt: skip
_LITERAL: Final = re.compile(r"\^([\w \-/:,;@#%&=!<>\"'~`]*)(\$?)", re.ASCII)
"""A pattern that says no more than how a text starts, or what it is."""

Point = Mapping[str, int]
"""By path: which of its samples is there."""
Assumed = Mapping[Question, bool]
Predicate = tuple[str, Any]
"""("all" | "any", predicates), ("not", predicate), or ("holds" | "fails", question)."""


class Unknown(Exception):
    """It takes too long to tell."""


class _TooOpen(Unknown):
    """Of one rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A predicate taken apart."""

    predicate: Predicate
    questions: tuple[Question, ...]
    """Each once."""
    paths: tuple[str, ...]


def rule(body: JsonObject) -> Rule:
    """The parts of a rule that the type's own check accepted."""
    found: dict[Question, None] = {}
    predicate = _taken_apart(body, found)
    return Rule(predicate, tuple(found), tuple(dict.fromkeys(question.path for question in found)))


def contains_text(path: str, text: str) -> Rule:
    """An entry of the older `routes`."""
    question = Question(path, TEXT_CONTAINS, text, value=text)
    return Rule(("holds", question), (question,), (path,))


def _taken_apart(body: Any, found: dict[Question, None]) -> Predicate:
    if "not" in body:
        return "not", _taken_apart(body["not"], found)
    for name in ("all", "any"):
        if name in body:
            return name, [_taken_apart(part, found) for part in body[name]]
    op = ALIASES.get(body["op"], body["op"])
    negated = op in _NEGATIONS
    op, value, case = _NEGATIONS.get(op, op), body.get("value"), bool(body.get("ignore_case"))
    if op == "regex" and not case and (literal := _LITERAL.fullmatch(value)):
        value, ends = literal.groups()
        op = "eq" if ends else "starts_with"
    other = body.get("value_path")
    question = Question(body["path"], op, equality_key(value) if other is None else str(other), case,
                        other is not None, value)  # fmt: skip
    found[question] = None
    return "fails" if negated else "holds", question


class Domain(Protocol):
    """What the paths can hold."""

    def values(self, path: str) -> Sequence[JsonValue]:
        """All of them, where they are known one by one."""
        ...

    def fits(self, path: str, sample: Sample) -> bool:
        """False when no value the sample stands for can be there; `values` are samples of their own."""
        ...


@dataclass(slots=True)
class Reasoning:
    """The rules of one router in their order."""

    rules: Sequence[Rule]
    domain: Domain
    at: dict[str, list[Sample]] = field(default_factory=dict)
    """By path: the samples there can be."""
    first: dict[str, list[int | None]] = field(default_factory=dict)
    """By path and sample: the first rule that certainly holds for it."""
    told: dict[Question, list[bool | None]] = field(default_factory=dict)
    left: int = STEPS

    def run(self) -> Iterator[tuple[int, list[int] | None]]:
        """(rule, None) for one that can never hold, (rule, those before it) for one that is never reached."""
        for path in dict.fromkeys(path for one in self.rules for path in one.paths):
            asked = (question for one in self.rules for question in one.questions if question.path == path)
            found = samples([*self.domain.values(path), *(value for one in asked for value in _constants(one))])
            self.at[path] = [sample for sample in found if self.domain.fits(path, sample)]
            self.first[path] = [None] * len(self.at[path])
        for place, one in enumerate(self.rules):
            before = self._holds_before(place, one)
            if before is not None:
                yield place, before or None
            self._note(place, one)

    def _holds_before(self, place: int, one: Rule) -> list[int] | None:
        """[] = it never holds; the rules of which one always holds when it does; None = it may be reached."""
        before: set[int] = set()
        try:
            for point in self._points(one):
                for assumed in self._assumptions(one.questions, point):
                    if not self._verdict(one.predicate, point, assumed):
                        continue
                    hit = self._first(place, point, assumed)
                    if hit is None:
                        return None
                    before.add(hit)
        except _TooOpen:
            return None
        return sorted(before)

    def _points(self, one: Rule) -> Iterator[Point]:
        """Every combination of samples of what the rule reads; of a rule of one question those where it may hold."""
        paths, size = one.paths, 1
        row = self._row(one)
        if row is not None:
            yield from ({paths[0]: at} for at, holds in enumerate(row) if holds is not False)
            return
        for path in paths:
            size *= len(self.at[path])
        if len(paths) > 1 and size > _POINTS:
            raise _TooOpen
        for found in product(*(range(len(self.at[path])) for path in paths)):
            yield dict(zip(paths, found, strict=True))

    def _first(self, place: int, point: Point, assumed: Assumed) -> int | None:
        """The first rule before `place` that certainly holds too."""
        known = [hit for path, at in point.items() if (hit := self.first[path][at]) is not None]
        if known or (len(point) == 1 and not assumed):
            return min(known, default=None)
        return next((j for j in range(place) if self._verdict(self.rules[j].predicate, point, assumed)), None)

    def _row(self, one: Rule) -> list[bool | None] | None:
        """By sample of its path, whether a rule of one question holds; None where it asks more."""
        kind, inner = one.predicate
        if kind not in ("holds", "fails"):
            return None
        row = self._told_of(inner)
        return row if kind == "holds" else [None if told is None else not told for told in row]

    def _note(self, place: int, one: Rule) -> None:
        plain = self._row(one)
        for path in one.paths:
            row = self.first[path]
            if plain is not None:
                self.first[path] = [
                    place if known is None and holds else known for known, holds in zip(row, plain, strict=True)
                ]
                continue
            for at, known in enumerate(row):
                if known is None and self._verdict(one.predicate, {path: at}, {}):
                    row[at] = place

    def exhaustive(self) -> bool:
        """One of the rules holds whatever is there; asked when `run` has come to its end."""
        return any(self._covered(path) for path in self.first)

    def _covered(self, path: str) -> bool:
        asking = [one for one in self.rules if path in one.paths]
        open_ = dict.fromkeys(question for one in asking for question in one.questions if question.path == path)
        try:
            return all(
                known is not None
                or all(any(self._verdict(one.predicate, {path: at}, assumed) for one in asking)
                       for assumed in self._assumptions(tuple(open_), {path: at}))
                for at, known in enumerate(self.first[path])
            )  # fmt: skip
        except _TooOpen:
            return False

    def uncovered(self) -> JsonValue | Missing:
        """A value for which certainly no rule holds, where all of them read one path."""
        if len(self.first) == 1:
            ((path, given),) = self.at.items()
            for at, sample in enumerate(given):
                if all(self._verdict(one.predicate, {path: at}, {}) is False for one in self.rules):
                    return sample.value
        return MISSING

    def _assumptions(self, questions: Sequence[Question], point: Point) -> Iterator[dict[Question, bool]]:
        """Every way in which what the samples leave open can be, together."""
        open_ = [question for question in questions if self._told(question, point) is None]
        if len(open_) > _OPEN:
            raise _TooOpen
        for truths in product((True, False), repeat=len(open_)):
            assumed = dict(zip(open_, truths, strict=True))
            if not any(assumed[a] and not assumed[b] and self._implied(a, b, point) for a in open_ for b in open_):
                yield assumed

    def _implied(self, one: Question, other: Question, point: Point) -> bool:
        at = point.get(one.path)
        return at is not None and implies(one, other, value=self.at[one.path][at].value)

    def _told(self, question: Question, point: Point) -> bool | None:
        at = point.get(question.path)
        if at is None:
            return None
        return self._told_of(question)[at]

    def _told_of(self, question: Question) -> list[bool | None]:
        row = self.told.get(question)
        if row is None:
            row = self.told[question] = settled(question, self.at[question.path])
            self.left -= len(row)
        return row

    def _verdict(self, predicate: Predicate, point: Point, assumed: Assumed) -> bool | None:
        """Whether it holds at a point under assumptions; None = not known."""
        self.left -= 1
        if self.left < 0:
            raise Unknown
        kind, inner = predicate
        if kind in ("holds", "fails"):
            known = self._told(inner, point)
            known = self._assumed(inner, point, assumed) if known is None else known
            return known if kind == "holds" or known is None else not known
        if kind == "not":
            known = self._verdict(inner, point, assumed)
            return None if known is None else not known
        deciding = kind == "any"
        parts = [self._verdict(part, point, assumed) for part in inner]
        return deciding if deciding in parts else None if None in parts else not deciding

    def _assumed(self, question: Question, point: Point, assumed: Assumed) -> bool | None:
        if question in assumed:
            return assumed[question]
        for other, holds in assumed.items():
            if holds and self._implied(other, question, point):
                return True
            if not holds and self._implied(question, other, point):
                return False
        return None


def _constants(question: Question) -> Sequence[JsonValue]:
    if question.op in ("exists", "empty", "is_type") or question.value_path:
        return ()
    return question.value if question.op == "in" else (question.value,)
