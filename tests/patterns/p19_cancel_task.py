"""19, cancel task: a task that has begun is ended from outside, and the run goes on."""

from __future__ import annotations

from tests.patterns.scenario import Act, Scenario, Trace
from tests.specs import join, llm, node, passthrough, spec

GRAPH = spec(
    passthrough("s"), llm("other", output_key="kept"), passthrough("task_or_stop"), llm("task"), node("stop", "signal"),
    join("meet", ["task", "stop"], "first", "first_non_null", wait="any"), llm("next"),
    join("both", ["other", "next"], "said"),
    edges="s>other s>task_or_stop task_or_stop>task task_or_stop>stop task>meet stop>meet meet>next next>both "
          "other>both both>END", output_key="said",
)  # fmt: skip
TASK, STOP = "task_or_stop#1/task#1", "task_or_stop#1/stop#1"


def holds(trace: Trace) -> None:
    won, lost = (TASK, STOP) if f"-{TASK}" in trace.marks else (STOP, TASK)
    trace.in_order(f"-{won}", f"!{lost}", "?next#1", "+both#1")
    trace.at_once(f"-{won}", "+next#1")
    trace.once("other", "next", "both")
    trace.in_order("-other#1", "+both#1")


SCENARIO = Scenario(
    number=19, name="Cancel Task", degree="full", graphs=[GRAPH], holds=holds, choices=True,
    acts={"enough": Act(signal="stop", payload="stopped")}, results=[["other#1", "next#1"]],
    after={"enough": f"+{STOP}"},
    against={
        "what has begun is let through":
            f"+s#1 -s#1 +other#1 +task_or_stop#1 -task_or_stop#1 +{TASK} +{STOP} ?{STOP} -{STOP} ?other#1 -other#1 "
            f"?{TASK} -{TASK} +task_or_stop#1/meet#1 -task_or_stop#1/meet#1 +next#1 ?next#1 -next#1 +both#1 -both#1 "
            "=completed",
        "the whole run ends": f"+s#1 -s#1 +other#1 +task_or_stop#1 -task_or_stop#1 +{TASK} +{STOP} ?{STOP} -{STOP} "
                              f"!{TASK} !other#1 =cancelled",
        "supersteps":
            f"+s#1 -s#1 +other#1 +task_or_stop#1 ?other#1 -other#1 -task_or_stop#1 +{TASK} +{STOP} ?{STOP} -{STOP} "
            f"?{TASK} -{TASK} +task_or_stop#1/meet#1 -task_or_stop#1/meet#1 +next#1 ?next#1 -next#1 +both#1 -both#1 "
            "=completed",
    },
    supersteps="the step of `task` cannot end before `task` has",
)  # fmt: skip
