"""32, cancelling partial join: two of three branches start what follows, and the third is ended."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec

BRANCHES = ("s#1/a#1", "s#1/b#1", "s#1/c#1")
GRAPH = spec(
    passthrough("s"), llm("a"), llm("b"), llm("c"),
    join("meet", ["a", "b", "c"], "two", on_missing="skip", wait={"count": 2}), llm("next", output_key="said"),
    edges="s>a s>b s>c a>meet b>meet c>meet meet>next next>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    done = [firing for firing in BRANCHES if f"-{firing}" in trace.marks]
    rest = [firing for firing in BRANCHES if firing not in done]
    assert len(rest) == 1, f"the third came to its end: {trace}"
    for firing in done:
        trace.in_order(f"-{firing}", "+s#1/meet#1")
    trace.in_order(f"!{rest[0]}", "?next#1")
    trace.at_once(f"-{max(done, key=lambda firing: trace.at(f'-{firing}'))}", "+next#1")
    trace.once("s#1/meet", "next")


SCENARIO = Scenario(
    number=32, name="Cancelling Partial Join", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    results=["next#1"],
    against={
        "the rest runs on":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 ?s#1/c#1 -s#1/c#1 +s#1/meet#1 -s#1/meet#1 +next#1 "
            "?next#1 -next#1 ?s#1/b#1 -s#1/b#1 =completed",
        "supersteps":
            "+s#1 -s#1 +s#1/a#1 +s#1/b#1 +s#1/c#1 ?s#1/a#1 -s#1/a#1 ?s#1/b#1 -s#1/b#1 ?s#1/c#1 -s#1/c#1 +s#1/meet#1 "
            "-s#1/meet#1 +next#1 ?next#1 -next#1 =completed",
    },
    supersteps="nothing is left to cancel: the three end with their step",
)  # fmt: skip
