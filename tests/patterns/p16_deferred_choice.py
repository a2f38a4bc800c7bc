"""16, deferred choice: several ways stand open until the world takes one, here by a message, another or the clock."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import join, llm, node, passthrough, router, rule, spec

GRAPH = spec(
    passthrough("s"), node("paid", "signal", output_key="came"), node("withdrawn", "signal", output_key="came"),
    node("late", "timer", delay_ms=3_600_000), join("meet", wait="any"),
    router("which", rule("came", "eq", "money", "ship"), rule("came", "eq", "letter", "stop"), default=["remind"]),
    *(llm(name, output_key="said") for name in ("ship", "stop", "remind")),
    edges="s>paid s>withdrawn s>late paid>meet withdrawn>meet late>meet meet>which ship>END stop>END remind>END",
    output_key="said",
)  # fmt: skip
WAYS = {"s#1/paid#1": "ship", "s#1/withdrawn#1": "stop", "s#1/late#1": "remind"}


def holds(trace: Trace) -> None:
    for way in WAYS:
        trace.at_once("-s#1", f"+{way}")
    taken = [way for way in WAYS if f"-{way}" in trace.marks]
    assert len(taken) == 1, f"one of the three: {trace}"
    trace.at_once(f"?{taken[0]}", f"+{WAYS[taken[0]]}#1")
    for way, task in WAYS.items():
        if way != taken[0]:
            trace.in_order(f"?{taken[0]}", f"!{way}", f"?{WAYS[taken[0]]}#1")
            trace.never(task)


BEGIN = "+s#1 -s#1 " + " ".join(f"+{way}" for way in WAYS) + " "
SCENARIO = Scenario(
    number=16, name="Deferred Choice", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    acts={"the money": Act(signal="paid", payload="money"), "the letter": Act(signal="withdrawn", payload="letter")},
    after={"the money": "+s#1/paid#1", "the letter": "+s#1/withdrawn#1"},
    results=["ship#1", "stop#1", "remind#1"],
    against={
        "a choice before anything came":
            "+s#1 -s#1 +s#1/paid#1 ?s#1/paid#1 -s#1/paid#1 +s#1/meet#1 -s#1/meet#1 +which#1 -which#1 +ship#1 ?ship#1 "
            "-ship#1 =completed",
        "the other ways stay open":
            BEGIN + "?s#1/paid#1 -s#1/paid#1 +s#1/meet#1 -s#1/meet#1 +which#1 -which#1 +ship#1 ?ship#1 -ship#1 "
            "?s#1/withdrawn#1 -s#1/withdrawn#1 +stop#1 ?stop#1 -stop#1 ?s#1/late#1 -s#1/late#1 =completed",
        "supersteps":
            BEGIN + " ".join(f"?{way} -{way}" for way in WAYS) + " +s#1/meet#1 -s#1/meet#1 +which#1 -which#1 +ship#1 "
            "?ship#1 -ship#1 =completed",
    },
    supersteps="the step of the three waits is over when all of them are",
)  # fmt: skip
