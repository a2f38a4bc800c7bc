"""13, multiple instances with a priori design-time knowledge: a number of instances written in the graph, side by side
and each at its own pace, then one step for all."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, put, spec

GRAPH = spec(
    put("three", topics=["p", "q", "r"]),
    node("each", "parallel", for_each={"path": "topics"}, entry="draft", join="polish", output_key="papers"),
    llm("draft", "draft {item}"), llm("polish", "polish {item} {input}"),
    edges="three>each draft>polish polish>END", output_key="papers",
)  # fmt: skip


def holds(trace: Trace) -> None:
    for item in range(3):
        trace.at_once("-three#1", f"+each#1[{item}]/draft#1")
        trace.at_once(f"-each#1[{item}]/draft#1", f"+each#1[{item}]/polish#1")
        trace.in_order(f"-each#1[{item}]/polish#1", "-each#1")
    trace.never("each#1[3]/draft")


STEPS = (
    "+three#1 -three#1 +each#1 +each#1[0]/draft#1 +each#1[1]/draft#1 +each#1[2]/draft#1 ?each#1[0]/draft#1 "
    "-each#1[0]/draft#1 ?each#1[1]/draft#1 -each#1[1]/draft#1 ?each#1[2]/draft#1 -each#1[2]/draft#1 "
    "+each#1[0]/polish#1 +each#1[1]/polish#1 +each#1[2]/polish#1 ?each#1[0]/polish#1 -each#1[0]/polish#1 "
    "?each#1[1]/polish#1 -each#1[1]/polish#1 ?each#1[2]/polish#1 -each#1[2]/polish#1 -each#1 "
    "=completed"
)

SCENARIO = Scenario(
    number=13, name="Multiple Instances with a priori Design-Time Knowledge", degree="full", graphs=[GRAPH],
    holds=holds, says={"polish": "done"}, results=[["done"] * 3], against={"supersteps": STEPS},
    supersteps="no `polish` begins before the slowest `draft` is there",
)  # fmt: skip
