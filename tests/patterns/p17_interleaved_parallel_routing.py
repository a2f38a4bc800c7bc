"""17, interleaved parallel routing: tasks in a partial order, one at a time, and otherwise in any order."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("to_a"), llm("to_b"), llm("free"),
    *(llm(name, mutex="desk") for name in ("a", "a2", "b", "b2")),
    join("meet", ["a2", "b2", "free"], "done"),
    edges="s>to_a s>to_b s>free to_a>a to_b>b a>a2 b>b2 a2>meet b2>meet free>meet meet>END", output_key="done",
)  # fmt: skip
TASKS = ("a#1", "a2#1", "b#1", "b2#1")


def holds(trace: Trace) -> None:
    trace.alone(*TASKS)
    trace.in_order("-a#1", "+a2#1")
    trace.in_order("-b#1", "+b2#1")
    trace.at_once("-s#1", "+free#1")
    for task in TASKS:
        trace.in_order(f"-{task}", "+meet#1")


SCENARIO = Scenario(
    number=17, name="Interleaved Parallel Routing", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=[["a2#1", "b2#1", "free#1"]],
    against={
        "supersteps": "",
        "tasks side by side":
            "+s#1 -s#1 +to_a#1 +to_b#1 +free#1 ?to_a#1 -to_a#1 +a#1 ?to_b#1 -to_b#1 +b#1 ?a#1 -a#1 +a2#1 ?b#1 -b#1 "
            "+b2#1 ?free#1 -free#1 ?a2#1 -a2#1 ?b2#1 -b2#1 "
            "+meet#1 -meet#1 =completed",
    },
    supersteps="`a` and `b` run in one step, side by side",
)  # fmt: skip
