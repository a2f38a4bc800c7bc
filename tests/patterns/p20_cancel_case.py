"""20, cancel case: the whole run ends, with what is under way, what waits and what has not begun."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import gate, join, llm, node, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a"), gate("ok"), node("wait", "signal"), join("meet", ["a", "wait"], "done"),
    edges="s>a s>ok s>wait a>meet ok>meet wait>meet meet>END", output_key="done",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.in_order("+wait#1", "?cancel", "!wait#1", "=cancelled")
    trace.never("meet")
    for firing in ("a#1", "ok#1"):  # done before, or never
        assert (f"-{firing}" in trace.marks) is not (f"!{firing}" in trace.marks), str(trace)
        if f"-{firing}" in trace.marks:
            trace.in_order(f"-{firing}", "?cancel")


SCENARIO = Scenario(
    number=20, name="Cancel Case", degree="full", graphs=[GRAPH], holds=holds, acts={"cancel": Act()},
    status="cancelled", choices=True,
    against={
        "what is under way is let through":
            "+s#1 -s#1 +a#1 +ok#1 +wait#1 ?cancel !wait#1 !ok#1 ?a#1 -a#1 =cancelled",
        "only what has begun ends": "+s#1 -s#1 +a#1 +ok#1 +wait#1 ?cancel !a#1 !ok#1 !wait#1 +meet#1 =cancelled",
    },
)  # fmt: skip
