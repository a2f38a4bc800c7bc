"""12, multiple instances without synchronization: instances run on while what follows does not wait for them."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, passthrough, spec

GRAPH = spec(
    passthrough("s"),
    node("each", "parallel", for_each={"path": "topics"}, entry="draft", join="draft", output_key="papers"),
    llm("draft", "draft {item}"), llm("next"), llm("last", output_key="said"),
    edges="s>each s>next draft>END next>last last>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    for item in range(2):
        trace.at_once("-s#1", f"+each#1[{item}]/draft#1")
        trace.in_order(f"-each#1[{item}]/draft#1", "=completed")
    trace.at_once("-s#1", "+next#1")
    trace.at_once("-next#1", "+last#1")


SCENARIO = Scenario(
    number=12, name="Multiple Instances without Synchronization", degree="partial", graphs=[GRAPH], holds=holds,
    run_input={"topics": ["p", "q"]}, results=["last#1"],
    against={
        "what follows waits for all instances":
            "+s#1 -s#1 +each#1 +each#1[0]/draft#1 +each#1[1]/draft#1 ?each#1[0]/draft#1 -each#1[0]/draft#1 "
            "?each#1[1]/draft#1 -each#1[1]/draft#1 -each#1 +next#1 ?next#1 -next#1 +last#1 ?last#1 -last#1 =completed",
        "supersteps":
            "+s#1 -s#1 +each#1 +next#1 +each#1[0]/draft#1 +each#1[1]/draft#1 ?next#1 -next#1 ?each#1[0]/draft#1 "
            "-each#1[0]/draft#1 ?each#1[1]/draft#1 -each#1[1]/draft#1 -each#1 +last#1 ?last#1 -last#1 =completed",
    },
    supersteps="`last` waits for the step in which the instances run, and so for all of them",
)  # fmt: skip
