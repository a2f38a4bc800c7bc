"""5, simple merge: what follows runs once for the one branch that was chosen, and waits for no other."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, router, rule, spec

GRAPH = spec(
    router("which", rule("way", "eq", "a", "a"), default=["b"]), llm("a"), llm("b"), llm("m", "m of {input}"),
    edges="a>m b>m m>END",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("b", "m")
    trace.never("a")
    trace.at_once("-b#1", "+m#1")
    trace.in_order("-m#1", "=completed")


SCENARIO = Scenario(
    number=5, name="Simple Merge", degree="full", graphs=[GRAPH], holds=holds, run_input={"way": "b"}, results=["m#1"],
    against={"a wait for every edge": ""},
)  # fmt: skip
