"""33, generalized AND-join: branches may bring several tokens; the nth of one meets the nth of the other."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, passthrough, spec

GRAPH = spec(
    passthrough("s"),
    node("twice_a", "loop", entry="a", exit="END", max_iterations=2), llm("a", "a {loops.twice_a}"),
    node("twice_b", "loop", entry="b", exit="END", max_iterations=2), llm("b", "b {loops.twice_b}"), llm("b2"),
    llm("meet", "{outputs.a} with {outputs.b2}", output_key="met"),
    edges="s>twice_a s>twice_b a>twice_a a>meet b>b2 b2>twice_b b2>meet meet>END",
    output_key="met", reducers={"met": "append"},
)  # fmt: skip


def holds(trace: Trace) -> None:
    assert trace.firings("meet") == ["meet#1", "meet#2"], str(trace)
    for nth in (1, 2):
        trace.in_order(f"-a#{nth}", f"+meet#{nth}")
        trace.in_order(f"-b2#{nth}", f"+meet#{nth}")


SCENARIO = Scenario(
    number=33, name="Generalized AND-Join", degree="full", graphs=[GRAPH], holds=holds, results=[["meet#1", "meet#2"]],
    against={"supersteps": "", "a firing for each token": ""},
    supersteps="`meet` runs once for each step in which something comes, here four times",
)  # fmt: skip
