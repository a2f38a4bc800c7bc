"""The limits of a run: kept by its log, applied to what a firing sees, the same in any order and after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core import checkpoint, growth, weights
from agent_graph.core.contributions import Writer
from agent_graph.core.effects import ModelAnswer, Write, answer_to_json
from agent_graph.core.events import (
    Event,
    Fact,
    ModelAnswered,
    NodeFinished,
    RunAccepted,
    RunStarted,
    from_json,
    to_json,
)
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import canonical
from agent_graph.core.limits import DEFAULTS, Limits, of_record, recorded
from agent_graph.core.merge import State
from agent_graph.core.outcome import state
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Perform, Record, decide, evolve, new_run
from tests.core.specs import compiled, join, llm, loop, pass_, spec, transform

Pick = Callable[[Sequence[str]], str]


@dataclass
class Driven:
    """A run whose models all say `answer`; `restart` folds it from a snapshot before every answer."""

    graph: Graph
    limits: Limits = DEFAULTS
    answer: str = "ok"
    restart: bool = False
    run: Run = field(default_factory=new_run)
    facts: list[Fact] = field(default_factory=list)

    def feed(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.run = evolve(self.graph, self.run, Event(self.run.seq, 1_000, fact))

    def go(self, value: Any = "hello", pick: Pick = min) -> Driven:
        self.feed(RunAccepted("run-1", "g", self.graph.version, value, limits=recorded(self.limits)))
        self.feed(RunStarted())
        calls: dict[str, Perform] = {}
        while (actions := decide(self.graph, self.run)) or calls:
            for action in actions:
                if isinstance(action, Record):
                    self.feed(action.fact)
                else:
                    self.run.hand_over(action.firing)
                    calls[action.firing] = action
            if not actions:
                call = calls.pop(pick([*calls]))
                if self.restart:
                    self.run = checkpoint.load(self.graph, checkpoint.dump(self.run))
                    for path in calls:
                        self.run.hand_over(path)
                self.feed(ModelAnswered(call.firing, answer_to_json(ModelAnswer(self.answer)), call.attempt))
        return self

    @property
    def end(self) -> tuple[str, Any, Any]:
        """(status, code, the node that failed)."""
        error = self.run.error or {}
        return self.run.status, error.get("code"), error.get("node_id")


def drive(raw: Any, value: Any = "hello", *, answer: str = "ok", pick: Pick = min, **limits: int) -> Driven:
    return Driven(compiled(raw).graph, replace(DEFAULTS, **limits), answer).go(value, pick)  # type: ignore[arg-type]


def put(name: str, path: str, value: Any) -> dict[str, Any]:
    return transform(name, {"op": "set", "path": path, "value": value})


def test_only_limits_of_a_run_that_differ_are_recorded_and_they_come_back() -> None:
    assert recorded(DEFAULTS) == {}
    assert "limits" not in to_json(RunAccepted("r", "g", "v", None))
    tight = replace(DEFAULTS, value_bytes=100, state_bytes=200, page=3)
    assert recorded(tight) == {"value_bytes": 100, "state_bytes": 200}
    assert of_record(recorded(tight)) == replace(tight, page=DEFAULTS.page)
    fact = RunAccepted("r", "g", "v", None, limits=recorded(tight))
    assert from_json(json.loads(json.dumps(to_json(fact)))) == fact


def test_a_run_keeps_its_limits_through_a_snapshot() -> None:
    driven = drive(spec([llm("a", "x")], "a>END"), value_bytes=300, prompt_bytes=400)
    assert checkpoint.load(driven.graph, checkpoint.dump(driven.run)).limits == driven.run.limits
    assert (driven.run.limits.value_bytes, driven.run.limits.prompt_bytes) == (300, 400)


@pytest.mark.parametrize(
    ("nodes", "limits", "says"),
    [
        ([put("a", "x", "y" * 90)], {"value_bytes": 91}, "91 bytes"),
        ([llm("a", "x")], {"value_bytes": 90}, "90 bytes (value_bytes)"),
        ([llm("a", "x", system="a prompt of some length")], {"prompt_bytes": 10}, "10 bytes"),
        ([put("a", "x", [[[1]]])], {"json_depth": 2}, "2 levels"),
        ([transform("a", {"op": "append", "path": "x", "value": [1] * 9, "extend": True})], {"value_bytes": 10}, "10 "),
        ([transform("a", {"op": "format", "path": "x", "template": "a" * 11})], {"value_bytes": 10}, "10 bytes"),
        ([transform("a", {"op": "select", "path": "x", "values": ["q"]})], {"value_bytes": 10}, "10 bytes"),
        ([put("a", "x", "y" * 90)], {"state_bytes": 90}, "(state_bytes)"),
        ([llm("a", "x")], {"state_bytes": 150}, "(state_bytes)"),
    ],
)
def test_a_step_applies_the_limits_of_its_run(nodes: list[Any], limits: dict[str, int], says: str) -> None:
    raw = spec(nodes, "a>END", output_key="x")
    value = {"q": "a value that is there"} if "select" in str(nodes) else "hello"
    assert drive(raw, value, answer="y" * 100).end[0] == "completed"
    failed = drive(raw, value, answer="y" * 100, **limits)
    assert failed.end == ("failed", "VALUE_TOO_LARGE", "a")
    assert says in str(failed.run.error)
    assert not any(isinstance(fact, NodeFinished) for fact in failed.facts)


def test_a_collected_value_is_not_nested_beyond_the_limit() -> None:
    raw = spec([put("a", "x", [[1]]), join("b", "y", "x")], "a>b", "b>END")
    assert drive(raw, json_depth=3).end[0] == "completed"
    failed = drive(raw, json_depth=2)
    assert failed.end == ("failed", "VALUE_TOO_LARGE", "b")
    assert state(failed.run) == {"x": [[1]]}
    assert "json_depth" in str(failed.run.error)


def test_brackets_inside_a_text_are_no_nesting() -> None:
    raw = spec([put("a", "x", ["[[[[[["])], "a>END", output_key="x")
    assert drive(raw, json_depth=1).end[0] == "completed"


def test_a_model_reply_is_read_within_the_limits_of_the_run() -> None:
    raw = spec([llm("a", "x", json_mode=True, repair=0, retry={"max_attempts": 1})], "a>END")
    assert drive(raw, answer="[[[1]]]").end[0] == "completed"
    for limits in ({"json_depth": 2}, {"value_bytes": 6}):
        assert drive(raw, answer="[[[1]]]", **limits).end == ("failed", "MODEL_BAD_REPLY", "a")


def test_a_state_that_grows_beyond_its_limit_fails_the_node_and_is_kept() -> None:
    gather = transform("more", {"op": "append", "path": "xs", "value": "y" * 100})
    raw = spec([loop("l", "more", "done", 50), gather, pass_("done")], "more>l", "done>END", output_key="xs")
    assert drive(raw).end[0] == "completed"
    failed = drive(raw, state_bytes=1_000)
    assert failed.end == ("failed", "VALUE_TOO_LARGE", "more")
    assert failed.run.error is not None
    assert "1000 bytes (state_bytes)" in str(failed.run.error["message"])
    assert failed.run.error["details"] == {"limit": 1_000, "bytes": len(state_bytes_of(10))}
    assert state(failed.run) == {"xs": ["y" * 100] * 9}


def state_bytes_of(count: int) -> str:
    """The members a loop that gathered `count` texts has: its count and the list, each with a comma."""
    return f'"l":{count - 1},"xs":' + json.dumps(["y" * 100] * count, separators=(",", ":")) + ","


def test_what_is_overwritten_or_deleted_no_longer_counts() -> None:
    swap = transform("more", {"op": "set", "path": "x", "value": "y" * 2_000}, {"op": "delete", "path": "gone"})
    raw = spec([put("first", "gone", "z" * 2_000), loop("l", "more", "done", 50), swap, pass_("done")],
               "first>l", "more>l", "done>END", output_key="x")  # fmt: skip
    assert drive(raw, state_bytes=2_020).end[0] == "completed"
    assert drive(raw, state_bytes=2_012).end == ("failed", "VALUE_TOO_LARGE", "l")


def fork(*last: str) -> dict[str, Any]:
    """Three branches that each write a model's answer twice: to a key and as their output."""
    branches = [llm(name, f"of_{name}") for name in "abc"]
    return spec([pass_("start"), *branches, *(pass_(name) for name in last), pass_("after")],
                *(f"start>{name}" for name in "abc"), *(f"{name}>{'meet' if last else 'END'}" for name in "abc"),
                *(["meet>after", "after>END"] if last else []), output_key="of_a")  # fmt: skip


@pytest.mark.parametrize("restart", [False, True])
def test_branches_are_added_up_where_they_meet_in_whatever_order_they_end(restart: bool) -> None:
    graph = compiled(fork("meet")).graph
    assert graph is not None
    tight = replace(DEFAULTS, state_bytes=2_500)
    ends = set()
    for order in permutations("abc"):

        def pick(paths: Sequence[str], order: tuple[str, ...] = order) -> str:
            return min(paths, key=lambda path: order.index(path[0]))

        driven = Driven(graph, tight, "y" * 500, restart).go(pick=pick)
        assert state(driven.run) == {f"of_{name}": "y" * 500 for name in "abc"}
        ends.add(driven.end)
    assert ends == {("failed", "VALUE_TOO_LARGE", "meet")}


def test_branches_that_meet_only_at_the_end_fail_the_run_there() -> None:
    failed = drive(fork(), answer="y" * 500, state_bytes=2_500)
    assert failed.end == ("failed", "VALUE_TOO_LARGE", None)
    assert "state_bytes" in str(failed.run.error)
    assert [fact.type for fact in failed.facts[-1:]] == ["run_failed"]
    assert drive(fork(), answer="y" * 500, state_bytes=3_500).end[0] == "completed"


def test_a_view_beyond_the_bound_is_measured_once() -> None:
    small = State({})
    first = small.add(Writer(0, (1, 0, 1), "a#1", 0, -1), [Write("set", ("x",), "y" * 50)])
    other = small.add(Writer(1, (1, 1, 1), "b#1", 0, -1), [Write("set", ("x",), "y" * 40)])
    assert growth.beyond(small, first, limit=60) == 0
    assert growth.beyond(small, first, limit=50) == growth.beyond(small, first, limit=50) == len('"x":,""') + 50
    assert growth.beyond(small, other, limit=50) == growth.beyond(small, first | other, limit=50) - 3 + 3
    assert len(small.tally.views) == 3


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.sampled_from([1e16, 1e20, 1e-6, 1.5e-5, 10**400, -(10**40), "\x01" * 2_000, "\U0001f600" * 2_000]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20,
))  # fmt: skip
def test_no_value_takes_more_bytes_than_its_bound(value: Any) -> None:
    assert len(canonical(value)) <= weights.most_of(value)
    assert weights.exact("k", value) <= weights.most_held({"k": value})


KEYS = st.sampled_from(["a", "b", "log", "sum", "deep"])
VALUES = st.text(max_size=5) | st.integers(-99, 99) | st.lists(st.integers(0, 9), max_size=3)


@st.composite
def contributions(draw: st.DrawFn) -> Write:
    key = draw(KEYS)
    if key == "log":
        return Write("operand", (key,), draw(VALUES))
    if key == "sum":
        return Write("operand", (key,), draw(st.integers(-99, 99) | st.sampled_from([0.1, 0.2, 1e17])))
    if key == "deep":
        return Write("operand", (key,), draw(st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)))
    path = draw(st.sampled_from([(key,), (key, "x"), (key, "0"), (key, "x", "y")]))
    return Write(draw(st.sampled_from(["set", "set", "delete"])), path, draw(VALUES))


@given(st.lists(st.tuples(st.lists(contributions(), max_size=3), st.integers(0, 7)), max_size=6), st.integers(0, 6))
def test_the_bound_holds_for_every_view_and_what_is_measured_is_exact(written: Any, compact_at: int) -> None:
    gathered = State({"log": "append", "sum": "add", "deep": "merge"})
    for number, (writes, seen) in enumerate(written):
        if number == compact_at:
            gathered.compact(())
        past = seen & gathered.everything()
        gathered.add(Writer(0, (number, 0, 1), f"n#{number}", past, -1), writes)
    for past in range(gathered.everything() + 1):
        whole = gathered.whole(past)
        size = sum(weights.exact(key, value) for key, value in whole.items())
        assert size <= gathered.tally.base + gathered.tally.written
        assert growth.beyond(gathered, past, limit=0) == size
