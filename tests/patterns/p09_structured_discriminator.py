"""9, structured discriminator: the first branch that is through starts what follows; the others end unheard."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec

LAST = ("s#1/a#1", "s#1/b2#1", "s#1/c#1")
GRAPH = spec(
    passthrough("s"), llm("a"), llm("b"), llm("b2"), llm("c"),
    join("meet", ["a", "b2", "c"], "first", "first_non_null", wait="any", cancel_rest=False),
    llm("next", output_key="said"),
    edges="s>a s>b s>c a>meet b>b2 b2>meet c>meet meet>next next>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    first = min(LAST, key=lambda firing: trace.at(f"-{firing}"))
    trace.at_once(f"-{first}", "+s#1/meet#1")
    trace.at_once("-s#1/meet#1", "+next#1")
    trace.once("s#1/meet", "next")
    for firing in LAST:
        trace.in_order(f"-{firing}", "=completed")


SCENARIO = Scenario(
    number=9, name="Structured Discriminator", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=["next#1"],
    against={
        "a firing for each token":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 +s#1/meet#1 -s#1/meet#1 +next#1 ?s#1/c#1 "
            "-s#1/c#1 +s#1/meet#2 -s#1/meet#2 ?s#1/b#1 -s#1/b#1 +s#1/b2#1 ?s#1/b2#1 -s#1/b2#1 +s#1/meet#3 "
            "-s#1/meet#3 ?next#1 -next#1 +next#2 ?next#2 -next#2 +next#3 ?next#3 -next#3 =completed",
        "a join that waits for all":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 ?s#1/c#1 -s#1/c#1 ?s#1/b#1 -s#1/b#1 +s#1/b2#1 "
            "?s#1/b2#1 -s#1/b2#1 +s#1/meet#1 -s#1/meet#1 +next#1 ?next#1 -next#1 =completed",
        "the others are cancelled":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 !s#1/b#1 !s#1/c#1 +s#1/meet#1 -s#1/meet#1 "
            "+next#1 ?next#1 -next#1 =completed",
        "supersteps":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 ?s#1/b#1 -s#1/b#1 ?s#1/c#1 -s#1/c#1 +s#1/meet#1 "
            "-s#1/meet#1 +s#1/b2#1 ?s#1/b2#1 -s#1/b2#1 +next#1 +s#1/meet#2 ?next#1 -next#1 -s#1/meet#2 +next#2 "
            "?next#2 -next#2 =completed",
    },
    supersteps="`meet` runs at the end of the step of `a` and `c`, and again after `b2`",
)  # fmt: skip
