"""26, cancel multiple instance task: all instances that are still under way are ended, and the run goes on."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import join, llm, node, passthrough, router, rule, spec

ITEMS = [f"s#1/each#1[{item}]/draft#1" for item in range(3)]
GRAPH = spec(
    passthrough("s"),
    node("each", "parallel", for_each={"path": "topics"}, entry="draft", join="draft", output_key="papers"),
    llm("draft", "draft {item}"), node("stop", "signal"),
    join("meet", ["each", "stop"], "came", "collect_object", wait="any"),
    router("which", rule("came.each", "is_type", "array", "print"), default=["excuse"]),
    llm("print", output_key="said"), llm("excuse", output_key="said"),
    edges="s>each s>stop draft>meet stop>meet meet>which print>END excuse>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    for item in ITEMS:
        trace.at_once("-s#1", f"+{item}")
    if "-s#1/stop#1" in trace.marks:
        trace.in_order("?s#1/stop#1", "!s#1/each#1", "?excuse#1")
        trace.never("print")
        for item in ITEMS:
            assert (f"-{item}" in trace.marks) is not (f"!{item}" in trace.marks), f"{item} is not ended once: {trace}"
            mark = f"-{item}" if f"-{item}" in trace.marks else f"!{item}"
            trace.in_order(mark, "?excuse#1")
    else:
        trace.in_order("-s#1/each#1", "!s#1/stop#1", "?print#1")
        trace.never("excuse")


BEGIN = "+s#1 -s#1 +s#1/each#1 +s#1/stop#1 " + " ".join(f"+{item}" for item in ITEMS) + " "
SCENARIO = Scenario(
    number=26, name="Cancel Multiple Instance Task", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    run_input={"topics": ["p", "q", "r"]}, acts={"enough": Act(signal="stop", payload="stopped")},
    after={"enough": "+s#1/stop#1"}, results=["print#1", "excuse#1"],
    against={
        "one instance is ended":
            BEGIN + f"?s#1/stop#1 -s#1/stop#1 !{ITEMS[0]} !s#1/each#1 +s#1/meet#1 -s#1/meet#1 +which#1 -which#1 "
            f"+excuse#1 ?{ITEMS[1]} -{ITEMS[1]} ?excuse#1 -excuse#1 ?{ITEMS[2]} -{ITEMS[2]} =completed",
        "supersteps":
            BEGIN + "?s#1/stop#1 -s#1/stop#1 "
            + " ".join(f"?{item} -{item}" for item in ITEMS) + " -s#1/each#1 +s#1/meet#1 -s#1/meet#1 +which#1 -which#1 "
            "+excuse#1 ?excuse#1 -excuse#1 =completed",
    },
    supersteps="the message ends nothing: the step is over when the slowest instance is",
)  # fmt: skip
