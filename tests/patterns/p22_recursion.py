"""22, recursion: a graph runs itself, and every level has a state of its own."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import join, llm, router, rule, spec, subgraph, transform

GRAPH = spec(
    llm("part", "part {n}"), transform("less", {"op": "increment", "path": "n", "value": -1}),
    router("more", rule("n", "gt", 0, "again"), default=["meet"]),
    subgraph("again", "case", input={"n": "n"}, allow_recursion=True),
    join("meet", ["part", "again"], "parts", on_missing="skip"),
    edges="part>less less>more again>meet meet>END", output_key="parts",
)  # fmt: skip


def holds(trace: Trace) -> None:
    trace.in_order(
        "+part#1", "+again#1", "+again#1/part#1", "+again#1/again#1", "+again#1/again#1/part#1",
        "-again#1/again#1/meet#1", "-again#1/again#1", "-again#1/meet#1", "-again#1", "-meet#1", "=completed",
    )  # fmt: skip
    trace.never("again#1/again#1/again")


SCENARIO = Scenario(
    number=22, name="Recursion", degree="full", graphs=[GRAPH], holds=holds, run_input={"n": 3},
    says={"part#1": "p3", "again#1/part#1": "p2", "again#1/again#1/part#1": "p1"}, results=[["p3", ["p2", ["p1"]]]],
    against={
        "a jump back to the beginning":
            "+part#1 ?part#1 -part#1 +less#1 -less#1 +more#1 -more#1 +part#2 ?part#2 -part#2 +less#2 -less#2 +more#2 "
            "-more#2 +part#3 ?part#3 -part#3 +less#3 -less#3 +more#3 -more#3 +meet#1 -meet#1 =completed",
    },
)  # fmt: skip
