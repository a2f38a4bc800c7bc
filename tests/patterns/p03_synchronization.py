"""3, synchronization: what follows begins once, when the last branch is through, however long each of them is."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a1"), llm("a2"), llm("a3"), llm("b"), join("meet", ["a3", "b"], "met"),
    edges="s>a1 s>b a1>a2 a2>a3 a3>meet b>meet meet>END", output_key="met",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("meet")
    trace.in_order("-a3#1", "+meet#1")
    trace.in_order("-b#1", "+meet#1")


SCENARIO = Scenario(
    number=3, name="Synchronization", degree="full", graphs=[GRAPH], holds=holds, results=[["a3#1", "b#1"]],
    against={"supersteps": "", "a firing for each token": ""},
    supersteps="`meet` runs twice: after `b`, and two steps later after `a3`",
)  # fmt: skip
