"""35, cancelling partial join for multiple instances: with so many results it goes on, and the other instances end."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, spec

DRAFTS = [f"each#1[{item}]/draft#1" for item in range(4)]
GRAPH = spec(
    node("each", "parallel", for_each={"path": "topics", "wait": {"count": 2}}, entry="draft", join="draft",
         output_key="papers"),
    llm("draft", "draft {item}"), llm("edit", "edit {papers}", output_key="book"),
    edges="draft>edit edit>END", output_key="book",
)  # fmt: skip


def holds(trace: Trace) -> None:
    done = [draft for draft in DRAFTS if f"-{draft}" in trace.marks]
    assert len(done) == 2, f"two are enough: {trace}"
    for draft in DRAFTS:
        trace.in_order(f"+{draft}", f"-{draft}" if draft in done else f"!{draft}", "+edit#1")
    trace.at_once(f"-{max(done, key=lambda draft: trace.at(f'-{draft}'))}", "+edit#1")
    trace.once("edit")


START = "+each#1 " + " ".join(f"+{draft}" for draft in DRAFTS)
SCENARIO = Scenario(
    number=35, name="Cancelling Partial Join for Multiple Instances", degree="full", graphs=[GRAPH], holds=holds,
    run_input={"topics": ["p", "q", "r", "s"]}, choices=True, results=["edit#1"],
    against={
        "a wait for all instances":
            f"{START} {' '.join(f'?{d} -{d}' for d in DRAFTS)} -each#1 +edit#1 ?edit#1 -edit#1 =completed",
        "the rest runs on":
            f"{START} {' '.join(f'?{d} -{d}' for d in DRAFTS[:2])} -each#1 +edit#1 "
            f"{' '.join(f'?{d} -{d}' for d in DRAFTS[2:])} ?edit#1 -edit#1 =completed",
        "supersteps":
            f"{START} {' '.join(f'?{d} -{d}' for d in DRAFTS)} -each#1 +edit#1 ?edit#1 -edit#1 =completed",
    },
    supersteps="instances of one step end together, so nothing is left to cancel",
)  # fmt: skip
