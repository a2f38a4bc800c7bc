"""8, multi-merge: what follows runs once for every branch that comes, as soon as it comes (`merge` "each")."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("a"), llm("b"), llm("x", "x of {input}", merge="each", output_key="said"),
    edges="s>a s>b a>x b>x x>END", reducers={"said": "append"}, output_key="said",
)  # fmt: skip


def holds(trace: Trace) -> None:
    assert sorted(trace.firings("x")) == ["x#1.1", "x#2.1"], str(trace)
    first = min(trace.at("-a#1"), trace.at("-b#1"))
    assert trace.marks[first + 1] in ("+x#1.1", "+x#2.1"), f"the first that came had to wait: {trace}"


SCENARIO = Scenario(
    number=8, name="Multi-Merge", degree="full", graphs=[GRAPH], holds=holds, results=[["x#1.1", "x#2.1"]],
    choices=True,
    against={
        "supersteps": "+s#1 -s#1 +a#1 +b#1 ?a#1 -a#1 ?b#1 -b#1 +x#1 ?x#1 -x#1 =completed",
        "one firing for all that come": "+s#1 -s#1 +a#1 +b#1 ?b#1 -b#1 ?a#1 -a#1 +x#1.1 ?x#1.1 -x#1.1 =completed",
    },
    supersteps="`x` runs once for both, since they come in one step; were one branch longer, twice",
)  # fmt: skip
