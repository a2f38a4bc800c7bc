"""`loop` runs its body at most so many times, and says when it gave up."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import Done, Write
from agent_graph.core.nodes import loop
from agent_graph.core.nodes.base import Read, Target
from tests.core.nodes.seen import Seen, found, node, step

READY = {"path": "ready", "op": "eq", "value": True}
WAYS = {"entry": "body", "exit": "after"}


def played(of: object, *, state: dict[str, object], rounds: int) -> list[Done]:
    """The loop's answers to one token from outside and then `rounds` from the body."""
    answers = [step(of, Seen(state))]
    for _ in range(rounds):
        state = {**state, "loops": {"n": answers[-1].writes[0].value}}
        answers.append(step(of, Seen(state, reentered=True)))
    return answers


def test_a_token_from_outside_enters_at_nought_whatever_was_counted_before() -> None:
    of = node("loop", **WAYS, until=READY)
    made = step(of, Seen({"loops": {"n": 7}, "ready": True}))
    assert made == Done((Write("set", ("loops", "n"), 0),), targets=("body",), transition="entry")


def test_the_body_runs_at_most_max_iterations_times() -> None:
    answers = played(node("loop", **WAYS, max_iterations=3), state={}, rounds=3)
    assert [made.transition for made in answers] == ["entry", "entry", "entry", "limit"]
    assert [made.writes[0].value for made in answers] == [0, 1, 2, 3]
    assert [made.exhausted for made in answers] == [None, None, None, 3]
    assert answers[-1].targets == ("after",)


def test_one_iteration_runs_the_body_once() -> None:
    answers = played(node("loop", **WAYS, max_iterations=1), state={}, rounds=1)
    assert [made.transition for made in answers] == ["entry", "limit"]


def test_it_leaves_when_the_predicate_holds_even_at_the_bound() -> None:
    of = node("loop", **WAYS, until=READY, max_iterations=1)
    left = step(of, Seen({"loops": {"n": 0}, "ready": True}, reentered=True))
    assert left == Done((Write("set", ("loops", "n"), 1),), targets=("after",), transition="exit")


def test_it_goes_round_while_the_predicate_does_not_hold() -> None:
    of = node("loop", **WAYS, until=READY)
    assert step(of, Seen({"loops": {"n": 0}}, reentered=True)).transition == "entry"


@pytest.mark.parametrize("path", ["loops.n", "/loops/n", "tries"])
def test_the_predicate_sees_the_new_count(path: str) -> None:
    of = node("loop", **WAYS, counter_key="tries", until={"path": path, "op": "gte", "value": 2})
    answers = played(of, state={"tries": 0}, rounds=2)
    assert [made.transition for made in answers] == ["entry", "entry", "exit"]


def test_the_count_is_written_to_the_counter_key_as_well() -> None:
    of = node("loop", **WAYS, counter_key="stats.tries")
    made = step(of, Seen({"loops": {"n": 4}}, reentered=True))
    assert made.writes == (Write("set", ("loops", "n"), 5), Write("set", ("stats", "tries"), 5))


def test_a_node_id_with_dots_keeps_its_own_count() -> None:
    of = node("loop", id="a.b", **WAYS)
    made = step(of, Seen({"loops": {"a.b": 1, "a": {"b": 9}}}, reentered=True))
    assert made.writes == (Write("set", ("loops", "a.b"), 2),)


def test_a_lost_count_starts_anew() -> None:
    assert step(node("loop", **WAYS), Seen(reentered=True)).writes[0].value == 0


def test_the_limit_has_targets_of_its_own_when_given() -> None:
    at_bound = Seen({"loops": {"n": 0}}, reentered=True)
    given = step(node("loop", **WAYS, max_iterations=1, on_limit=["warn", "warn", "END"]), at_bound)
    assert (given.targets, given.transition, given.exhausted) == (("warn", "END"), "limit", 1)
    assert step(node("loop", **WAYS, max_iterations=1, on_limit=[]), at_bound).targets == ("END",)


def test_it_says_what_it_chooses_reads_and_writes() -> None:
    config = loop.Config(**WAYS, until={"all": [READY, {"path": "tries", "op": "gt", "value": 1}]}, counter_key="tries",
                         on_limit=["warn"])  # fmt: skip
    assert loop.CHOOSES
    assert loop.targets(config) == [Target("body", "/entry"), Target("after", "/exit"), Target("warn", "/on_limit/0")]
    assert loop.reads(config) == [Read("ready", "/until", optional=True)]
    assert loop.reads(loop.Config(**WAYS)) == []
    assert loop.writes("n", config) == ["tries"]
    assert loop.writes("n", loop.Config(**WAYS)) == []
    assert not loop.writes_current(config)


@pytest.mark.parametrize(
    ("config", "issues"),
    [
        ({"entry": "END", "exit": "after"}, [("FIELD_INVALID", "/entry")]),
        ({"entry": "body", "exit": "body"}, [("FIELD_INVALID", "/exit")]),
        ({**WAYS, "counter_key": ".a"}, [("STATE_PATH_INVALID", "/counter_key")]),
        ({**WAYS, "until": {**READY, "pth": "a"}}, [("UNKNOWN_FIELD", "/until/pth")]),
        (WAYS, []),
    ],
)
def test_what_is_wrong_is_found_at_its_place(config: dict[str, object], issues: list[tuple[str, str]]) -> None:
    assert found("loop", **config) == issues
