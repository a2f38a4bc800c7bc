"""21, structured loop: a body with one way in and one way out runs until a predicate holds, or a bound is met."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, spec

GRAPH = spec(
    llm("plan"), node("while", "loop", entry="draft", exit="end", max_iterations=9,
         until={"path": "outputs.review", "op": "eq", "value": "good"}),
    llm("draft"), llm("review"), llm("end", output_key="said"),
    edges="plan>while draft>review review>while end>END", output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    rounds = [f"{sign}{node}#{nth}" for nth in (1, 2, 3) for node in ("draft", "review") for sign in "+-"]
    trace.in_order(*rounds, "+end#1", "=completed")
    assert len(trace.firings("draft")) == 3, str(trace)


SCENARIO = Scenario(
    number=21, name="Structured Loop", degree="full", graphs=[GRAPH], holds=holds,
    says={"review": "weak", "review#3": "good"}, results=["end#1"], against={"a wait for every edge": ""},
)  # fmt: skip
