"""7, structured synchronizing merge: what follows a multi-choice runs once, after all that were chosen and no other."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, router, rule, spec

GRAPH = spec(
    router("which", *(rule("ways", "contains", way, way) for way in "abc"), mode="all", default=["END"]),
    llm("a"), llm("a2"), llm("b"), llm("c"), join("meet", ["a2", "b", "c"], "said"),
    edges="a>a2 a2>meet b>meet c>meet meet>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("meet")
    trace.in_order("-a2#1", "+meet#1")
    trace.in_order("-b#1", "+meet#1")
    trace.never("c")
    trace.in_order("-meet#1", "=completed")


SCENARIO = Scenario(
    number=7, name="Structured Synchronizing Merge", degree="full", graphs=[GRAPH], holds=holds,
    run_input={"ways": ["a", "b"]}, results=[["a2#1", "b#1", None]],
    against={"supersteps": "", "a firing for each token": "", "a wait for every edge": ""},
    supersteps="`meet` runs twice, as the chosen branches are not equally long",
)  # fmt: skip
