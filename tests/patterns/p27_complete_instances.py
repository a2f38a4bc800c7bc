"""27, complete multiple instance task: from outside the instances are declared complete, and what follows begins."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import join, llm, node, passthrough, spec

ITEMS = [f"s#1/each#1[{item}]/draft#1" for item in range(3)]
GRAPH = spec(
    passthrough("s"),
    node("each", "parallel", for_each={"path": "topics"}, entry="draft", join="draft", output_key="papers"),
    llm("draft", "draft {item}"), node("complete", "signal"),
    join("meet", ["each", "complete"], "came", "first_non_null", wait="any"), llm("next", output_key="said"),
    edges="s>each s>complete draft>meet complete>meet meet>next next>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("next")
    if "?s#1/complete#1" in trace.marks:
        trace.at_once("?s#1/complete#1", "+next#1")
        for item in ITEMS:
            trace.in_order(f"-{item}" if f"-{item}" in trace.marks else f"!{item}", "?next#1")
    else:
        for item in ITEMS:
            trace.in_order(f"-{item}", "+next#1")


SCENARIO = Scenario(
    number=27, name="Complete Multiple Instance Task", degree="partial", graphs=[GRAPH], holds=holds, choices=True,
    run_input={"topics": ["p", "q", "r"]}, acts={"enough": Act(signal="complete", payload="enough")},
    after={"enough": "+s#1/complete#1"}, results=["next#1"],
    against={
        "supersteps":
            "+s#1 -s#1 +s#1/each#1 +s#1/complete#1 " + " ".join(f"+{item}" for item in ITEMS)
            + " ?s#1/complete#1 -s#1/complete#1 " + " ".join(f"?{item} -{item}" for item in ITEMS)
            + " -s#1/each#1 +s#1/meet#1 -s#1/meet#1 +next#1 ?next#1 -next#1 =completed",
        "the instances run on":
            "+s#1 -s#1 +s#1/each#1 +s#1/complete#1 " + " ".join(f"+{item}" for item in ITEMS)
            + f" ?{ITEMS[0]} -{ITEMS[0]} ?s#1/complete#1 -s#1/complete#1 +s#1/meet#1 -s#1/meet#1 +next#1 ?next#1 "
            f"-next#1 ?{ITEMS[1]} -{ITEMS[1]} ?{ITEMS[2]} -{ITEMS[2]} -s#1/each#1 =completed",
    },
    supersteps="`next` begins when the slowest instance is through, message or not",
)  # fmt: skip
