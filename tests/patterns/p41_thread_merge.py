"""41, thread merge: the threads that one branch was split into become one again."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, put, spec

THREADS = [f"each#1[{place}]" for place in range(3)]
GRAPH = spec(
    put("three", threads=[1, 2, 3]),
    node("each", "parallel", for_each={"path": "threads"}, entry="check", join="check", output_key="checked"),
    llm("check", "check {item}"), llm("report", output_key="said"),
    edges="three>each check>report report>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("report")
    for thread in THREADS:
        trace.in_order(f"-{thread}/check#1", "+report#1")


SCENARIO = Scenario(
    number=41, name="Thread Merge", degree="partial", graphs=[GRAPH], holds=holds, results=["report#1"],
    against={
        "threads that stay apart":
            "+three#1 -three#1 +each#1 " + " ".join(f"+{thread}/check#1" for thread in THREADS) + " "
            + " ".join(f"?{thread}/check#1 -{thread}/check#1 +report#{n + 1} ?report#{n + 1} -report#{n + 1}"
                       for n, thread in enumerate(THREADS)) + " =completed",
    },
)  # fmt: skip
