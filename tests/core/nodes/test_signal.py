"""`signal` waits for a message and hands on what it says."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import AwaitSignal, Done, SignalAnswer, TimeAnswer, Write
from agent_graph.core.nodes import signal
from agent_graph.core.nodes.base import Target
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step


def test_it_waits_under_its_name_or_its_id() -> None:
    assert step(node("signal", id="paid"), Seen()) == AwaitSignal("paid")
    of = node("signal", id="a", name="paid", buffer=False, expiry_ms=5)
    assert step(of, Seen()) == AwaitSignal("paid", False, 5)


@pytest.mark.parametrize("payload", [{"amount": 3}, None, "", [1]])
def test_the_message_is_its_output_and_stands_at_the_output_key(payload: object) -> None:
    answers = [SignalAnswer(payload)]  # type: ignore[arg-type]  # JSON
    assert step(node("signal"), Seen(), answers) == Done(output=payload)  # type: ignore[arg-type]  # as above
    done = step(node("signal", output_key="order.paid"), Seen(), answers)
    assert done.writes == (Write("set", ("order", "paid"), payload),)  # type: ignore[arg-type]  # as above


def test_a_message_the_reducer_cannot_take_fails_the_node() -> None:
    with pytest.raises(NodeFailure) as failed:
        step(node("signal", output_key="n"), Seen(reducers={"n": "add"}), [SignalAnswer("x")])
    assert failed.value.code == "TRANSFORM_INVALID"


def test_when_its_time_is_over_it_fails_or_goes_elsewhere() -> None:
    with pytest.raises(NodeFailure, match='no message "n" came within 5 ms') as failed:
        step(node("signal", expiry_ms=5), Seen(), [TimeAnswer()])
    assert (failed.value.code, failed.value.failure_class) == ("SIGNAL_EXPIRED", "refused")
    of = node("signal", expiry_ms=5, on_expire={"goto": ["late", "late"]})
    assert step(of, Seen(), [TimeAnswer()]) == Done(targets=("late",), transition="expired")
    assert step(of, Seen(), [SignalAnswer(1)]) == Done(output=1, transition="received")
    ends = node("signal", expiry_ms=5, on_expire={"goto": []})
    assert step(ends, Seen(), [TimeAnswer()]).targets == ("END",)


def test_what_its_config_may_say() -> None:
    assert found("signal", schema={"type": "nonsense"}) == [("SCHEMA_INVALID", "/schema/type")]
    assert found("signal", output_key="a..b") == [("STATE_PATH_INVALID", "/output_key")]
    assert found("signal", on_expire={"goto": ["x"]}) == [("FIELD_UNUSED", "/on_expire")]
    assert found("signal", schema={"type": "object"}, expiry_ms=1, on_expire={"goto": ["x"]}) == []


def test_what_it_touches_and_can_choose() -> None:
    made = signal.Config(output_key="paid", on_expire={"goto": ["a", "b"]})
    assert list(signal.targets(made)) == [Target("a", "/on_expire/goto/0"), Target("b", "/on_expire/goto/1")]
    assert list(signal.targets(signal.Config())) == list(signal.reads(made)) == []
    assert (signal.writes("n", made), signal.writes("n", signal.Config())) == (["paid"], [])
    assert not signal.writes_current(made)
