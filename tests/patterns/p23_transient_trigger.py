"""23, transient trigger: a message that comes before anybody waits for it is lost, and its sender is told."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import llm, node, spec

GRAPH = spec(
    llm("a"), node("wait", "signal", name="go", buffer=False, output_key="message"), edges="a>wait wait>END",
    output_key="message",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.in_order("-a#1", "+wait#1", "?wait#1", "-wait#1", "=completed")
    assert "?go" not in trace.marks, f"nothing is kept: {trace}"


SCENARIO = Scenario(
    number=23, name="Transient Trigger", degree="full", graphs=[GRAPH], holds=holds, results=["second"],
    acts={
        "too early": Act(signal="go", payload="first", refused="SIGNAL_NOT_AWAITED"),
        "in time": Act(signal="go", payload="second"),
    },
    after={"a#1": "too early", "in time": "+wait#1"},
    against={"a message is kept": "+a#1 ?go ?a#1 -a#1 +wait#1 -wait#1 =completed"},
)  # fmt: skip
