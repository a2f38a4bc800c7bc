"""10, arbitrary cycles: a cycle with two ways in and two ways out, which no structured loop can say."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, router, rule, spec

GRAPH = spec(
    router("in", rule("start", "eq", "y", "y"), default=["x"]),
    llm("x"), router("after_x", rule("outputs.x", "eq", "enough", "END"), default=["y"]),
    llm("y"), router("after_y", rule("outputs.y", "eq", "enough", "END"), default=["x"]),
    edges="x>after_x y>after_y",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.in_order("+y#1", "-y#1", "+x#1", "-x#1", "+y#2", "-y#2", "+x#2", "-x#2", "=completed")
    assert len(trace.firings("x") + trace.firings("y")) == 4, str(trace)


SCENARIO = Scenario(
    number=10, name="Arbitrary Cycles", degree="full", graphs=[GRAPH], holds=holds, run_input={"start": "y"},
    says={"x#1": "more", "x#2": "enough", "y": "more"}, against={"a wait for every edge": ""},
)  # fmt: skip
