"""The facts of a run and their stored form: defaults left out, nothing lost, nothing unknown let in."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import Write

ERROR = {"code": "X", "message": "y"}
SAMPLES: list[e.Fact] = [
    e.RunAccepted("run-1", "g", "sha256:0", None),
    e.RunAccepted(
        "run-1", "g", "sha256:0", {"a": [10**40]}, thread_id="t", model="m", started_by="cli", principal="ann"
    ),
    e.RunAccepted("run-1", "g", "sha256:0", None, policy={"profile": "p", "bounds": ["max_llm_calls"]}),
    e.RunStarted(),
    e.RunInterrupted("why"),
    e.RunInterrupted("why", dict(ERROR)),
    e.RunResumed(),
    e.RunCancelRequested("enough"),
    e.RunCompleted(),
    e.RunFailed(dict(ERROR)),
    e.RunCancelled("enough"),
    e.NodeStarted("a#1"),
    e.NodeStarted("a#1", 2),
    e.ModelAnswered("a#1", {"text": ""}),
    e.ModelAnswered("a#1", {"text": ""}, 2, "sha256:0"),
    e.CacheHit("a#1", {"text": ""}, "sha256:0", "run-0"),
    e.ToolCalled("a#1", "t1", "forecast", {"city": "Oslo"}),
    e.ToolCalled("a#1", "t1", "forecast", None, "weather", "forecast", 2),
    e.ToolAnswered("a#1", "t1", "rain"),
    e.ToolAnswered("a#1", "t1", "The call failed", True, "TOOL_FAILED", 40_000, 2),
    e.EvidenceChecked("a#1", ({"witness_id": "w", "digest": "sha256:0", "locator_digest": "sha256:1"},)),
    e.EvidenceChecked("a#1", (), ({"code": "WITNESS_NOT_FOUND", "message": "no", "claim": 0},), 2),
    e.NodeFinished("a#1"),
    e.NodeFinished(
        "a#1", (Write("set", ("k",), None), Write("delete", ("l", "m"))), (None,), (False,), ("b", "END"), {"b": 0}, 3
    ),
    e.NodeFinished("a#1", targets=()),
    e.NodeStarted("a#1", 2, "small"),
    e.NodeFailed("a#1", dict(ERROR)),
    e.NodeFailed("a#1", dict(ERROR), 2, ("b", "END")),
    e.NodeRetried("a#1", dict(ERROR), 250),
    e.NodeRetried("a#1", dict(ERROR), 0, 2, "small"),
    e.MutexGranted("a#1", "printer"),
    e.JoinClosed("f#1/j#1", ("a", "b"), True),
    e.TimerSet("a#1", 250),
    e.TimerSet("a#1", until_ms=5),
    e.TimerFired("a#1"),
    e.GatePlaced("a", "May it?", 5),
    e.GatePlaced("a", "May it?", 5, ("legal",), ("approve",), "ann", "cli"),
    e.SignalAwaited("a#1", "paid"),
    e.SignalAwaited("a#1", "paid", False, 5),
    e.SignalReceived("paid", None),
    e.SignalReceived("paid", {"n": 1}, "a#1", "ann", "cli"),
    e.RouteTaken("a#1", "rules/0", ("b",)),
    e.RouteTaken("a#1", "none", ()),
    e.LoopExhausted("a#1", 3),
    e.WriteConflict("END", "k", "a#1", ("b#1", "c#1")),
    e.FramesOpened("a#1", 3),
    e.BranchFailed("p", "a", dict(ERROR)),
    e.ItemsClosed("a#1", (0, 2)),
    e.ItemsClosed("a#1", (), short=True),
    e.FrameFailed(dict(ERROR)),
    e.FiringCancelled("a#1", "why"),
    e.ApprovalOpened("a#1", "apr-1", 1, "Fine?", None, "sha256:0", (), ("approve",), 5),
    e.ApprovalOpened("a#1", "apr-1", 1, "Fine?", {"x": 1}, "sha256:0", ("legal",), ("approve",), 5, 2, ("cli",)),
    e.ApprovalOpened(
        "a#1",
        "apr-1",
        2,
        "Fine?",
        None,
        "sha256:0",
        (),
        ("edit",),
        50,
        self_approval=False,
        remind_ms=5,
        subject_schema={"type": "string"},
    ),
    e.ApprovalVoted("a#1", "apr-1", {"decision": "approve"}),
    e.ApprovalVoted("a#1", "apr-1", {"decision": "edit", "patch": [{"op": "remove", "path": "/a"}]}, {"b": 1}),
    e.ApprovalReminded("a#1", "apr-1"),
    e.AnswerGiven("a#1", {"text": "x"}, 2),
    e.RunForked("run-1", 4, "a#1", {"k": 1}, ("l",), {"a": "m"}, {"b": "x"}, "sha256:0", asks=({"node_id": "g"},)),
    e.ApprovalDecided("a#1", "apr-1", "approve", "", "ann", "cli"),
    e.ApprovalExpired("a#1", "apr-1"),
    e.ApprovalWithdrawn("a#1", "apr-1", "why"),
    e.BudgetGranted("a#1", 2, llm_calls=1, tokens=40),
    e.BudgetGranted("a#1", nodes=1),
    e.BudgetSettled("a#1", 2, 17),
    e.BudgetSettled("a#1", held=40),
    e.BudgetRefused("max_nodes", 3, 3, 1, firing="a#1"),
    e.BudgetRefused("max_wall_clock_ms", 3, 5, then="goto", targets=("b", "END")),
    e.Warned("a#1", "CODE", "text"),
    e.Warned("a#1", "CODE", "text", {"n": 1}),
]


def test_every_fact_has_a_type_of_its_own() -> None:
    assert {type(fact) for fact in SAMPLES} == set(e.FACTS.values())
    assert all(cls.type == name for name, cls in e.FACTS.items())


@pytest.mark.parametrize("fact", SAMPLES, ids=lambda fact: fact.type)
def test_a_fact_is_read_back_as_it_was(fact: e.Fact) -> None:
    assert e.from_json(json.loads(json.dumps(e.to_json(fact)))) == fact


@pytest.mark.parametrize("fact", SAMPLES, ids=lambda fact: fact.type)
def test_a_fact_may_be_read_where_its_place_in_the_log_stands_beside_it(fact: e.Fact) -> None:
    body = {**json.loads(json.dumps(e.to_json(fact))), "seq": 4, "at_ms": 5, "prev": "0"}
    assert e.from_json(body) == fact
    assert not {"seq", "at_ms", "prev", "type"} & {f.name for f in fields(fact)}


def test_what_holds_its_default_is_left_out() -> None:
    assert e.to_json(e.NodeFinished("a#1")) == {"type": "node_finished", "firing": "a#1"}
    assert e.to_json(e.NodeStarted("a#1", 1)) == {"type": "node_started", "firing": "a#1"}
    assert e.to_json(e.NodeFinished("a#1", targets=()))["targets"] == ()


def test_a_type_or_field_this_program_does_not_know_is_refused() -> None:
    with pytest.raises(KeyError, match="frame_opened"):
        e.from_json({"type": "frame_opened"})
    with pytest.raises(KeyError, match="colour"):
        e.from_json({"type": "run_started", "colour": "red"})
    with pytest.raises(KeyError):
        e.from_json({})


def test_a_fact_without_what_it_must_have_is_refused() -> None:
    with pytest.raises(TypeError, match="reason"):
        e.from_json({"type": "run_cancelled"})
