"""What goes straight into the base of a level state is what adding it and then compacting would have left there."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_graph.core.contributions import Writer
from agent_graph.core.effects import MISSING, Write
from agent_graph.core.merge import State
from tests.sizes import size

REDUCERS = {"list": "append", "sum": "add", "tree": "merge", "last": "last_write_wins"}
OPERANDS: dict[str, st.SearchStrategy[Any]] = {
    "list": st.lists(st.integers(0, 3), max_size=2),
    "sum": st.integers(-5, 5),
    "tree": st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
    "last": st.text("xyz", max_size=2),
}
VALUES = st.one_of(st.none(), st.integers(0, 3), st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2))
PLAIN = st.builds(
    Write,
    st.sampled_from(["set", "delete", "replace"]),
    st.sampled_from([("k",), ("k", "a"), ("list",), ("tree", "b"), ("outputs", "n"), ("errors", "n"), ("outputs",)]),
    VALUES,
)
GATHERED = st.sampled_from(sorted(OPERANDS)).flatmap(
    lambda key: st.builds(Write, st.just("operand"), st.just((key,)), OPERANDS[key])
)
STEPS = st.lists(st.tuples(st.lists(PLAIN | GATHERED, max_size=4), st.just(MISSING) | VALUES), max_size=6)


@settings(max_examples=size(150, 2_000), deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(STEPS)
def test_contributions_go_straight_into_the_base_as_if_they_were_added_and_compacted(steps: Any) -> None:
    slow, fast = State(dict(REDUCERS)), State(dict(REDUCERS))
    for nth, (writes, current) in enumerate(steps):
        given_values = copy.deepcopy(writes)
        if writes or current is not MISSING:
            slow.add(Writer(0, (nth, 0, 1), "n#1", 0, -1, current), writes)
            slow.compact(() if current is MISSING else (slow.next - 1,))
        fast.absorb(0, writes, current)
        assert fast.level
        assert writes == given_values, "an event's values stay as they are"
        for name in ("base", "base_current", "base_writers", "owned", "offset", "next", "forgotten"):
            assert getattr(fast, name) == getattr(slow, name), name
        assert (fast.tally.base, fast.tally.written) == (slow.tally.base, slow.tally.written)
        if nth % 2:  # what is read is no longer ours alone
            assert fast.read("list", 0) == slow.read("list", 0)
