"""4, exclusive choice: one branch is taken, although the rules of two hold."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, router, rule, spec

GRAPH = spec(
    llm("ask"), router("which", rule("outputs.ask", "contains", "a", "a"), rule("outputs.ask", "contains", "b", "b"),
                       default=["c"]),
    llm("a", output_key="said"), llm("b", output_key="said"), llm("c", output_key="said"),
    edges="ask>which a>END b>END c>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("a")
    trace.never("b", "c")


SCENARIO = Scenario(
    number=4, name="Exclusive Choice", degree="full", graphs=[GRAPH], holds=holds, says={"ask": "a or b"},
    results=["a#1"],
    against={
        "every rule that holds": "+ask#1 ?ask#1 -ask#1 +which#1 -which#1 +a#1 +b#1 ?a#1 -a#1 ?b#1 -b#1 =completed",
    },
)  # fmt: skip
