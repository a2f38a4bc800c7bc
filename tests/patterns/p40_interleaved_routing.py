"""40, interleaved routing: each of some tasks once, one at a time, in whatever order."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import gate, join, llm, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a", mutex="desk"), gate("ok", mutex="desk"), llm("c", mutex="desk"),
    llm("slow"), llm("d", mutex="desk"),
    join("meet", ["a", "c", "d"], "done"), edges="s>a s>ok s>c s>slow slow>d a>meet ok>meet c>meet d>meet meet>END",
    output_key="done",
)  # fmt: skip
TASKS = ("a#1", "ok#1", "c#1", "d#1")


def holds(trace: Trace) -> None:
    trace.alone(*TASKS)
    for task in TASKS:
        trace.in_order(f"-{task}", "+meet#1")
    trace.once("a", "ok", "c", "d", "meet")
    first = min(trace.at(f"-{task}") for task in TASKS)
    rest = [mark for mark in trace.marks[first:] if mark[0] == "+" and mark[1:] in TASKS]
    assert len(rest) == 3, str(trace)


SCENARIO = Scenario(
    number=40, name="Interleaved Routing", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=[["a#1", "c#1", "d#1"]],
    against={
        "supersteps":
            "+s#1 -s#1 +a#1 +ok#1 +c#1 +slow#1 ?a#1 -a#1 ?ok#1 -ok#1 ?c#1 -c#1 ?slow#1 -slow#1 +meet#1 -meet#1 +d#1 "
            "?d#1 -d#1 +meet#2 -meet#2 =completed",
        "tasks side by side":
            "+s#1 -s#1 +a#1 +ok#1 +c#1 +slow#1 ?slow#1 -slow#1 +d#1 ?a#1 -a#1 ?ok#1 -ok#1 ?c#1 -c#1 ?d#1 -d#1 "
            "+meet#1 -meet#1 =completed",
    },
    supersteps="three tasks run side by side in one step, and `meet` runs before `d` has begun",
)  # fmt: skip
