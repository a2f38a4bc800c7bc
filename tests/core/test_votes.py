"""A vote: which ballots count, who wins by which method, and what is said where nobody does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from agent_graph.core.ops.votes import candidates_in, vote
from agent_graph.errors import NodeFailure


@dataclass(frozen=True)
class Asked:
    """The fields of a `join` node that a vote reads, with their defaults."""

    method: str = "majority"
    ballots: str = "one"
    ballot_path: str = ""
    reason_path: str = "reason"
    partial: bool = False
    on_invalid: str = "error"
    min_agreement: float | None = None
    tie_break: str = "none"
    require: bool = False


def count(*ballots: Any, candidates: list[str] | None = None, **config: Any) -> dict[str, Any]:
    items = [(f"v{place}", ballot) for place, ballot in enumerate(ballots)]
    return vote(items, Asked(**config), candidates=candidates)


def refused(*ballots: Any, **config: Any) -> NodeFailure:
    with pytest.raises(NodeFailure) as failed:
        count(*ballots, **config)
    assert failed.value.failure_class == "invalid"
    return failed.value


# -- ballots -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ballot", "order"),
    [
        ("A", ["A"]), (" A ", ["A"]), (["B", "A"], ["B", "A"]), ({"choice": "A"}, ["A"]),
        ({"ranking": ["B", "A"], "choice": None}, ["B", "A"]), (True, ["true"]), (3, ["3"]),
        ({"choice": False}, ["false"]), ({"ranking": "B > A>C"}, ["B", "A", "C"]), ("B > A", ["B > A"]),
    ],
)  # fmt: skip
def test_a_ballot_is_a_choice_or_a_ranking(ballot: Any, order: list[str]) -> None:
    assert count(ballot)["votes"] == [{"input": "v0", "order": order, "reason": ""}]


def test_a_ballot_may_stand_inside_and_the_voters_words_beside_it() -> None:
    made = count({"my": {"vote": "A"}, "why": {"text": "it is short"}}, ballot_path="my.vote", reason_path="why.text")
    assert made["votes"] == [{"input": "v0", "order": ["A"], "reason": "it is short"}]
    assert count({"choice": "A", "reason": 7})["votes"][0]["reason"] == ""


def test_an_input_may_hold_many_ballots() -> None:
    made = count(["A", "B", {"choice": "A"}], None, ballots="list")
    assert [(each["input"], each["order"]) for each in made["votes"]] == [
        ("v0[0]", ["A"]), ("v0[1]", ["B"]), ("v0[2]", ["A"]),
    ]  # fmt: skip
    assert made["abstained"] == ["v1"]
    assert "a list of ballots is expected, not a text" in refused("A", ballots="list").message


FAULTS = [
    ({}, "an object has `choice` or `ranking`"),
    ({"choice": "A", "ranking": ["A"]}, "not both"),
    ({"choice": ["A"]}, "`choice` is one name"),
    ({"ranking": "A"}, "`ranking` is a list of names"),
    ({"ranking": "A > "}, "named by a text"),
    ({"ranking": "A > B > A"}, "'A' is ranked twice"),
    ([], "the ranking is empty"),
    ([["A"]], "named by a text, not by a list"),
    ([{"name": "A"}], "named by a text, not by an object"),
    ([None], "not by null"),
    (1.5, "not by a number"),
    ("", "not by a text"),
    (["A", "C"], "there is no candidate 'C'"),
    (["A", "A"], "'A' is ranked twice"),
    (["A", " A"], "'A' is ranked twice"),
    ("a", "there is no candidate 'a'"),
]


@pytest.mark.parametrize(("ballot", "fault"), FAULTS)
def test_a_ballot_that_cannot_be_counted_fails_with_what_is_wrong(ballot: Any, fault: str) -> None:
    failed = refused("A", ballot, candidates=["A", "B"])
    assert failed.code == "VOTE_BALLOT_INVALID"
    assert fault in failed.message
    assert [each["input"] for each in failed.details["ballots"]] == ["v1"]


@pytest.mark.parametrize(("ballot", "fault"), FAULTS)
def test_or_it_counts_for_nobody_and_is_told(ballot: Any, fault: str) -> None:
    made = count("A", ballot, candidates=["A", "B"], on_invalid="spoil", min_agreement=0.5)
    assert fault in made["spoiled"][0]["fault"]
    assert (made["voters"], made["agreement"], made["winner"]) == (2, 0.5, "A")


def test_a_ballot_that_is_not_where_it_should_be_is_a_fault() -> None:
    assert "there is no ballot at `ballot_path`" in refused({"x": 1}, ballot_path="vote").message


def test_all_faults_are_told_at_once_and_shown_up_to_a_bound() -> None:
    failed = refused(*[[]] * 8)
    assert len(failed.details["ballots"]) == 8
    assert "and 3 more" in failed.message


def test_a_ranking_that_leaves_candidates_out_is_a_fault_unless_that_is_allowed() -> None:
    names = [f"c{n}" for n in range(8)]
    failed = refused(["c1"], method="borda", candidates=names)
    assert failed.code == "VOTE_BALLOT_INVALID"
    assert "leaves out 'c0', 'c2', 'c3', 'c4', 'c5' ..." in failed.message
    assert count(["c1"], method="borda", candidates=names, partial=True)["winner"] == "c1"
    spoiled = count(["A", "B"], ["A"], method="borda", candidates=["A", "B"], on_invalid="spoil")
    assert "leaves out 'B'" in spoiled["spoiled"][0]["fault"]
    assert (spoiled["voters"], len(spoiled["votes"])) == (2, 1)


def test_who_says_nothing_abstains_and_is_a_voter_all_the_same() -> None:
    made = count("A", None, {"error": "it failed"}, min_agreement=0.5)
    assert (made["abstained"], made["voters"]) == (["v1", "v2"], 3)
    assert (made["winner"], made["deadlock"]) == (None, "below_agreement")


def test_without_a_list_the_candidates_are_those_named_in_the_order_of_the_inputs() -> None:
    assert [row["candidate"] for row in count("C", "A", "B")["ranking"]] == ["C", "A", "B"]


# -- methods -----------------------------------------------------------------------------------------------------------


def test_a_majority_is_more_than_half_of_the_first_choices() -> None:
    made = count("A", ["A", "B"], {"choice": "B", "reason": "cheaper"}, candidates=["A", "B", "C"])
    assert (made["winner"], made["decided"], made["deadlock"], made["agreement"]) == ("A", True, None, 2 / 3)
    assert made["ranking"] == [
        {"candidate": "A", "rank": 1, "score": 2, "first_choices": 2},
        {"candidate": "B", "rank": 2, "score": 1, "first_choices": 1},
        {"candidate": "C", "rank": 3, "score": 0, "first_choices": 0},
    ]
    assert made["dissent"] == [{"input": "v2", "choice": "B", "winner_rank": None, "reason": "cheaper"}]


@pytest.mark.parametrize(
    ("ballots", "config", "winner", "deadlock"),
    [
        (["A", "A", "B", "C"], {}, None, "below_agreement"),
        (["A", "A", "B", "C"], {"min_agreement": 0}, "A", None),
        (["A", "A", "B", "C"], {"min_agreement": 0.5}, "A", None),
        (["A", "A", "B"], {"min_agreement": 0.75}, None, "below_agreement"),
        (["A", "B"], {}, None, "tie"),
        (["A", "B"], {"tie_break": "order"}, None, "below_agreement"),
        (["B", "A"], {"tie_break": "order", "min_agreement": 0.5}, "A", None),
        ([["A", "B"], ["C", "B"]], {"tie_break": "borda", "min_agreement": 0}, None, "tie"),
        ([["A", "C", "B"], ["B", "A", "C"]], {"tie_break": "borda", "min_agreement": 0}, "A", None),
    ],
)
def test_what_a_majority_needs(ballots: Any, config: dict[str, Any], winner: str | None, deadlock: str | None) -> None:
    made = count(*ballots, candidates=["A", "B", "C"], **config)
    assert (made["winner"], made["deadlock"], made["decided"]) == (winner, deadlock, winner is not None)
    if winner is None:
        assert made["dissent"] == []


def test_borda_points_fall_by_one_a_place_and_what_is_left_out_shares_the_rest() -> None:
    made = count(["A", "B", "C"], ["B", "A", "C"], ["B"], method="borda", candidates=["A", "B", "C"], partial=True)
    assert [(row["candidate"], row["score"], row["rank"]) for row in made["ranking"]] == [
        ("B", 5, 1), ("A", 3.5, 2), ("C", 0.5, 3),
    ]  # fmt: skip
    assert made["winner"] == "B"
    assert made["dissent"] == [{"input": "v0", "choice": "A", "winner_rank": 2, "reason": ""}]


def test_borda_may_choose_whom_a_majority_did_not_and_agreement_can_forbid_that() -> None:
    ballots = [["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2
    names = ["A", "B", "C"]
    assert count(*ballots, method="majority", candidates=names)["winner"] == "A"
    assert count(*ballots, method="borda", candidates=names)["winner"] == "B"
    made = count(*ballots, method="borda", candidates=names, min_agreement=0.5)
    assert (made["winner"], made["deadlock"], made["agreement"]) == (None, "below_agreement", 0.4)


def test_equal_scores_share_a_rank() -> None:
    made = count(["A", "B"], ["B", "A"], method="borda", candidates=["A", "B"])
    assert [row["rank"] for row in made["ranking"]] == [1, 1]
    assert (made["deadlock"], made["tied"], made["tie_break"]) == ("tie", ["A", "B"], None)
    broken = count(["A", "B"], ["B", "A"], method="borda", candidates=["B", "A"], tie_break="order")
    assert (broken["winner"], broken["tie_break"], broken["tied"]) == ("B", "order", ["B", "A"])
    assert count(["A", "B"], ["B", "A"], method="borda", candidates=["A", "B"], tie_break="borda")["deadlock"] == "tie"


def test_condorcet_chooses_who_beats_all_others_head_to_head() -> None:
    ballots = [["A", "B", "C"]] * 2 + [["C", "B", "A"]] * 2 + [["B", "A", "C"]]
    made = count(*ballots, method="condorcet", candidates=["A", "B", "C"])
    assert (made["winner"], made["agreement"]) == ("B", 0.2)
    assert made["pairwise"] == {"A": {"B": 2, "C": 3}, "B": {"A": 3, "C": 3}, "C": {"A": 2, "B": 2}}
    assert [(row["candidate"], row["score"]) for row in made["ranking"]] == [("B", 2), ("A", 0), ("C", -2)]


CYCLE = [["A", "B", "C", "D"], ["B", "C", "A", "D"], ["C", "A", "B", "D"]]
NAMES = ["A", "B", "C", "D"]


def test_a_cycle_is_told_and_nobody_wins_by_it() -> None:
    made = count(*CYCLE, method="condorcet", candidates=NAMES)
    assert (made["winner"], made["deadlock"]) == (None, "cycle")
    assert made["cycle"] == ["A", "B", "C"]
    assert made["tied"] == ["A", "B", "C"], "D is beaten by all of them"
    assert count(*CYCLE, method="condorcet", candidates=[*reversed(NAMES)])["cycle"] == ["C", "A", "B"]


def test_a_cycle_is_settled_where_the_spec_says_how() -> None:
    more = [["A", "B", "D", "C"], ["B", "C", "D", "A"], ["C", "A", "B", "D"]]
    for tie_break, winner in (("order", "A"), ("borda", "B")):
        made = count(*more, method="condorcet", candidates=NAMES, tie_break=tie_break)
        assert (made["cycle"], made["winner"], made["tie_break"]) == (["A", "B", "C"], winner, tie_break)


def test_pairs_that_are_even_are_a_tie_and_no_cycle() -> None:
    made = count(["A", "B"], ["B", "A"], method="condorcet", candidates=["A", "B"])
    assert (made["deadlock"], made["cycle"], made["tied"]) == ("tie", [], ["A", "B"])


def test_a_ranking_says_nothing_of_those_it_leaves_out_among_themselves() -> None:
    made = count(["A"], ["B", "C", "A"], method="condorcet", candidates=["A", "B", "C"], partial=True)
    assert made["pairwise"] == {"A": {"B": 1, "C": 1}, "B": {"A": 1, "C": 1}, "C": {"A": 1, "B": 0}}


@pytest.mark.parametrize("method", ["majority", "borda", "condorcet"])
def test_where_no_ballot_counts_there_is_no_winner(method: str) -> None:
    for names in (None, ["A", "B"]):
        made = count(None, [], method=method, candidates=names, on_invalid="spoil", tie_break="order")
        assert (made["winner"], made["deadlock"], made["agreement"], made["votes"]) == (None, "no_ballots", 0.0, [])


def test_a_winner_can_be_demanded() -> None:
    assert count("A", require=True)["winner"] == "A"
    failed = refused(*CYCLE, method="condorcet", candidates=NAMES, require=True)
    assert failed.code == "VOTE_DEADLOCK"
    assert failed.details == {"deadlock": "cycle", "tied": ["A", "B", "C"], "cycle": ["A", "B", "C"]}


def test_more_candidates_than_can_be_compared_are_refused() -> None:
    names = [f"c{n}" for n in range(101)]
    for method in ("borda", "condorcet"):
        failed = refused(names, method=method, candidates=names)
        assert (failed.code, failed.details["limit"]) == ("VOTE_CANDIDATES_INVALID", 100)
    assert count("c1", candidates=names)["winner"] == "c1"


@pytest.mark.parametrize(("value", "names"), [(["A", 2], ["A", "2"]), ({"A": "text", "B": None}, ["A", "B"])])
def test_candidates_may_stand_in_the_state(value: Any, names: list[str]) -> None:
    assert candidates_in(value, "k") == names


@pytest.mark.parametrize("value", [None, "A", [], {}, ["A", "A"], ["A", {}], ["A", " A"]])
def test_what_names_no_candidates_is_refused(value: Any) -> None:
    with pytest.raises(NodeFailure) as failed:
        candidates_in(value, "k")
    assert failed.value.code == "VOTE_CANDIDATES_INVALID"
