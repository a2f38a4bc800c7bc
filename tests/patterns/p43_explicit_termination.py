"""43, explicit termination: a branch that comes to END_RUN ends the run, and all else with it."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a", output_key="found"), llm("b", output_key="found"), node("wait", "signal"), llm("c"),
    edges="s>a s>b s>wait a>END_RUN b>END_RUN wait>c c>END", output_key="found",
)  # fmt: skip


def holds(trace: Trace) -> None:
    first, other = ("a", "b") if "-a#1" in trace.marks else ("b", "a")
    trace.in_order(f"-{first}#1", f"!{other}#1", "=completed")
    trace.in_order(f"-{first}#1", "!wait#1", "=completed")
    trace.never("c")


SCENARIO = Scenario(
    number=43, name="Explicit Termination", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=["a#1", "b#1"],
    against={
        "supersteps": "+s#1 -s#1 +a#1 +b#1 +wait#1 ?a#1 -a#1 ?b#1 -b#1 !wait#1 =completed",
        "the run ends when nothing is left to do":
            "+s#1 -s#1 +a#1 +b#1 +wait#1 ?a#1 -a#1 ?b#1 -b#1 ?wait#1 -wait#1 +c#1 ?c#1 -c#1 =completed",
    },
    supersteps="the run ends with the step: `b` is let through first",
)  # fmt: skip
