"""6, multi-choice: every branch whose rule holds is taken, and no other."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, router, rule, spec

GRAPH = spec(
    router("which", *(rule("ways", "contains", way, way) for way in "abc"), mode="all", default=["END"]),
    llm("a"), llm("b"), llm("c"), join("j", ["a", "b", "c"], "said", on_missing="skip"),
    edges="a>j b>j c>j j>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.at_once("-which#1", "+a#1")
    trace.at_once("-which#1", "+c#1")
    trace.once("a", "c", "j")
    trace.never("b")


SCENARIO = Scenario(
    number=6, name="Multi-Choice", degree="full", graphs=[GRAPH], holds=holds, run_input={"ways": ["a", "c"]},
    results=[["a#1", "c#1"]],
    against={
        "the first rule that holds": "+which#1 -which#1 +a#1 ?a#1 -a#1 +j#1 -j#1 =completed",
        "every branch":
            "+which#1 -which#1 +a#1 +b#1 +c#1 ?a#1 -a#1 ?b#1 -b#1 ?c#1 -c#1 +j#1 -j#1 =completed",
    },
)  # fmt: skip
