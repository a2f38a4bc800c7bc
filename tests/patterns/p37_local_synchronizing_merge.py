"""37, local synchronizing merge: branches that were chosen in different places meet, in a graph that is not nested."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, passthrough, router, rule, spec

GRAPH = spec(
    passthrough("s"), llm("a"), llm("b"),
    router("after_a", rule("outputs.a", "contains", "x", "x"), rule("outputs.a", "contains", "y", "y"), mode="all",
           default=["END"]),
    router("after_b", rule("outputs.b", "contains", "y", "y"), default=["END"]),
    llm("x"), llm("y"), llm("meet", output_key="said"),
    edges="s>a s>b a>after_a b>after_b x>meet y>meet meet>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("x", "y", "meet")
    trace.at_once("-a#1", "+x#1")
    trace.in_order("-after_a#1", "+y#1")  # y waits while b may still send something, and for no longer
    trace.in_order("-after_b#1", "+y#1")
    trace.in_order("-x#1", "+meet#1")
    trace.in_order("-y#1", "+meet#1")


SCENARIO = Scenario(
    number=37, name="Local Synchronizing Merge", degree="full", graphs=[GRAPH], holds=holds, results=["meet#1"],
    says={"a": "x and y", "b": "nothing"},
    against={
        "supersteps": "",
        "a wait for every edge": "",
        "a firing as soon as something comes":
            "+s#1 -s#1 +a#1 +b#1 ?a#1 -a#1 +after_a#1 -after_a#1 +x#1 +y#1 ?x#1 -x#1 +meet#1 ?y#1 -y#1 +meet#2 ?b#1 "
            "-b#1 +after_b#1 -after_b#1 ?meet#1 -meet#1 ?meet#2 -meet#2 =completed",
    },
    supersteps="`x` begins only when `b` has been answered too; that is the step at which the branches are in line",
)  # fmt: skip
