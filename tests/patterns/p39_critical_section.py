"""39, critical section: of two parts of a graph only one is under way at a time, each as a whole."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec, subgraph

SECTION = spec(llm("read", "read {input}"), llm("write", "write {input}"), edges="read>write write>END", name="section")
GRAPH = spec(
    passthrough("s"), llm("to_one"), llm("to_two"),
    subgraph("one", "section", mutex="ledger"), subgraph("two", "section", mutex="ledger"),
    join("meet", ["one", "two"], "done"),
    edges="s>to_one s>to_two to_one>one to_two>two one>meet two>meet meet>END", output_key="done",
)  # fmt: skip


def holds(trace: Trace) -> None:
    spans = sorted((trace.at(f"+{one}#1/read#1"), trace.at(f"-{one}#1/write#1")) for one in ("one", "two"))
    assert spans[0][1] < spans[1][0], f"one came in between the other's two: {trace}"
    trace.in_order("-one#1", "+meet#1")
    trace.in_order("-two#1", "+meet#1")


BEGIN = "+s#1 -s#1 +to_one#1 +to_two#1 ?to_one#1 -to_one#1 ?to_two#1 -to_two#1 "
SCENARIO = Scenario(
    number=39, name="Critical Section", degree="full", graphs=[SECTION, GRAPH], holds=holds, choices=True,
    results=[["one#1/write#1", "two#1/write#1"]],
    against={
        "supersteps":
            BEGIN + "+one#1 +two#1 +one#1/read#1 +two#1/read#1 ?one#1/read#1 -one#1/read#1 ?two#1/read#1 "
            "-two#1/read#1 +one#1/write#1 +two#1/write#1 ?one#1/write#1 -one#1/write#1 ?two#1/write#1 -two#1/write#1 "
            "-one#1 -two#1 +meet#1 -meet#1 =completed",
        "one task at a time":
            BEGIN + "+one#1 +one#1/read#1 ?one#1/read#1 -one#1/read#1 +two#1 +two#1/read#1 ?two#1/read#1 "
            "-two#1/read#1 +one#1/write#1 ?one#1/write#1 -one#1/write#1 -one#1 +two#1/write#1 ?two#1/write#1 "
            "-two#1/write#1 -two#1 +meet#1 -meet#1 =completed",
    },
    supersteps="both parts go on side by side, step by step",
)  # fmt: skip
