"""16, deferred choice: both ways stand open until the world takes one, here a message or the clock."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import llm, node, spec

GRAPH = spec(
    node("wait", "signal", name="paid", expiry_ms=60_000, on_expire={"goto": ["remind"]}),
    llm("ship", output_key="said"), llm("remind", output_key="said"),
    edges="wait>ship ship>END remind>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.in_order("+wait#1", "?wait#1", "-wait#1")
    assert len(trace.firings("ship") + trace.firings("remind")) == 1, f"one of the two: {trace}"
    taken = (trace.firings("ship") + trace.firings("remind"))[0]
    trace.in_order("?wait#1", f"+{taken}")


SCENARIO = Scenario(
    number=16, name="Deferred Choice", degree="full", graphs=[GRAPH], holds=holds,
    acts={"the money": Act(signal="paid", payload="10")}, results=["ship#1", "remind#1"], choices=True,
    against={
        "a choice made on arrival": "+wait#1 -wait#1 +ship#1 ?ship#1 -ship#1 =completed",
        "both ways begin": "+wait#1 +ship#1 +remind#1 ?wait#1 -wait#1 ?ship#1 -ship#1 ?remind#1 -remind#1 =completed",
    },
)  # fmt: skip
