"""25, cancel region: a part of the graph with all that is under way in it is ended from outside, and no more of it."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import gate, join, llm, node, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("outside"), passthrough("region"), llm("a"), llm("a2"), llm("b"), gate("b2"),
    join("all", ["a2", "b2"], "work"), node("stop", "signal"),
    join("meet", ["all", "stop"], wait="any"), llm("next"),
    join("end", ["outside", "next"], "said"),
    edges="s>outside s>region region>a region>b region>stop a>a2 b>b2 a2>all b2>all all>meet stop>meet meet>next "
          "next>end outside>end end>END", output_key="said",
)  # fmt: skip
TASKS = ("a", "a2", "b", "b2")


def holds(trace: Trace) -> None:
    trace.in_order("?region#1/stop#1", "+region#1/meet#1", "+next#1")
    trace.at_once("?region#1/stop#1", "+next#1")
    for task in (f"region#1/{name}#1" for name in TASKS):
        ended = [trace.at(mark) for mark in (f"-{task}", f"!{task}") if mark in trace.marks]
        assert len(ended) == (f"+{task}" in trace.marks), f"{task} did not end: {trace}"
        assert all(place < trace.at("?next#1") for place in ended), f"{task} went on: {trace}"
    trace.never("region#1/all")
    trace.in_order("-outside#1", "+end#1")
    trace.once("outside", "next", "end")


BEGIN = "+s#1 -s#1 +outside#1 +region#1 -region#1 +region#1/a#1 +region#1/b#1 +region#1/stop#1 "
SCENARIO = Scenario(
    number=25, name="Cancel Region", degree="partial", graphs=[GRAPH], holds=holds, choices=True,
    acts={"enough": Act(signal="stop", payload="stopped")}, results=[["outside#1", "next#1"]],
    after={"enough": "+region#1/stop#1", "region#1/b2#1": "enough"},
    against={
        "supersteps":
            BEGIN + "?region#1/stop#1 -region#1/stop#1 ?region#1/a#1 -region#1/a#1 ?region#1/b#1 -region#1/b#1 "
            "?outside#1 -outside#1 +region#1/meet#1 +region#1/a2#1 +region#1/b2#1 -region#1/meet#1 ?region#1/a2#1 "
            "-region#1/a2#1 ?region#1/b2#1 -region#1/b2#1 +next#1 ?next#1 -next#1 +end#1 -end#1 =completed",
        "only the node itself is ended":
            BEGIN + "?region#1/stop#1 -region#1/stop#1 !region#1/a#1 +region#1/meet#1 -region#1/meet#1 +next#1 "
            "?region#1/b#1 -region#1/b#1 +region#1/b2#1 ?next#1 -next#1 ?outside#1 -outside#1 +end#1 -end#1 "
            "?region#1/b2#1 -region#1/b2#1 =completed",
        "the whole run ends":
            BEGIN + "?region#1/stop#1 -region#1/stop#1 !region#1/a#1 !region#1/b#1 !outside#1 =cancelled",
    },
    supersteps="the step of `a` and `b` ends when they have, message or not, and `a2` and `b2` begin with `meet`",
)  # fmt: skip
