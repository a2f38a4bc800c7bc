"""11, implicit termination: a branch that is through ends by itself, and the run when nothing is left to do."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a", output_key="a"), llm("b", output_key="b"), llm("c", output_key="c"),
    edges="s>a s>b b>c a>END c>END", output_key="c",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.in_order("-a#1", "=completed")
    trace.in_order("-b#1", "-c#1", "=completed")
    trace.once("a", "b", "c")


SCENARIO = Scenario(
    number=11, name="Implicit Termination", degree="full", graphs=[GRAPH], holds=holds, results=["c#1"],
    against={"the first end ends the run": "+s#1 -s#1 +a#1 +b#1 ?a#1 -a#1 !b#1 =completed"},
)  # fmt: skip
