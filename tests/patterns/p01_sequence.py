"""1, sequence: a task begins when the one before it is done, and sees what that left."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, spec

GRAPH = spec(llm("a"), llm("b", "b of {input}"), llm("c", "c of {input}"), edges="a>b b>c c>END")


def holds(trace: Trace) -> None:
    trace.in_order("+a#1", "-a#1", "+b#1", "-b#1", "+c#1", "-c#1", "=completed")
    trace.once("a", "b", "c")


SCENARIO = Scenario(
    number=1, name="Sequence", degree="full", graphs=[GRAPH], holds=holds, results=["c#1"],
    against={"every node at once": "+a#1 +b#1 +c#1 ?a#1 -a#1 ?b#1 -b#1 ?c#1 -c#1 =completed"},
)  # fmt: skip
