"""14, multiple instances with a priori run-time knowledge: a model says how many, and what follows runs once."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, spec

EACH = "each#1[{}]/draft#1"
GRAPH = spec(
    llm("plan", "name the topics", json_mode=True, output_key="topics"),
    node("each", "parallel", for_each={"path": "topics"}, entry="draft", join="draft", output_key="papers"),
    llm("draft", "draft {item}"), llm("edit", "edit {papers}", output_key="book"),
    edges="plan>each draft>edit edit>END", output_key="papers",
)  # fmt: skip


def holds(trace: Trace) -> None:
    drafts = [EACH.format(item) for item in range(4)]
    assert [mark for mark in trace.marks if mark[0] == "+" and "[" in mark] == [f"+{draft}" for draft in drafts]
    for draft in drafts:
        trace.at_once("-plan#1", f"+{draft}")
        trace.in_order(f"-{draft}", "+edit#1")
    trace.once("edit")


SCENARIO = Scenario(
    number=14, name="Multiple Instances with a priori Run-Time Knowledge", degree="full", graphs=[GRAPH], holds=holds,
    says={"plan": ["p", "q", "r", "s"], **{EACH.format(item): f"paper {item}" for item in range(4)}},
    results=[[f"paper {item}" for item in range(4)]],
    against={
        "a number fixed beforehand":
            "+plan#1 ?plan#1 -plan#1 +each#1 +each#1[0]/draft#1 +each#1[1]/draft#1 ?each#1[0]/draft#1 "
            "-each#1[0]/draft#1 ?each#1[1]/draft#1 -each#1[1]/draft#1 -each#1 +edit#1 ?edit#1 -edit#1 =completed",
        "one instance after the other":
            "+plan#1 ?plan#1 -plan#1 +each#1 "
            + " ".join(f"+{d} ?{d} -{d}" for d in map(EACH.format, range(4)))
            + " -each#1 +edit#1 ?edit#1 -edit#1 =completed",
    },
)  # fmt: skip
