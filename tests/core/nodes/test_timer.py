"""`timer` waits for a moment and writes nothing."""

from __future__ import annotations

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import Done, Sleep, TimeAnswer
from agent_graph.core.nodes import timer
from agent_graph.core.nodes.base import Read
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

MOMENT, AT_MS = "2026-01-31T12:00:00+01:00", 1_769_857_200_000


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        ({"delay_ms": 0}, Sleep(0)),
        ({"delay_ms": 250}, Sleep(250)),
        ({"until": MOMENT}, Sleep(until_ms=AT_MS)),
        ({"until": "1970-01-01T00:00:00Z"}, Sleep(until_ms=0)),
        ({"until": "plan.due"}, Sleep(until_ms=AT_MS)),
        ({"until": "__input__"}, Sleep(until_ms=AT_MS)),
    ],
)
def test_it_waits_for_a_span_or_for_a_moment(config: dict[str, object], asked: Sleep) -> None:
    seen = Seen({"plan": {"due": MOMENT}}, current=MOMENT)
    assert step(node("timer", **config), seen) == asked
    assert step(node("timer", **config), seen, [TimeAnswer()]) == Done()


@pytest.mark.parametrize("value", ["soon", "2026-01-31T12:00:00", "2026-01-31", 5, None, True, [MOMENT]])
def test_what_is_no_moment_fails_the_node_and_says_what_one_is(value: object) -> None:
    with pytest.raises(NodeFailure, match=r'timer "n": what is at "due" is not an RFC 3339 moment .* 2026') as failed:
        step(node("timer", until="due"), Seen({"due": value}))
    assert (failed.value.code, failed.value.failure_class) == ("TIMER_INVALID", "invalid")
    assert failed.value.details == {"path": "due"}


def test_a_moment_that_is_not_there_fails_the_node() -> None:
    with pytest.raises(NodeFailure, match="there is nothing") as failed:
        step(node("timer", until="due"), Seen())
    assert failed.value.code == "TIMER_INVALID"


def test_exactly_one_of_the_two_says_how_long() -> None:
    assert found("timer") == [("FIELD_REQUIRED", "/delay_ms")]
    assert found("timer", delay_ms=0, until="due") == [("FIELD_CONFLICT", "/until")]
    assert found("timer", until="2026-02-30T00:00:00Z") == [("FIELD_INVALID", "/until")]
    assert found("timer", until="2026-01-31") == [("FIELD_INVALID", "/until")]
    assert found("timer", until="a..b") == [("STATE_PATH_INVALID", "/until")]
    assert found("timer", until="due") == found("timer", until=MOMENT) == []


def test_it_reads_what_until_names_and_writes_nothing() -> None:
    made = timer.Config(until="plan.due")
    assert timer.reads(made) == [Read("plan.due", "/until")]
    assert timer.reads(timer.Config(until=MOMENT)) == timer.reads(timer.Config(delay_ms=1)) == []
    assert (list(timer.targets(made)), list(timer.writes("n", made)), timer.writes_current(made)) == ([], [], False)


def test_words_for_a_moment_are_refused_and_no_key_is_proposed() -> None:
    said = {
        "name": "g", "entry": "t", "nodes": [{"id": "t", "type": "timer", "config": {"until": "tomorrow 9am"}}],
    }  # fmt: skip
    (issue,) = compile_graph(said).issues
    assert (issue.code, issue.pointer, issue.fix) == ("FIELD_INVALID", "/nodes/0/config/until", ())
    assert "neither an RFC 3339 moment" in issue.message
