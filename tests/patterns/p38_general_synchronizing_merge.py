"""38, general synchronizing merge: what follows waits for a branch that goes round for as long as it may still come."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, router, rule, spec

GRAPH = spec(
    passthrough("s"), llm("a"), llm("b"),
    router("which", rule("outputs.b", "eq", "again", "b"), rule("outputs.b", "eq", "give up", "END"), default=["meet"]),
    join("meet", ["a", "b"], "met"), edges="s>a s>b a>meet b>which meet>END", output_key="met",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.once("meet")
    trace.in_order("-a#1", "+meet#1")
    trace.in_order("-which#1", "-which#2", "-which#3", "+meet#1")
    assert min(trace.at("+meet#1") - trace.at("-a#1"), trace.at("+meet#1") - trace.at("-which#3")) == 1, str(trace)
    trace.in_order("-meet#1", "=completed")


SCENARIO = Scenario(
    number=38, name="General Synchronizing Merge", degree="full", graphs=[GRAPH], holds=holds,
    says={"a": "A", "b": "again", "b#3": "give up"}, results=[["A", None]],
    against={"supersteps": "", "a wait for every edge": ""},
    supersteps="`meet` runs after `a` alone, and again should the other branch come",
)  # fmt: skip
