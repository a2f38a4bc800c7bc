"""Votes: ballots become a ranking table, a winner or the reason why there is none, and who was against; asks nobody.

A *ballot* is one of

* a text (or a number, or true / false, by its JSON): the choice;
* a list of these: a ranking, best first;
* an object with ``choice`` or with ``ranking``; a ranking there may be one text too, ``"B > A > C"``, which a model's
  schema can list whole.

It stands at `ballot_path` of an input ("" is the input itself); where `ballots` is ``list``, each input holds a list of
them. The voter's words stand at `reason_path` beside it. A null or failed input *abstains*.

Nothing here depends on the order in which answers came: ballots count alike, and where candidates are alike the table
keeps the order of `candidates`, or, without them, that in which the ballots (in the order of `inputs`) name them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from agent_graph.core import statepath
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Missing
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact
from agent_graph.core.ops.joins import Item, failed_item
from agent_graph.core.ops.pairwise import Standing, borda, condorcet, first_choices
from agent_graph.errors import NodeFailure

MAX_RANKED: Final = 100
"""Candidates of a ranking method: every two of them are compared."""
SHOWN: Final = 80
"""Characters of a name that a fault quotes."""


class VoteConfig(Protocol):
    """The fields of a `join` node that a vote reads."""

    @property
    def method(self) -> str: ...
    @property
    def ballots(self) -> str: ...
    @property
    def ballot_path(self) -> str: ...
    @property
    def reason_path(self) -> str: ...
    @property
    def partial(self) -> bool: ...
    @property
    def on_invalid(self) -> str: ...
    @property
    def min_agreement(self) -> float | None: ...
    @property
    def tie_break(self) -> str: ...
    @property
    def require(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Ballot:
    """One voter's order, best first; a choice is an order of one."""

    voter: str
    order: tuple[str, ...]
    reason: str

    def to_json(self) -> JsonObject:
        return {"input": self.voter, "order": list(self.order), "reason": self.reason}


@dataclass(slots=True)
class Box:
    """What was cast."""

    ballots: list[Ballot]
    abstained: list[str]
    spoiled: list[JsonObject]
    """[{input, fault}]"""

    @property
    def voters(self) -> int:
        return len(self.ballots) + len(self.abstained) + len(self.spoiled)


Count: TypeAlias = Callable[[Sequence[tuple[str, ...]], Sequence[str]], Standing]
METHODS: Final[dict[str, Count]] = {"majority": first_choices, "borda": borda, "condorcet": condorcet}
"""By their names in a spec."""


def vote(items: Sequence[Item], config: VoteConfig, *, candidates: Sequence[str] | None) -> JsonObject:
    """Count the ballots of `items`, pairs of name and value in the order of the spec.

    Gives {winner, decided, deadlock, method, agreement, voters, ranking, tied, cycle, tie_break, pairwise, dissent,
    votes, abstained, spoiled}. `winner` is null where there is none, and `deadlock` says why: ``no_ballots``; ``tie``;
    ``cycle`` (condorcet: `cycle` holds it); ``below_agreement``, when the winner is the first choice of too small a
    share of all voters: less than `min_agreement`, and for ``majority`` without it not more than half. A tie or cycle
    is settled only where `tie_break` says how.

    Raises `NodeFailure` VOTE_BALLOT_INVALID (details.ballots, all at once), VOTE_CANDIDATES_INVALID where a ranking
    method has more than 100, and VOTE_DEADLOCK where `require` demands a winner.
    """
    box = _box(items, config, candidates)
    names = list(candidates) if candidates is not None else _named(box.ballots)
    if config.method != "majority" and len(names) > MAX_RANKED:
        message = f"{len(names)} candidates are ranked, and there may be {MAX_RANKED}"
        raise NodeFailure("VOTE_CANDIDATES_INVALID", message, candidates=len(names), limit=MAX_RANKED)
    if config.method != "majority" and not config.partial:
        _check_complete(box, names, config)
    orders = [ballot.order for ballot in box.ballots]
    standing = METHODS[config.method](orders, names)
    winner, broken_by = standing.winner, ""
    if winner is None and box.ballots:
        winner, broken_by = _settled(standing.tied, orders, names, config.tie_break)
    agreement = sum(order[0] == winner for order in orders) / box.voters if winner is not None else 0.0
    deadlock = _deadlock(standing, winner, agreement, config, empty=not box.ballots)
    if deadlock and config.require:
        said = f"the vote has no winner: {deadlock}"
        raise NodeFailure(
            "VOTE_DEADLOCK", said, deadlock=deadlock, tied=list(standing.tied), cycle=list(standing.cycle)
        )
    if deadlock:
        winner = None
    return {
        "winner": winner, "decided": winner is not None, "deadlock": deadlock or None, "method": config.method,
        "agreement": agreement, "voters": box.voters, "ranking": standing.table(orders), "tied": list(standing.tied),
        "cycle": list(standing.cycle), "tie_break": broken_by or None, "pairwise": standing.pairwise_json(),
        "dissent": [_against(ballot, winner) for ballot in box.ballots if winner and ballot.order[0] != winner],
        "votes": [ballot.to_json() for ballot in box.ballots], "abstained": list(box.abstained),
        "spoiled": list(box.spoiled),
    }  # fmt: skip


def candidates_in(value: JsonValue, path: str) -> list[str]:
    """The candidates a state value names: a list of texts, or an object's keys. Raises VOTE_CANDIDATES_INVALID."""
    named: list[JsonValue] = [*value] if isinstance(value, dict | list) else []
    names = [name for each in named if (name := _name(each)) is not None]
    if not names or len(names) != len(named) or len(set(names)) != len(names):
        message = f'the candidates at "{path}" are a list of different names, or an object by their names'
        raise NodeFailure("VOTE_CANDIDATES_INVALID", message, path=path)
    return names


# -- ballots -------------------------------------------------------------------------------------------------------


def _box(items: Sequence[Item], config: VoteConfig, candidates: Sequence[str] | None) -> Box:
    box = Box([], [], [])
    known = None if candidates is None else frozenset(candidates)
    for voter, value in _voters(items, config, box):
        if value is None or failed_item(value):
            box.abstained.append(voter)
            continue
        try:
            box.ballots.append(Ballot(voter, _order(_at(value, config.ballot_path), known), _reason(value, config)))
        except ValueError as fault:
            box.spoiled.append({"input": voter, "fault": str(fault)})
    _refuse_spoiled(box, config)
    return box


def _voters(items: Sequence[Item], config: VoteConfig, box: Box) -> Iterator[Item]:
    for name, value in items:
        if config.ballots == "one" or value is None or failed_item(value):
            yield name, value
        elif isinstance(value, list):
            yield from ((f"{name}[{place}]", each) for place, each in enumerate(value))
        else:
            box.spoiled.append({"input": name, "fault": f"a list of ballots is expected, not {_kind(value)}"})


def _order(ballot: JsonValue | Missing, known: frozenset[str] | None) -> tuple[str, ...]:
    """The order a ballot gives; ValueError says what is wrong with it."""
    if isinstance(ballot, Missing):
        raise ValueError("there is no ballot at `ballot_path`")
    if isinstance(ballot, dict):
        said = [name for name in ("choice", "ranking") if ballot.get(name) is not None]
        if len(said) != 1:
            raise ValueError("an object has `choice` or `ranking`" + (", not both" if said else ""))
        ballot = ballot[said[0]]
        if said[0] == "ranking" and isinstance(ballot, str) and ">" in ballot:
            ballot = [*ballot.split(">")]
        if isinstance(ballot, list) != (said[0] == "ranking"):
            raise ValueError("`choice` is one name" if said[0] == "choice" else "`ranking` is a list of names")
    entries = ballot if isinstance(ballot, list) else [ballot]
    if not entries:
        raise ValueError("the ranking is empty")
    order: list[str] = []
    for entry in entries:
        name = _name(entry)
        if name is None:
            raise ValueError(f"a candidate is named by a text, not by {_kind(entry)}")
        if known is not None and name not in known:
            raise ValueError(f"there is no candidate {name[:SHOWN]!r}")
        if name in order:
            raise ValueError(f"{name[:SHOWN]!r} is ranked twice")
        order.append(name)
    return tuple(order)


def _name(value: JsonValue) -> str | None:
    """A candidate's name; only what a model can hardly write in two ways."""
    if isinstance(value, str):
        return value.strip() or None
    return compact(value) if isinstance(value, bool | int) else None


def _check_complete(box: Box, names: Sequence[str], config: VoteConfig) -> None:
    """A ranking method needs every candidate on every ballot, unless `partial`: what is not said is not guessed."""
    for ballot in [each for each in box.ballots if len(each.order) < len(names)]:
        left_out = [name for name in names if name not in ballot.order]
        shown = ", ".join(repr(name[:SHOWN]) for name in left_out[:5]) + (" ..." if len(left_out) > 5 else "")
        box.ballots.remove(ballot)
        box.spoiled.append({"input": ballot.voter, "fault": f"the ranking leaves out {shown} (`partial` allows that)"})
    _refuse_spoiled(box, config)


def _refuse_spoiled(box: Box, config: VoteConfig) -> None:
    if box.spoiled and config.on_invalid == "error":
        said = "; ".join(f"{each['input']}: {each['fault']}" for each in box.spoiled[:5])
        more = f"; and {len(box.spoiled) - 5} more" if len(box.spoiled) > 5 else ""
        raise NodeFailure("VOTE_BALLOT_INVALID", f"not every ballot can be counted: {said}{more}", ballots=box.spoiled)


def _named(ballots: Sequence[Ballot]) -> list[str]:
    return list(dict.fromkeys(name for ballot in ballots for name in ballot.order))


def _at(value: JsonValue, path: str) -> JsonValue | Missing:
    return statepath.read(value, path) if path else value


def _reason(value: JsonValue, config: VoteConfig) -> str:
    found = statepath.read(value, config.reason_path) if isinstance(value, dict) else ""
    return found if isinstance(found, str) else ""


def _kind(value: JsonValue) -> str:
    kinds = ((dict, "an object"), (list, "a list"), (str, "a text"), (bool, "true or false"), (type(None), "null"))
    return next((words for kind, words in kinds if isinstance(value, kind)), "a number")


# -- what follows --------------------------------------------------------------------------------------------------


def _settled(
    tied: Sequence[str], orders: Sequence[tuple[str, ...]], names: Sequence[str], tie_break: str
) -> tuple[str | None, str]:
    """(winner, what settled it): by more Borda points, or by the order of the candidates."""
    if tie_break == "order":
        return next(name for name in names if name in tied), "order"
    if tie_break == "borda":
        scores = borda(orders, names).scores
        best = max(scores[name] for name in tied)
        top = [name for name in tied if scores[name] == best]
        if len(top) == 1:
            return top[0], "borda"
    return None, ""


def _deadlock(standing: Standing, winner: str | None, agreement: float, config: VoteConfig, *, empty: bool) -> str:
    if empty:
        return "no_ballots"
    if winner is None:
        return "cycle" if standing.cycle else "tie"
    if config.min_agreement is not None:
        return "below_agreement" if agreement < config.min_agreement else ""
    return "below_agreement" if config.method == "majority" and agreement <= 0.5 else ""


def _against(ballot: Ballot, winner: str) -> JsonObject:
    """Who preferred another: `choice` is whom, `winner_rank` where the ballot has the winner (null: nowhere)."""
    rank = ballot.order.index(winner) + 1 if winner in ballot.order else None
    return {"input": ballot.voter, "choice": ballot.order[0], "winner_rank": rank, "reason": ballot.reason}
