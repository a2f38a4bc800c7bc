"""40, interleaved routing: each of some tasks once, one at a time, in whatever order."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import gate, join, llm, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a", mutex="desk"), llm("to_ok"), gate("ok", mutex="desk"), llm("to_c"),
    llm("c", mutex="desk"), join("meet", ["a", "c"], "done"),
    edges="s>a s>to_ok s>to_c to_ok>ok to_c>c a>meet ok>meet c>meet meet>END", output_key="done",
)  # fmt: skip
TASKS = ("a#1", "ok#1", "c#1")


def holds(trace: Trace) -> None:
    trace.alone(*TASKS)
    for task in TASKS:
        trace.in_order(f"-{task}", "+meet#1")
    trace.once("a", "ok", "c", "meet")


SCENARIO = Scenario(
    number=40, name="Interleaved Routing", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=[["a#1", "c#1"]],
    against={
        "supersteps":
            "+s#1 -s#1 +a#1 +to_ok#1 +to_c#1 ?a#1 -a#1 ?to_ok#1 -to_ok#1 ?to_c#1 -to_c#1 +meet#1 +ok#1 +c#1 -meet#1 "
            "?ok#1 -ok#1 ?c#1 -c#1 +meet#2 -meet#2 =completed",
        "tasks side by side":
            "+s#1 -s#1 +a#1 +to_ok#1 +to_c#1 ?to_c#1 -to_c#1 +c#1 ?a#1 -a#1 ?to_ok#1 -to_ok#1 +ok#1 ?c#1 -c#1 ?ok#1 "
            "-ok#1 +meet#1 -meet#1 =completed",
    },
    supersteps="`ok` and `c` run side by side in one step, and `meet` before them and after",
)  # fmt: skip
