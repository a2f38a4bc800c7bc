"""24, persistent trigger: a message that comes before anybody waits for it is kept until somebody does."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import join, llm, node, spec

GRAPH = spec(
    llm("a"), node("one", "signal", name="go"), node("two", "signal", name="go"), join("both", ["one", "two"], "came"),
    edges="a>one one>two two>both both>END", output_key="came",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.in_order("?go", "-a#1", "+one#1", "-one#1", "+two#1", "?two#1", "-two#1", "=completed")
    trace.at_once("-a#1", "-one#1")  # what was kept is there at once, and used up by the first


SCENARIO = Scenario(
    number=24, name="Persistent Trigger", degree="full", graphs=[GRAPH], holds=holds, results=[["first", "second"]],
    acts={"early": Act(signal="go", payload="first"), "later": Act(signal="go", payload="second")},
    after={"a#1": "early", "later": "+two#1"},
    against={
        "a message is lost": "+a#1 ?go ?a#1 -a#1 +one#1 ?one#1 -one#1 +two#1 ?two#1 -two#1 =completed",
        "a message stays for all": "+a#1 ?go ?a#1 -a#1 +one#1 -one#1 +two#1 -two#1 =completed",
    },
)  # fmt: skip
