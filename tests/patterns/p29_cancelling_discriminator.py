"""29, cancelling discriminator: the first branch that is through starts what follows, and the others are ended."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import gate, join, llm, passthrough, spec

LAST = ("s#1/a#1", "s#1/b2#1", "s#1/ok#1")
GRAPH = spec(
    passthrough("s"), llm("a"), llm("b"), llm("b2"), gate("ok"),
    join("meet", ["a", "b2", "ok"], "first", "first_non_null", wait="any"), llm("next", output_key="said"),
    edges="s>a s>b s>ok a>meet b>b2 b2>meet ok>meet meet>next next>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    done = [firing for firing in LAST if f"-{firing}" in trace.marks]
    assert len(done) == 1, f"more than one came to its end: {trace}"
    trace.at_once(f"-{done[0]}", "+s#1/meet#1")
    trace.once("s#1/meet", "next")
    for firing in ("s#1/a#1", "s#1/b#1", "s#1/b2#1", "s#1/ok#1"):
        if f"+{firing}" in trace.marks and f"-{firing}" not in trace.marks:
            trace.in_order(f"!{firing}", "?next#1")


SCENARIO = Scenario(
    number=29, name="Cancelling Discriminator", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=["next#1"],
    against={
        "the others run on":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/ok#1 ?s#1/a#1 -s#1/a#1 +s#1/meet#1 -s#1/meet#1 +next#1 ?s#1/ok#1 "
            "-s#1/ok#1 ?next#1 -next#1 ?s#1/b#1 -s#1/b#1 +s#1/b2#1 ?s#1/b2#1 -s#1/b2#1 =completed",
        "supersteps":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/ok#1 ?s#1/a#1 -s#1/a#1 ?s#1/b#1 -s#1/b#1 ?s#1/ok#1 -s#1/ok#1 "
            "+s#1/meet#1 +s#1/b2#1 -s#1/meet#1 ?s#1/b2#1 -s#1/b2#1 +next#1 ?next#1 -next#1 =completed",
    },
    supersteps="a step is never cut short: all that began in the step of the first runs to its end",
)  # fmt: skip
