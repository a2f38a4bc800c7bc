"""2, parallel split: all branches begin, and none goes at the pace of another."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a"), llm("a2"), llm("b"), join("j", ["a2", "b"], "both"),
    edges="s>a s>b a>a2 a2>j b>j j>END", output_key="both",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.at_once("-s#1", "+a#1")
    trace.at_once("-s#1", "+b#1")
    trace.at_once("-a#1", "+a2#1")
    trace.once("a", "a2", "b")


SCENARIO = Scenario(
    number=2, name="Parallel Split", degree="full", graphs=[GRAPH], holds=holds, results=[["a2#1", "b#1"]],
    against={
        "supersteps": "",
        "one branch after the other": "+s#1 -s#1 +a#1 ?a#1 -a#1 +a2#1 ?a2#1 -a2#1 +b#1 ?b#1 -b#1 +j#1 -j#1 =completed",
    },
    supersteps="`a2` begins only when `b` has been answered too",
)  # fmt: skip
