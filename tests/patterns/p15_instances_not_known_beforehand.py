"""15, multiple instances without a priori run-time knowledge: whether there is one more is asked while others run."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, passthrough, router, rule, spec, subgraph

GRAPH = spec(
    passthrough("s"), llm("work", "work {depth}"), llm("more", "one more than {depth}?"),
    router("which", rule("outputs.more", "eq", "yes", "deeper"), default=["meet"]),
    {"id": "deeper", "type": "state_transform", "config": {
        "operations": [{"op": "increment", "path": "depth"}]}},
    subgraph("again", "case", input={"depth": "depth"}, allow_recursion=True),
    join("meet", ["work", "again"], "done", on_missing="skip"),
    edges="s>work s>more more>which deeper>again again>meet work>meet meet>END", output_key="done",
)  # fmt: skip
FRAMES = ("", "again#1/", "again#1/again#1/")


def holds(trace: Trace) -> None:
    for frame in FRAMES:
        trace.at_once(f"-{frame}s#1", f"+{frame}work#1")
    for frame in FRAMES[:2]:  # the decision for one more starts it, whatever is still under way
        trace.at_once(f"-{frame}more#1", f"+{frame}again#1/work#1")
    trace.never("again#1/again#1/again")
    for frame in FRAMES:
        trace.in_order(f"-{frame}work#1", "+meet#1")


SCENARIO = Scenario(
    number=15, name="Multiple Instances without a priori Run-Time Knowledge", degree="partial", graphs=[GRAPH],
    holds=holds, run_input={"depth": 0},
    says={"more": "yes", "again#1/again#1/more#1": "no", **{f"{f}work#1": f"w{n}" for n, f in enumerate(FRAMES)}},
    results=[["w0", ["w1", ["w2"]]]],
    against={
        "supersteps":
            "+s#1 -s#1 +work#1 +more#1 ?more#1 -more#1 ?work#1 -work#1 +which#1 -which#1 +deeper#1 -deeper#1 +again#1 "
            "+again#1/s#1 -again#1/s#1 +again#1/work#1 +again#1/more#1 ?again#1/more#1 -again#1/more#1 "
            "?again#1/work#1 -again#1/work#1 +again#1/which#1 -again#1/which#1 +again#1/deeper#1 -again#1/deeper#1 "
            "+again#1/again#1 +again#1/again#1/s#1 -again#1/again#1/s#1 +again#1/again#1/work#1 "
            "+again#1/again#1/more#1 ?again#1/again#1/more#1 -again#1/again#1/more#1 ?again#1/again#1/work#1 "
            "-again#1/again#1/work#1 -again#1/again#1 -again#1 +meet#1 -meet#1 =completed",
        "a number fixed beforehand":
            "+s#1 -s#1 +work#1 +more#1 ?more#1 -more#1 +which#1 -which#1 ?work#1 -work#1 +meet#1 -meet#1 =completed",
        "the next instance begins when the one before it is through":
            "+s#1 -s#1 +work#1 +more#1 ?more#1 -more#1 +which#1 -which#1 ?work#1 -work#1 +deeper#1 -deeper#1 +again#1 "
            "+again#1/s#1 -again#1/s#1 +again#1/work#1 ?again#1/work#1 -again#1/work#1 +again#1/again#1/s#1 "
            "-again#1/again#1/s#1 +again#1/again#1/work#1 ?again#1/again#1/work#1 -again#1/again#1/work#1 -again#1 "
            "+meet#1 -meet#1 =completed",
    },
    supersteps="the next instance begins only when the `work` of this one is through",
)  # fmt: skip
