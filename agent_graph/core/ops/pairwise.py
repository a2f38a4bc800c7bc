"""Counts rankings: first choices, Borda points, and every two candidates head to head; names no winner by chance."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Standing:
    """How the candidates stand. `tied` are those between whom nothing decides, empty where there is a winner."""

    names: tuple[str, ...]
    scores: Mapping[str, Fraction]
    winner: str | None
    tied: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()
    """Each beats the next, and the last the first."""
    preferred: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """preferred[a][b]: ballots that have a before b."""

    def table(self, orders: Sequence[Sequence[str]]) -> list[JsonValue]:
        """[{candidate, rank, score, first_choices}], best first; equal scores share a rank and keep their order."""
        firsts = _firsts(orders, self.names)
        listed = sorted(self.names, key=lambda name: -self.scores[name])
        return [
            {
                "candidate": name, "rank": 1 + sum(self.scores[other] > self.scores[name] for other in self.names),
                "score": _number(self.scores[name]), "first_choices": firsts[name],
            }
            for name in listed
        ]  # fmt: skip

    def pairwise_json(self) -> JsonObject:
        return {name: dict(row) for name, row in self.preferred.items()}


def first_choices(orders: Sequence[Sequence[str]], names: Sequence[str]) -> Standing:
    """The score is how many ballots name a candidate first."""
    return _by_score(names, {name: Fraction(count) for name, count in _firsts(orders, names).items()})


def borda(orders: Sequence[Sequence[str]], names: Sequence[str]) -> Standing:
    """Of n candidates the first of a ballot gets n - 1 points, the last 0; those it leaves out share what is left."""
    scores = dict.fromkeys(names, Fraction(0))
    for order in orders:
        left = len(names) - len(order)
        for place, name in enumerate(order):
            scores[name] += len(names) - 1 - place
        for name in names if left else ():
            if name not in order:
                scores[name] += Fraction(left - 1, 2)
    return _by_score(names, scores)


def condorcet(orders: Sequence[Sequence[str]], names: Sequence[str]) -> Standing:
    """The winner beats every other head to head; the score is how many a candidate beats, less by how many it is.

    A ballot prefers those it names to those it leaves out, and says nothing of these among themselves. Where nobody
    beats all, the tied ones are the Smith set: the smallest set whose members beat everybody outside it.
    """
    preferred = {name: {other: 0 for other in names if other != name} for name in names}
    for order in orders:
        behind = set(names)
        for name in order:
            behind.discard(name)
            for other in behind:
                preferred[name][other] += 1
    beats = {a: [b for b in row if row[b] > preferred[b][a]] for a, row in preferred.items()}
    scores = {name: Fraction(len(beats[name]) - sum(name in beats[other] for other in names)) for name in names}
    tied = _smith_set(names, beats)
    if len(tied) == 1:
        return Standing(tuple(names), scores, tied[0], preferred=preferred)
    return Standing(tuple(names), scores, None, tied, _shortest_cycle(tied, beats), preferred)


def _by_score(names: Sequence[str], scores: Mapping[str, Fraction]) -> Standing:
    best = max(scores.values(), default=Fraction(0))
    top = tuple(name for name in names if scores[name] == best)
    return Standing(tuple(names), scores, top[0] if len(top) == 1 else None, top if len(top) != 1 else ())


def _firsts(orders: Sequence[Sequence[str]], names: Sequence[str]) -> dict[str, int]:
    firsts = dict.fromkeys(names, 0)
    for order in orders:
        firsts[order[0]] += 1
    return firsts


def _smith_set(names: Sequence[str], beats: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Grown from whoever beats most: who is not beaten by all of the set belongs to it."""
    if not names:
        return ()
    inside = {max(names, key=lambda name: len(beats[name]))}
    while missing := [n for n in names if n not in inside and any(n not in beats[member] for member in inside)]:
        inside.update(missing)
    return tuple(name for name in names if name in inside)


def _shortest_cycle(tied: Sequence[str], beats: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A shortest cycle through the first candidate that lies on one; () where ties alone keep them apart."""
    inside = set(tied)
    for start in tied:
        before: dict[str, str] = {}
        open_ = deque([start])
        while open_:
            name = open_.popleft()
            for other in beats[name]:
                if other == start:
                    return _way(name, start, before)
                if other in inside and other not in before:
                    before[other] = name
                    open_.append(other)
    return ()


def _way(name: str, start: str, before: Mapping[str, str]) -> tuple[str, ...]:
    way = [name]
    while way[-1] != start:
        way.append(before[way[-1]])
    return tuple(reversed(way))


def _number(score: Fraction) -> JsonValue:
    return int(score) if score.denominator == 1 else float(score)
