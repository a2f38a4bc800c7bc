"""A graph is driven with recorded answers: the same way, or where it differs, and who is left without an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core import replay as module
from agent_graph.core.graph import Graph
from agent_graph.core.record import canonical_record
from agent_graph.core.replay import replay
from tests.core.test_following import drive, graph_of, routed
from tests.properties.driver import orders, start
from tests.properties.world import World
from tests.specs import gate, llm, node, passthrough, put, router, rule, spec


def again(graph: Graph, log: list[e.Event], other: Graph) -> module.Replayed:
    return replay(other, log, recorded=graph)


def lined(first: str = "a", **config: Any) -> Graph:
    """A router in front, so that a changed rule moves all that follows behind the divergence."""
    return graph_of(spec(
        router("r", rule("n", "lt", 9 if first == "a" else 1, "a"), default=["b"]), llm("a"), passthrough("b"),
        llm("z", output_key="said", **config), edges="a>z b>z z>END", output_key="said", name="lined",
    ))  # fmt: skip


def test_the_same_graph_goes_the_same_way() -> None:
    graph = routed()
    log = drive(graph).log
    done = again(graph, log, graph)
    assert done.same
    assert (done.unanswered, done.asked_otherwise, done.log) == ((), (), log)


def test_a_way_that_was_never_taken_has_no_recorded_answers_and_none_is_guessed() -> None:
    graph = routed()
    done = again(graph, drive(graph).log, routed(threshold=1))
    assert not done.same
    assert [(one.firing, one.why) for one in done.unanswered] == [("high#1", "the recorded answer is not there")]
    assert done.run.status == "running"


def test_behind_a_divergence_recorded_answers_are_given_to_the_same_questions() -> None:
    graph, other = lined(), lined("b")
    done = again(graph, drive(graph).log, other)
    assert done.divergence is not None
    assert done.divergence.firing == "r#1"
    assert done.run.status == "completed"
    assert done.unanswered == ()


def test_behind_a_divergence_an_answer_to_another_question_is_not_taken() -> None:
    graph = lined()
    other = graph_of({**lined("b").spec, "nodes": [
        {**one, "config": {**one["config"], "prompt": "another"}} if one["id"] == "z" else one
        for one in lined("b").spec["nodes"]
    ]})  # fmt: skip
    done = again(graph, drive(graph).log, other)
    assert [(one.firing, one.why) for one in done.unanswered] == [
        ("z#1", "the recorded answer was given to another question")
    ]


def test_a_log_that_does_not_follow_from_its_answers_is_nothing_to_go_by() -> None:
    graph = routed()
    log = drive(graph).log
    broken = [*log[:3], replace(log[3], fact=e.NodeStarted("q#1")), *log[4:]]
    with pytest.raises(ValueError, match="does not follow"):
        again(graph, broken, graph)


def gated(key: str = "draft", first: str = "a", **config: Any) -> Graph:
    return graph_of(spec(
        router("r", rule("n", "lt", 9 if first == "a" else 1, "a"), default=["b"]), put("a", x=1), put("b", x=2),
        gate("g", subject_key=key, **config), put("z", said="done"), edges="a>g b>g g>z z>END", output_key="said",
        name="gated",
    ))  # fmt: skip


def decided(graph: Graph) -> list[e.Event]:
    """A run whose gate was approved after an edit."""
    drive_ = start(graph, {"n": 2, "draft": "d", "other": "o"}, World(1, silent=1.0), orders(0)["fifo"]).go()
    (asked,) = drive_.gates.values()
    vote = {"decision": "edit", "decided_by": "ann", "via": "cli", "subject_digest": "sha256:x"}
    drive_.record(e.ApprovalVoted("g#1", asked.approval_id, dict(vote), subject="e"))
    drive_.record(e.ApprovalDecided("g#1", asked.approval_id, "edit", "", "ann", "cli"))
    return drive_.go().log


EDITS = {"allowed_decisions": ["approve", "edit", "reject"]}


def test_a_recorded_decision_is_obeyed_where_the_gate_asks_about_the_same() -> None:
    graph = gated(**EDITS)
    done = again(graph, decided(graph), gated(first="b", **EDITS))
    assert not done.same
    assert done.run.status == "completed"
    assert [one["status"] for one in canonical_record(done.graph, done.log)["approvals"]] == ["approved"]  # type: ignore[union-attr,call-overload,index]  # a list of objects


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (gated("other", first="b", **EDITS), "about another subject"),
        (gated(first="b", quorum=2, **EDITS), "on other terms"),
    ],
    ids=["subject", "terms"],
)
def test_a_decision_opens_no_gate_that_asks_something_else(other: Graph, said: str) -> None:
    graph = gated(**EDITS)
    done = again(graph, decided(graph), other)
    assert done.run.status == "waiting"
    (left,) = done.unanswered
    assert left.firing == "g#1"
    assert said in left.why


def test_a_gate_that_nobody_decided_stays_open() -> None:
    graph = gated()
    log = drive(graph, {"n": 2, "draft": "d"}, World(1, silent=1.0)).log
    done = again(graph, log, gated(first="b"))
    assert [(one.firing, one.why) for one in done.unanswered] == [("g#1", "the recorded decision is not there")]


def waits(first: str = "a") -> Graph:
    """Everything that waits lies behind the router."""
    return graph_of(spec(
        router("r", rule("n", "lt", 9 if first == "a" else 1, "a"), default=["b"]), passthrough("a"), passthrough("b"),
        node("t", "timer", delay_ms=5), node("s", "signal", name="paid"), node("u", "timer", delay_ms=9),
        node("p", "parallel", for_each={"path": "items"}, entry="i", join="j"), llm("i", "{item}"), passthrough("k"),
        node("j", "join", inputs=["i"], output="got"), put("z", said="done"),
        edges="a>t b>t t>s s>u u>p i>j j>z z>END k>END a>k b>k", output_key="said", name="waits",
    ))  # fmt: skip


def test_moments_and_messages_come_as_they_came() -> None:
    graph = waits()
    log = drive(graph, {"n": 2, "items": ["x", "y"]}).log
    done = again(graph, log, waits("b"))
    assert done.run.status == "completed", done.unanswered
    without = [event for event in log if not isinstance(event.fact, e.TimerFired) or event.fact.firing != "u#1"]
    at = next(place for place, one in enumerate(log) if isinstance(one.fact, e.SignalReceived))
    assert without != log
    done = again(graph, log[:at], waits("b"))
    assert [(one.firing, one.why) for one in done.unanswered] == [
        ("s#1", "the message 'paid' did not come in the record")
    ]
    assert done.run.status == "waiting"


def test_a_timer_of_which_the_record_knows_nothing_ends_by_itself() -> None:
    graph = lined()
    other = graph_of(spec(
        router("r", rule("n", "lt", 1, "a"), default=["b"]), passthrough("a"), node("b", "timer", delay_ms=50),
        llm("z", output_key="said"), edges="a>z b>z z>END", output_key="said", name="lined",
    ))  # fmt: skip
    done = again(graph, drive(graph).log, other)
    assert done.run.status == "completed"


def test_a_cancel_comes_when_nothing_else_is_left() -> None:
    graph = gated()
    drive_ = start(graph, {"n": 2, "draft": "d"}, World(1, silent=1.0), orders(0)["fifo"]).go()
    drive_.record(e.RunCancelRequested("enough"))
    log = drive_.go().log
    done = again(graph, log, gated(first="b"))
    assert done.run.status == "cancelled"
    assert done.unanswered == ()


def test_failed_attempts_fail_again_by_the_other_graphs_rules() -> None:
    graph = lined()
    log = drive(graph, world=World(7, stumbling=1.0)).log
    assert any(isinstance(event.fact, e.NodeRetried) for event in log)
    done = again(graph, log, lined("b", on_error="continue"))
    assert done.run.terminal or done.unanswered
    assert any(isinstance(event.fact, e.NodeRetried) for event in done.log)


def test_a_gate_that_was_placed_is_placed_again() -> None:
    graph = lined()
    drive_ = start(graph, {"n": 2, "topic": "moss"}, World(1), orders(0)["fifo"])
    drive_.do_all()
    drive_.record(e.GatePlaced("z", "may z begin?", 1000))
    log = drive_.go().log
    done = again(graph, log, lined("b"))
    assert any(isinstance(event.fact, e.GatePlaced) for event in done.log)


def unheard() -> Graph:
    """Where the messages of `waits` find nobody; a gate keeps it from ending."""
    return graph_of(spec(
        router("r", rule("n", "lt", 1, "a"), default=["b"]), passthrough("a"), gate("b"), put("z", said="x"),
        edges="a>z b>z z>END", output_key="said", name="waits",
    ))  # fmt: skip


def early(graph: Graph) -> list[e.Event]:
    """A run whose message came before anybody waited."""
    drive_ = start(graph, {"n": 2, "items": []}, World(1, silent=1.0), orders(0)["fifo"])
    drive_.do_all()
    drive_.record(e.SignalReceived("paid", 1))
    return drive_.go().log


def test_a_message_for_which_nobody_waits_is_left_out() -> None:
    graph = waits()
    for log in (drive(graph, {"n": 2, "items": []}).log, early(graph)):
        done = again(graph, log, unheard())
        assert [one.firing for one in done.unanswered] == ["b#1"]
        assert not any(isinstance(event.fact, e.SignalReceived) for event in done.log)


def test_a_message_that_came_early_comes_early_again() -> None:
    graph = waits()
    done = again(graph, early(graph), waits("b"))
    assert done.run.status == "completed", done.unanswered


def test_while_items_of_a_node_wait_its_own_time_is_not_over() -> None:
    def timed(first: str = "a") -> Graph:
        return graph_of(spec(
            router("r", rule("n", "lt", 9 if first == "a" else 1, "a"), default=["b"]), passthrough("a"),
            passthrough("b"),
            node("p", "parallel", for_each={"path": "items"}, entry="i", join="j", timeout_ms=5000),
            node("i", "signal", name="paid"), node("j", "join", inputs=["i"], output="got"), put("z", said="x"),
            edges="a>p b>p i>j j>z z>END", output_key="said", name="timed",
        ))  # fmt: skip

    graph = timed()
    one = start(graph, {"n": 2, "items": ["x"]}, World(1), orders(0)["fifo"])
    one.do_all()
    done = again(graph, one.log, timed("b"))
    assert [left.firing for left in done.unanswered] == ["p#1[0]/i#1"]


def test_a_circle_that_recorded_answers_keep_open_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lined()
    monkeypatch.setattr(module, "MOST_EVENTS", 5)
    done = again(graph, drive(graph).log, lined("b"))
    assert not done.run.terminal
