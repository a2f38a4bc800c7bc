"""34, static partial join for multiple instances: two of three instances start what follows; the third ends unheard."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, spec, subgraph

INSTANCES = ("one", "two", "three")
TASK = spec(
    llm("draft", "draft {input}"), llm("polish", "polish {input}"), edges="draft>polish polish>END", name="task"
)
GRAPH = spec(
    passthrough("s"), *(subgraph(name, "task", input_key=name) for name in INSTANCES),
    join("meet", [*INSTANCES], "papers", on_missing="skip", wait={"count": 2}, cancel_rest=False),
    llm("next", output_key="said"),
    edges=" ".join(f"s>{name} {name}>meet" for name in INSTANCES) + " meet>next next>END", output_key="said",
)  # fmt: skip
LAST = [f"s#1/{name}#1/polish#1" for name in INSTANCES]


def holds(trace: Trace) -> None:
    first, second, third = sorted(LAST, key=lambda firing: trace.at(f"-{firing}"))
    trace.in_order(f"-{first}", f"-{second}", "+s#1/meet#1", "+next#1")
    trace.at_once(f"-{second}", "+next#1")
    trace.in_order(f"-{third}", "=completed")
    trace.once("s#1/meet", "next")


BEGIN = "+s#1 -s#1 " + " ".join(f"+s#1/{name}#1 +s#1/{name}#1/draft#1" for name in INSTANCES) + " " + " ".join(
    f"?s#1/{name}#1/draft#1 -s#1/{name}#1/draft#1 +s#1/{name}#1/polish#1" for name in INSTANCES
)  # fmt: skip
SCENARIO = Scenario(
    number=34, name="Static Partial Join for Multiple Instances", degree="partial", graphs=[TASK, GRAPH], holds=holds,
    run_input={name: f"topic {name}" for name in INSTANCES}, choices=True, results=["next#1"],
    against={
        "supersteps":
            f"{BEGIN} {' '.join(f'?{one} -{one}' for one in LAST)} +s#1/meet#1 -s#1/meet#1 +next#1 ?next#1 -next#1 "
            "=completed",
        "the rest is ended":
            f"{BEGIN} {' '.join(f'?{one} -{one}' for one in LAST[:2])} !{LAST[2]} +s#1/meet#1 -s#1/meet#1 +next#1 "
            "?next#1 -next#1 =completed",
    },
    supersteps="`meet` waits for the third, whose `polish` runs in the same step",
)  # fmt: skip
