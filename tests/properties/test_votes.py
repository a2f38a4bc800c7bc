"""What every vote promises, whoever votes: names, voters and order do not matter; majorities and winners do."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.ops.pairwise import borda, condorcet
from agent_graph.core.ops.votes import vote
from tests.core.test_votes import Asked

Orders = list[tuple[str, ...]]
METHODS = ("majority", "borda", "condorcet")
NAMES = ("A", "B", "C", "D")


@st.composite
def elections(draw: st.DrawFn, *, partial: bool = False) -> tuple[Orders, list[str]]:
    names = list(NAMES[: draw(st.integers(2, 4))])
    whole = st.permutations(names)
    order = st.tuples(whole, st.integers(1, len(names))).map(lambda p: p[0][: p[1]]) if partial else whole
    return [tuple(each) for each in draw(st.lists(order, min_size=1, max_size=7))], names


def count(orders: Orders, names: list[str], **config: Any) -> dict[str, Any]:
    items: Any = [(f"v{place}", list(order)) for place, order in enumerate(orders)]
    return vote(items, Asked(partial=True, **config), candidates=names)


def table(made: dict[str, Any]) -> dict[str, Any]:
    return {row["candidate"]: (row["rank"], row["score"], row["first_choices"]) for row in made["ranking"]}


@given(elections(partial=True), st.sampled_from(METHODS), st.randoms(use_true_random=False))
def test_it_does_not_matter_who_voted_how_or_in_which_order(
    election: tuple[Orders, list[str]], method: str, random: Any
) -> None:
    orders, names = election
    shuffled = random.sample(orders, len(orders))
    for tie_break in ("none", "borda", "order"):
        one = count(orders, names, method=method, tie_break=tie_break)
        other = count(shuffled, names, method=method, tie_break=tie_break)
        for key in ("winner", "deadlock", "agreement", "ranking", "tied", "cycle", "pairwise", "tie_break"):
            assert one[key] == other[key], key


@given(elections(partial=True), st.sampled_from(METHODS), st.sampled_from(["none", "borda"]))
def test_it_does_not_matter_what_the_candidates_are_called(
    election: tuple[Orders, list[str]], method: str, tie_break: str
) -> None:
    orders, names = election
    made = count(orders, names, method=method, tie_break=tie_break)
    for called in permutations(names):
        new = dict(zip(names, called, strict=True))
        renamed = count([tuple(new[n] for n in o) for o in orders], names, method=method, tie_break=tie_break)
        assert renamed["winner"] == (new[made["winner"]] if made["winner"] else None)
        assert renamed["deadlock"] == made["deadlock"]
        assert table(renamed) == {new[name]: row for name, row in table(made).items()}
        assert set(renamed["tied"]) == {new[name] for name in made["tied"]}


@given(elections(), st.sampled_from(["majority", "condorcet"]))
def test_who_is_first_on_more_than_half_of_the_ballots_wins(election: tuple[Orders, list[str]], method: str) -> None:
    orders, names = election
    for name in names:
        if 2 * sum(order[0] == name for order in orders) > len(orders):
            assert count(orders, names, method=method)["winner"] == name


@given(elections(partial=True))
def test_condorcet_chooses_whoever_beats_all_and_nobody_else(election: tuple[Orders, list[str]]) -> None:
    orders, names = election

    def ahead(a: str, b: str) -> int:
        return sum(a in o and (b not in o or o.index(a) < o.index(b)) for o in orders)

    winners = [a for a in names if all(ahead(a, b) > ahead(b, a) for b in names if b != a)]
    made = count(orders, names, method="condorcet")
    assert made["winner"] == (winners[0] if winners else None)
    around = made["cycle"]
    assert all(ahead(a, b) > ahead(b, a) for a, b in zip(around, [*around[1:], *around[:1]], strict=True))
    tied = made["tied"]
    assert bool(tied) == (not winners)
    assert all(ahead(a, b) > ahead(b, a) for a in tied for b in names if b not in tied), "a set that beats the rest"
    for size in range(1, len(tied)):
        for some in permutations(tied, size):
            assert not all(ahead(a, b) > ahead(b, a) for a in some for b in names if b not in some), "the smallest one"


@given(elections(partial=True), st.data())
def test_to_be_raised_on_a_ballot_never_costs_points(election: tuple[Orders, list[str]], data: st.DataObject) -> None:
    orders, names = election
    which = data.draw(st.integers(0, len(orders) - 1))
    place = data.draw(st.integers(0, len(orders[which]) - 1))
    name = orders[which][place]
    raised = [n for n in orders[which] if n != name]
    raised.insert(data.draw(st.integers(0, place)), name)
    after = [tuple(raised) if i == which else order for i, order in enumerate(orders)]
    assert borda(after, names).scores[name] >= borda(orders, names).scores[name]
    before = borda(orders, names)
    if before.winner == name:
        assert borda(after, names).winner == name


@given(elections(partial=True))
def test_points_are_neither_lost_nor_made_up(election: tuple[Orders, list[str]]) -> None:
    orders, names = election
    n = len(names)
    assert sum(borda(orders, names).scores.values()) == Fraction(len(orders) * n * (n - 1), 2)
    assert sum(condorcet(orders, names).scores.values()) == 0


@settings(max_examples=50)
@given(elections(partial=True), st.sampled_from(METHODS), st.sampled_from(["none", "borda", "order"]))
def test_the_record_of_a_vote_fits_itself(election: tuple[Orders, list[str]], method: str, tie_break: str) -> None:
    orders, names = election
    made = count(orders, names, method=method, tie_break=tie_break)
    assert made["decided"] == (made["winner"] is not None) == (made["deadlock"] is None)
    assert [tuple(each["order"]) for each in made["votes"]] == orders
    if made["decided"]:
        against = {each["input"] for each in made["dissent"]}
        assert against == {f"v{i}" for i, order in enumerate(orders) if order[0] != made["winner"]}
        assert made["agreement"] == (len(orders) - len(against)) / len(orders)
