"""42, thread split: one branch becomes so many threads, each of which goes through what follows by itself."""

from __future__ import annotations

from tests.patterns.scenario import Scenario, Trace
from tests.specs import llm, node, put, router, rule, spec

THREADS = [f"each#1[{place}]" for place in range(3)]
GRAPH = spec(
    put("three", threads=[1, 2, 3]),
    node("each", "parallel", for_each={"path": "threads"}, entry="check", join="end", output_key="checked"),
    llm("check", "check {item}"), router("which", rule("outputs.check", "eq", "bad", "mend"), default=["end"]),
    llm("mend", "mend {item}"), llm("end", "end {item}"),
    edges="three>each check>which mend>end end>END", output_key="checked",
)  # fmt: skip


def holds(trace: Trace) -> None:
    for thread in THREADS:
        trace.at_once("-three#1", f"+{thread}/check#1")
        trace.in_order(f"-{thread}/check#1", f"+{thread}/end#1")
        trace.at_once(f"-{thread}/check#1", f"+{thread}/{'mend' if thread == THREADS[1] else 'end'}#1")
    trace.once(f"{THREADS[1]}/mend")
    trace.never(f"{THREADS[0]}/mend", f"{THREADS[2]}/mend")


SCENARIO = Scenario(
    number=42, name="Thread Split", degree="partial", graphs=[GRAPH], holds=holds, says={"check": "good", "end": "e",
    f"{THREADS[1]}/check#1": "bad"}, results=[["e", "e", "e"]],
    against={
        "one thread": f"+three#1 -three#1 +each#1 +{THREADS[0]}/check#1 ?{THREADS[0]}/check#1 -{THREADS[0]}/check#1 "
                      f"+{THREADS[0]}/which#1 -{THREADS[0]}/which#1 +{THREADS[0]}/end#1 ?{THREADS[0]}/end#1 "
                      f"-{THREADS[0]}/end#1 -each#1 =completed",
        "supersteps":
            "+three#1 -three#1 +each#1 "
            + " ".join(f"+{t}/check#1" for t in THREADS) + " " + " ".join(f"?{t}/check#1 -{t}/check#1" for t in THREADS)
            + " " + " ".join(f"+{t}/which#1 -{t}/which#1" for t in THREADS)
            + f" +{THREADS[0]}/end#1 +{THREADS[1]}/mend#1 +{THREADS[2]}/end#1 ?{THREADS[0]}/end#1 -{THREADS[0]}/end#1 "
            f"?{THREADS[1]}/mend#1 -{THREADS[1]}/mend#1 ?{THREADS[2]}/end#1 -{THREADS[2]}/end#1 +{THREADS[1]}/end#1 "
            f"?{THREADS[1]}/end#1 -{THREADS[1]}/end#1 -each#1 =completed",
    },
    supersteps="the threads go on in step: none begins its next task before the slowest has done this one",
)  # fmt: skip
