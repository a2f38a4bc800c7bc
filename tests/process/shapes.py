"""Twelve shapes of graphs for the chaos suite; what a model or a person says follows from what it is asked."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.specs import gate, join, llm, node, passthrough, put, router, rule, spec, subgraph, transform

Json = dict[str, Any]


def asks(node_id: str, *read: str, **config: Any) -> Json:
    """A model call whose prompt names the run, the node and what it reads."""
    prompt = " ".join([f"{{tag}} {node_id}:", *(f"{{{name}}}" for name in read)])
    return llm(node_id, prompt, output_key=node_id, **config)


FLAKY = "d"
"""The node whose model fails at first: its run waits before it tries again."""
CHAIN = spec(
    asks("a"), asks("b", "a"), asks("c", "b"), asks("d", "c"), asks("e", "d"),
    edges="a>b b>c c>d d>e e>END", output_key="e", name="chain",
)  # fmt: skip
FAN_OUT = spec(
    asks("plan"), *(asks(f"w{number}", "plan") for number in range(5)),
    join("j", [f"w{number}" for number in range(5)], "all", "collect_array"), asks("end", "all"),
    edges=" ".join(f"plan>w{n} w{n}>j" for n in range(5)) + " j>end end>END", output_key="end", name="fan_out",
)  # fmt: skip
NESTED = spec(
    passthrough("s"), asks("a"), asks("b"), passthrough("f"), asks("b1", "b"), asks("b2", "b"),
    join("inner", ["b1", "b2"], "bs", "collect_array"), asks("c", "bs"),
    join("outer", ["a", "c"], "all", "collect_array"), asks("end", "all"),
    edges="s>a s>b b>f f>b1 f>b2 b1>inner b2>inner inner>c a>outer c>outer outer>end end>END",
    output_key="end", name="nested",
)  # fmt: skip
LOOP = spec(
    node("l", "loop", entry="draft", exit="end", max_iterations=3), asks("draft", "loops.l"), asks("check", "draft"),
    transform("note", {"op": "append", "path": "notes", "from": "check"}), asks("end", "notes"),
    edges="draft>check check>note note>l end>END", output_key="end", name="loop", reducers={"notes": "append"},
)  # fmt: skip
ROUTED = spec(
    put("s", n=0), asks("ask", "n"), transform("count", {"op": "increment", "path": "n"}),
    router("r", rule("n", "gte", 3, "left", "right"), default=["ask"]), asks("left", "ask"), asks("right", "ask"),
    join("j", ["left", "right"], "both", "collect_array"),
    edges="s>ask ask>count count>r left>j right>j j>END", output_key="both", name="routed",
)  # fmt: skip
GATED = spec(
    asks("draft"), gate("h", subject_key="draft", on_request_changes=["rework"], output_key="said"),
    asks("rework", "draft"), gate("h2", subject_key="rework", output_key="said2"), asks("act", "rework"),
    edges="draft>h rework>h2 h2>act h>END act>END", output_key="act", name="gated",
)  # fmt: skip
BESIDE = spec(
    passthrough("s"), gate("h", output_key="said"), asks("slow"), asks("slower", "slow"),
    join("j", ["slower"], "all", "collect_array"), asks("end", "all"),
    edges="s>h s>slow slow>slower h>j slower>j j>end end>END", output_key="end", name="beside",
)  # fmt: skip
LONG = spec(
    node("l", "loop", entry="step", exit="end", max_iterations=40),
    transform("step", {"op": "append", "path": "log", "value": "x" * 400}), asks("end", "loops.l"),
    edges="step>l end>END", output_key="end", name="long", reducers={"log": "append"},
)  # fmt: skip
WAITING = spec(
    passthrough("s"), asks("a", mutex="m"), asks("b", mutex="m"), node("t", "timer", delay_ms=40),
    node("w", "signal", name="go", output_key="told"), join("j", ["a", "b", "told"], "all", "collect_array"),
    asks("end", "all"), edges="s>a s>b a>t b>w t>j w>j j>end end>END", output_key="end", name="waiting",
)  # fmt: skip
BUDGETED = spec(
    node("l", "loop", entry="try", exit="end", max_iterations=3), asks("try", "loops.l"), asks("weigh", "try"),
    asks("end", "weigh"), edges="try>weigh weigh>l end>END", output_key="end", name="budgeted",
    budgets={"max_llm_calls": 2, "max_nodes": 6, "max_tokens": 8_000, "on_budget": "pause"},
)  # fmt: skip
ITEMS = spec(
    put("s", xs=[[1, 2], [3], [], [4, 5, 6]]),
    node("map", "parallel", for_each={"path": "xs"}, entry="w", join="take", max_parallelism=3, output_key="all"),
    asks("w", "index"), node("deeper", "parallel", for_each={"path": "item", "as": "n"}, entry="v", join="v"),
    asks("v", "n"), join("take", ["w", "deeper"]), asks("end", "all"),
    edges="s>map w>deeper v>take take>end end>END", output_key="end", name="items",
)  # fmt: skip
PART = spec(
    asks("draft"), gate("h", subject_key="draft", output_key="said"), asks("act", "draft"),
    edges="draft>h h>act act>END", output_key="act", name="part",
)  # fmt: skip
INSIDE = spec(
    passthrough("s"), subgraph("one", "part", input={"tag": "tag"}, output_key="one"),
    subgraph("two", "part", input={"tag": "tag"}, output_key="two"), join("j", ["one", "two"], "all"),
    asks("end", "all"),
    edges="s>one s>two one>j two>j j>end end>END", output_key="end", name="inside",
)  # fmt: skip
PARTS = (PART,)
"""Graphs that others run: stored before these."""
SHAPES = {
    graph["name"]: graph
    for graph in (CHAIN, FAN_OUT, NESTED, LOOP, ROUTED, GATED, BESIDE, LONG, ITEMS, INSIDE, BUDGETED, WAITING)
}


def says(prompt: str) -> str:
    """What the model answers: always the same to the same prompt."""
    return f"<{hashlib.sha256(prompt.encode()).hexdigest()[:12]}>"


def decides(node_id: str, graph_id: str) -> str:
    """What the person decides."""
    return "request_changes" if (graph_id, node_id) == ("gated", "h") else "approve"


def tells(name: str) -> Json:
    """What the message of that name says."""
    return {"to": name}
