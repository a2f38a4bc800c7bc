"""30, structured partial join: two of three branches start what follows; the third ends unheard."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec

BRANCHES = ("s#1/a#1", "s#1/b#1", "s#1/c#1")
GRAPH = spec(
    passthrough("s"), llm("a"), llm("b"), llm("c"),
    join("meet", ["a", "b", "c"], "two", on_missing="skip", wait={"count": 2}, cancel_rest=False),
    llm("next", output_key="said"), edges="s>a s>b s>c a>meet b>meet c>meet meet>next next>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    first, second, third = sorted(BRANCHES, key=lambda firing: trace.at(f"-{firing}"))
    trace.in_order(f"-{first}", f"-{second}", "+s#1/meet#1", "+next#1")
    trace.at_once(f"-{second}", "+next#1")
    trace.in_order(f"-{third}", "=completed")
    trace.once("s#1/meet", "next")


SCENARIO = Scenario(
    number=30, name="Structured Partial Join", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=["next#1"],
    against={
        "the first is enough":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 +s#1/meet#1 -s#1/meet#1 +next#1 ?s#1/b#1 "
            "-s#1/b#1 ?s#1/c#1 -s#1/c#1 ?next#1 -next#1 =completed",
        "supersteps":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 ?s#1/b#1 -s#1/b#1 ?s#1/c#1 -s#1/c#1 +s#1/meet#1 "
            "-s#1/meet#1 +next#1 ?next#1 -next#1 =completed",
    },
    supersteps="`meet` waits for the third, which runs in the same step",
)  # fmt: skip
