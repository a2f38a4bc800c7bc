"""`join` makes one value of what its branches left, in the order of `inputs`."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import Done, Write
from agent_graph.core.nodes import join
from agent_graph.core.nodes.base import Read, Target
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

BOTH = ["ra", "rb"]


def test_the_order_is_that_of_the_inputs_always() -> None:
    made = step(node("join", inputs=BOTH, output="all"), Seen({"rb": "B", "ra": "A"}))
    assert made == Done((Write("set", ("all",), ["A", "B"]),), output=["A", "B"])


def test_without_an_output_the_value_becomes_the_current_one() -> None:
    made = step(node("join", inputs=BOTH, mode="first_non_null"), Seen({"rb": 2}))
    assert made == Done(output=2, current=2)


def test_without_inputs_it_only_brings_branches_together() -> None:
    assert step(node("join", output="all"), Seen()) == Done()
    assert join.writes("n", join.Config(output="all")) == []
    assert not join.writes_current(join.Config())


def test_a_node_id_means_that_nodes_output() -> None:
    values = Seen({"outputs": {"lane": "from the node"}, "lane": "from the state"}, nodes=("lane",))
    assert step(node("join", inputs=["lane"]), values).output == ["from the node"]


def test_a_way_not_taken_is_null_in_its_place() -> None:
    assert step(node("join", inputs=["r1", "r2", "r3"]), Seen({"r1": 1, "r3": 3})).output == [1, None, 3]


def test_a_way_not_taken_can_be_left_out() -> None:
    assert step(node("join", inputs=["r1", "r2", "r3"], on_missing="skip"), Seen({"r1": 1, "r3": 3})).output == [1, 3]


def test_what_an_earlier_round_left_is_missing() -> None:
    values = Seen({"ra": 1, "rb": 2}, stale=("ra",))
    assert step(node("join", inputs=BOTH), values).output == [None, 2]


def test_keys_that_clash_follow_the_order_of_the_inputs() -> None:
    values = Seen({"rb": {"k": 1}, "ra": {"k": 2}})
    assert step(node("join", inputs=BOTH, mode="merge_objects"), values).output == {"k": 1}


@pytest.mark.parametrize(
    ("config", "state", "code"),
    [
        ({}, {}, "JOIN_NO_INPUTS"),
        ({"on_missing": "error"}, {"ra": 1}, "JOIN_INPUT_MISSING"),
        ({"mode": "quorum", "required": 2, "require": True}, {"ra": True, "rb": False}, "JOIN_QUORUM_NOT_MET"),
    ],
)
def test_what_cannot_be_joined_is_the_nodes_failure(
    config: dict[str, object], state: dict[str, object], code: str
) -> None:
    with pytest.raises(NodeFailure) as failed:
        step(node("join", inputs=BOTH, output="o", **config), Seen(state))
    assert failed.value.code == code
    assert "o" not in state


def test_output_key_is_another_name_for_output() -> None:
    made = step(node("join", inputs=["ra"], output_key="o"), Seen({"ra": 1}))
    assert made.writes == (Write("set", ("o",), [1]),)
    assert join.writes("n", join.Config(inputs=["ra"], output_key="o")) == ["o"]


def test_the_output_can_be_an_operand_of_a_reducer() -> None:
    made = step(node("join", inputs=BOTH, output="log"), Seen({"ra": 1, "rb": 2}, reducers={"log": "append"}))
    assert made.writes == (Write("operand", ("log",), [1, 2]),)


def test_it_says_what_it_reads_and_writes_and_chooses_nothing() -> None:
    config = join.Config(inputs=BOTH)
    assert join.reads(config) == [Read("ra", "/inputs/0", optional=True), Read("rb", "/inputs/1", optional=True)]
    assert join.reads(join.Config(inputs=["ra"], on_missing="error")) == [Read("ra", "/inputs/0")]
    assert join.writes_current(config)
    assert not join.writes_current(join.Config(inputs=BOTH, output="o"))
    assert not join.CHOOSES
    assert list(join.targets(config)) == []
    assert join.prepare(config) is None


@pytest.mark.parametrize(
    ("config", "issues"),
    [
        ({"inputs": BOTH, "output": "o", "output_key": "o"}, []),
        ({"inputs": BOTH, "output": "o", "output_key": "p"}, [("FIELD_CONFLICT", "/output_key")]),
        (
            {"inputs": BOTH, "mode": "proof_carrying_join", "required_fields": ["a..b"]},
            [("STATE_PATH_INVALID", "/required_fields/0")],
        ),
        ({"inputs": ["a..b"]}, [("STATE_PATH_INVALID", "/inputs/0")]),
        ({"inputs": BOTH, "output": "a."}, [("STATE_PATH_INVALID", "/output")]),
        ({"inputs": ["a", "b", "a"], "mode": "collect_object"}, [("DUPLICATE_INPUT", "/inputs/2")]),
        ({"inputs": ["a", "b", "a"]}, []),
        ({"inputs": BOTH, "required": 2}, [("FIELD_UNUSED", "/required")]),
        ({"inputs": BOTH, "mode": "quorum", "required": 3}, [("JOIN_QUORUM_IMPOSSIBLE", "/required")]),
        ({"inputs": BOTH, "mode": "quorum", "required": 2, "of": {"path": "ok", "op": "eq", "value": True}}, []),
        (
            {"inputs": BOTH, "mode": "quorum", "of": {"path": "ok", "op": "eq", "val": True}},
            [("FIELD_REQUIRED", "/of"), ("UNKNOWN_FIELD", "/of/val")],
        ),
    ],
)
def test_what_is_wrong_is_found_at_its_place(config: dict[str, object], issues: list[tuple[str, str]]) -> None:
    assert sorted(found("join", **config)) == sorted(issues)


def test_a_field_of_another_mode_is_a_warning_that_names_its_mode() -> None:
    (issue,) = join.check("n", join.Config(inputs=BOTH, require=True))
    assert issue.severity == "warning"
    assert "`quorum` and `all_success` and `vote`" in issue.message


@pytest.mark.parametrize(("require", "severity"), [(True, "error"), (False, "warning")])
def test_a_quorum_nobody_can_reach_is_an_error_where_it_is_required(require: bool, severity: str) -> None:
    (issue,) = join.check("n", join.Config(inputs=BOTH, mode="quorum", required=3, require=require))
    assert (issue.code, issue.severity) == ("JOIN_QUORUM_IMPOSSIBLE", severity)


def test_no_way_of_waiting_is_refused_as_such() -> None:
    assert {"wait", "cancel_rest"}.isdisjoint(join.UNAVAILABLE)


# -- votes: what counts as a ballot and who wins is in test_votes ------------------------------------------------------

VOTE = {"inputs": BOTH, "output": "o", "mode": "vote"}


def test_a_vote_writes_its_outcome_and_goes_on() -> None:
    made = step(node("join", **VOTE, candidates=["A ", "B"]), Seen({"ra": "A", "rb": {"choice": "A"}}))
    assert (made.output["winner"], made.transition, made.targets) == ("A", "", None)
    assert made.writes == (Write("set", ("o",), made.output),)
    assert step(node("join", inputs=BOTH, mode="vote"), Seen({"ra": "A"})).current["abstained"] == ["rb"]


def test_a_missing_voter_may_be_no_voter_at_all() -> None:
    assert step(node("join", **VOTE, on_missing="skip"), Seen({"ra": "A"})).output["voters"] == 1
    with pytest.raises(NodeFailure, match="no input holds a value"):
        step(node("join", **VOTE), Seen())


@pytest.mark.parametrize(
    ("state", "targets", "transition"),
    [({"ra": "A", "rb": "A"}, None, "decided"), ({"ra": "A", "rb": "B"}, ("x", "y"), "deadlock")],
)
def test_a_vote_without_a_winner_can_go_elsewhere(
    state: dict[str, object], targets: tuple[str, ...] | None, transition: str
) -> None:
    made = step(node("join", **VOTE, on_deadlock=["x", "y", "x"]), Seen(state))
    assert (made.targets, made.transition) == (targets, transition)
    assert made.output["deadlock"] == (None if targets is None else "tie")


def test_a_deadlock_that_leads_nowhere_ends_the_branch() -> None:
    made = step(node("join", **VOTE, on_deadlock=[]), Seen({"ra": "A", "rb": "B"}))
    assert made.targets == ("END",)


@pytest.mark.parametrize(("path", "current"), [("names", None), ("", ["A", "B"]), ("__input__", ["A", "B"])])
def test_candidates_may_stand_in_the_state(path: str, current: object) -> None:
    state = {"ra": "A", "rb": "C", "names": ["A", "B"]}
    where = {"candidates_path": path} if path else {"candidates": ["A", "B"]}
    with pytest.raises(NodeFailure, match="there is no candidate 'C'") as failed:
        step(node("join", **VOTE, **where), Seen(state, current=current))
    assert failed.value.code == "VOTE_BALLOT_INVALID"
    assert join.reads(join.Config(**VOTE, candidates_path="names"))[-1] == Read("names", "/candidates_path")


def test_candidates_that_are_not_there_are_the_nodes_failure() -> None:
    with pytest.raises(NodeFailure) as failed:
        step(node("join", **VOTE, candidates_path="nothing"), Seen({"ra": "A"}))
    assert failed.value.code == "VOTE_CANDIDATES_INVALID"


@pytest.mark.parametrize(
    ("config", "issues"),
    [
        ({"on_deadlock": ["x"], "min_agreement": 0.5, "method": "borda", "candidates": ["a", "b"]}, []),
        ({"candidates": ["a", "b", " a"]}, [("FIELD_INVALID", "/candidates/2")]),
        ({"candidates": ["a"], "candidates_path": "k"}, [("FIELD_CONFLICT", "/candidates_path")]),
        ({"on_deadlock": [], "require": True}, [("FIELD_CONFLICT", "/on_deadlock")]),
        ({"ballot_path": "a..b"}, [("STATE_PATH_INVALID", "/ballot_path")]),
        ({"inputs": []}, [("FIELD_REQUIRED", "/inputs")]),
        (
            {"mode": "quorum", "on_deadlock": ["x"], "tie_break": "order"},
            [("FIELD_UNUSED", "/on_deadlock"), ("FIELD_UNUSED", "/tie_break")],
        ),
    ],
)
def test_what_is_wrong_with_a_vote_is_found_at_its_place(
    config: dict[str, object], issues: list[tuple[str, str]]
) -> None:
    assert sorted(found("join", **(VOTE | config))) == sorted(issues)


def test_only_a_vote_has_targets_of_its_own() -> None:
    config = join.Config(**VOTE, on_deadlock=["x", "END"])
    assert list(join.targets(config)) == [Target("x", "/on_deadlock/0"), Target("END", "/on_deadlock/1")]
    assert list(join.targets(join.Config(inputs=BOTH, on_deadlock=["x"]))) == []
