"""Sound graphs made wrong: for every issue code a way to bring it about, somewhere else each time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from agent_graph.core.compile import compile_graph
from agent_graph.core.graph import Graph
from tests.core import specs as s

Json = dict[str, Any]
Mutation = Callable[[random.Random, Json], None]
CORPUS = [
    json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent.parent / "checker" / "sound").glob("*.json"))
]
MUTATIONS: dict[str, Mutation] = {}
DEEP = 9
"""How many graphs stand inside one another in the deepest of `stored`."""


@cache
def stored() -> dict[tuple[str, str], Graph]:
    """Graphs that the mutated ones may name: each runs the one before it."""
    found: dict[tuple[str, str], Graph] = {}
    for level in range(DEEP):
        inner = {"id": "s", "type": "subgraph", "config": {"graph_name": f"deep{level - 1}"}}
        graph = compile_graph({**s.spec([inner if level else s.llm("a")]), "name": f"deep{level}"}, stored=found).graph
        assert graph is not None
        found[graph.name, ""] = graph
    return found


def mutated(code: str, seed: int) -> Json:
    """A sound graph with one mutation for `code`."""
    rng = random.Random(f"{code}-{seed}")
    spec = deepcopy(rng.choice(CORPUS))
    MUTATIONS[code](rng, spec)
    return spec


def makes(*codes: str) -> Callable[[Mutation], Mutation]:
    def register(mutation: Mutation) -> Mutation:
        MUTATIONS.update(dict.fromkeys(codes, mutation))
        return mutation

    return register


def before(rng: random.Random, spec: Json, nodes: list[Json], *ways: str, exits: str = "") -> None:
    """`nodes` in front of the graph, with new names; the way out of `exits` leads to the old entry."""
    tag = f"x{rng.randrange(1000)}_"
    names = {node["id"] for node in nodes}
    text = json.dumps([nodes, s.edges(*ways)])
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(f'"{name}"', f'"{tag}{name}"')
    made, edges = json.loads(text)
    entry = spec["entry"]
    spec["nodes"] = [*made, *spec["nodes"]]
    spec["edges"] = [*edges, *([{"from": tag + exits, "to": entry}] if exits else []), *spec["edges"]]
    spec["entry"] = made[0]["id"]


def some(rng: random.Random, spec: Json, kind: str) -> Json:
    """A node of this type; one is put in front where there is none."""
    found = [node for node in spec["nodes"] if node["type"] == kind]
    if not found:
        made = {"llm": s.llm("m"), "router": s.router("m", [spec["entry"]], default=[spec["entry"]]),
                "join": s.join("m"), "human_approval": s.gate("m", on_request_changes="continue")}[kind]  # fmt: skip
        before(rng, spec, [made], exits="" if kind == "router" else "m")
        found = [spec["nodes"][0]]
    return rng.choice(found)


def config(node: Json) -> Json:
    found: Json = node.setdefault("config", {})
    return found


@makes("SPEC_VERSION_UNSUPPORTED")
def version(rng: random.Random, spec: Json) -> None:
    spec["spec_version"] = rng.choice(["3", "0", 2, None, "two"])


@makes("LIMIT_EXCEEDED")
def limit(rng: random.Random, spec: Json) -> None:
    deep: Any = rng.randrange(9)
    for _ in range(rng.randrange(201, 260)):
        deep = [deep]
    rng.choice(spec["nodes"])["deep"] = deep


@makes("FIELD_REQUIRED")
def required(rng: random.Random, spec: Json) -> None:
    place = rng.choice([*spec["edges"], spec])
    del place["from" if "from" in place else "name"]


@makes("FIELD_INVALID")
def invalid(rng: random.Random, spec: Json) -> None:
    config(some(rng, spec, "llm"))[rng.choice(["max_tokens", "temperature", "seed"])] = rng.choice(["5", [], -1.5])


@makes("UNKNOWN_FIELD")
def unknown(rng: random.Random, spec: Json) -> None:
    kept = [(node, name) for node in spec["nodes"] for name in node.get("config", {})]
    node, name = rng.choice(kept)
    config(node)[name + rng.choice("xyz")] = config(node).pop(name)


@makes("FIELD_CONFLICT")
def conflict(rng: random.Random, spec: Json) -> None:
    spec["max_iterations"], spec["recursion_limit"] = 100_000, rng.randrange(9, 99)


@makes("FIELD_UNUSED")
def unused(rng: random.Random, spec: Json) -> None:
    node = rng.choice([node for node in spec["nodes"] if node["type"] not in ("llm", "subgraph", "parallel")])
    config(node)["retry"] = {"max_attempts": rng.randrange(2, 9)}


@makes("CONDITION_IS_LABEL")
def condition(rng: random.Random, spec: Json) -> None:
    rng.choice(spec["edges"])["condition"] = rng.choice(["x > 1", "always", "ok"])


@makes("NODE_ID_INVALID")
def bad_id(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.pass_(rng.choice(["a b", "a/b", "x" * 70]))], exits="")
    spec["edges"].append({"from": spec["nodes"][0]["id"], "to": spec["nodes"][1]["id"]})


@makes("NODE_ID_RESERVED")
def reserved_id(rng: random.Random, spec: Json) -> None:
    spec["nodes"].append(s.pass_(rng.choice(["END", "START", "END_RUN"])))


@makes("NODE_TYPE_UNKNOWN")
def bad_type(rng: random.Random, spec: Json) -> None:
    node = rng.choice(spec["nodes"])
    node["type"] = node["type"][:-1] if len(node["type"]) > 4 else node["type"] + "x"


@makes("NODE_TYPE_UNAVAILABLE")
def unavailable(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [{"id": "t", "type": "tool", "config": {"connection": "c", "tool": "t"}}], exits="t")


@makes("STATE_PATH_INVALID")
def bad_path(rng: random.Random, spec: Json) -> None:
    config(some(rng, spec, "llm"))["input_key"] = rng.choice(["a..b", ".a", "/a~2", "a."])


@makes("RESERVED_KEY")
def reserved(rng: random.Random, spec: Json) -> None:
    config(some(rng, spec, "llm"))["output_key"] = rng.choice(["__x", "outputs.a", "errors", "loops"])


@makes("SCHEMA_INVALID")
def bad_schema(rng: random.Random, spec: Json) -> None:
    config(some(rng, spec, "llm"))["output_schema"] = {"type": rng.choice(["strin", "int", 5])}


@makes("SCHEMA_UNBOUNDED")
def unbounded(rng: random.Random, spec: Json) -> None:
    wild = {"type": "array", "items": {"type": "string"}} if rng.random() < 0.5 else {"type": "string"}
    before(rng, spec, [s.llm("m", output_schema={"type": "object", "properties": {"a": wild}})], exits="m")


@makes("SUBGRAPH_NOT_FOUND")
def no_subgraph(rng: random.Random, spec: Json) -> None:
    name = f"nothing{rng.randrange(99)}"
    before(rng, spec, [{"id": "t", "type": "subgraph", "config": {"graph_name": name}}], exits="t")


@makes("SUBGRAPH_CYCLE")
def own_subgraph(rng: random.Random, spec: Json) -> None:
    spec["name"] = f"own{rng.randrange(99)}"
    before(rng, spec, [{"id": "t", "type": "subgraph", "config": {"graph_name": spec["name"]}}], exits="t")


@makes("NESTING_TOO_DEEP")
def too_deep(rng: random.Random, spec: Json) -> None:
    node = {"id": "t", "type": "subgraph", "config": {"graph_name": f"deep{DEEP - 1}"}}
    before(rng, spec, [s.put("w", f"of{rng.randrange(99)}"), node], "w>t", exits="t")


@makes("REGEX_INVALID")
def bad_regex(rng: random.Random, spec: Json) -> None:
    rule = {"path": "k", "op": "regex", "value": rng.choice(["(", "a**", "(?=x)", "[z-a]"]), "targets": ["END"]}
    before(rng, spec, [s.router("r", rules=[rule], default=[spec["entry"]])])


@makes("OPTION_UNKNOWN")
def bad_option(rng: random.Random, spec: Json) -> None:
    config(some(rng, spec, "llm"))["options"] = {rng.choice(["num_ctxx", "top_kk", "sed"]): 1}


@makes("IMAGE_INVALID")
def bad_image(rng: random.Random, spec: Json) -> None:
    config(some(rng, spec, "llm"))["images"] = [rng.choice(["no picture", "x.png", "data:,"])]


@makes("DUPLICATE_NODE")
def two_nodes(rng: random.Random, spec: Json) -> None:
    spec["nodes"].append(s.pass_(rng.choice(spec["nodes"])["id"]))


@makes("DUPLICATE_EDGE")
def two_edges(rng: random.Random, spec: Json) -> None:
    spec["edges"].insert(rng.randrange(len(spec["edges"])), dict(rng.choice(spec["edges"])))


@makes("DUPLICATE_ID")
def two_branches(rng: random.Random, spec: Json) -> None:
    fork = s.parallel("p", "j", "a", "b")
    for branch in fork["config"]["branches"]:
        branch["id"] = "same"
    before(rng, spec, [fork, s.put("a"), s.put("b"), s.join("j")], exits="j")


@makes("DUPLICATE_TARGET")
def two_entries(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.parallel("p", "j", "a", "a"), s.put("a"), s.join("j")], exits="j")


@makes("REGION_NOT_CLOSED")
def open_region(rng: random.Random, spec: Json) -> None:
    each = {"id": "p", "type": "parallel", "config": {"for_each": {"path": "list"}, "entry": "a", "join": "j"}}
    before(rng, spec, [each, s.router("a", ["j"], default=["END"]), s.join("j", "", "k")], exits="j")


@makes("DUPLICATE_INPUT")
def two_inputs(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.llm("m"), s.join("j", "", "m", "m", mode="collect_object")], "m>j", exits="j")


@makes("UNKNOWN_NODE")
def nowhere(rng: random.Random, spec: Json) -> None:
    edge = rng.choice([edge for edge in spec["edges"] if edge["to"] != "END"])
    edge["to"] += rng.choice(["x", "_1"])


@makes("ENTRY_UNKNOWN")
def no_entry(rng: random.Random, spec: Json) -> None:
    spec["entry"] += rng.choice(["x", "_1"])


@makes("EDGE_NEVER_TAKEN")
def no_way(rng: random.Random, spec: Json) -> None:
    nodes = [s.put("w", "k"), s.router("r", ["a"], default=[spec["entry"]]), s.put("a"), s.put("b")]
    before(rng, spec, nodes, "w>r", "a>b", "r>b", exits="b")


@makes("NODE_UNREACHABLE")
def unreached(rng: random.Random, spec: Json) -> None:
    spec["nodes"].append(s.pass_(f"alone{rng.randrange(99)}"))


@makes("RULE_SHADOWED")
def shadowed(rng: random.Random, spec: Json) -> None:
    low = rng.randrange(10)
    rules = [{"path": "m", "op": "gte", "value": low, "targets": ["a"]}]
    rules += [{"path": "m", "op": rng.choice(["gt", "eq"]), "value": low + rng.randrange(1, 5), "targets": ["a"]}]
    before(
        rng, spec, [s.put("w", "m"), s.router("r", rules=rules, default=[spec["entry"]]), s.put("a")], "w>r", exits="a"
    )


@makes("RULE_UNSATISFIABLE")
def impossible(rng: random.Random, spec: Json) -> None:
    low = rng.randrange(10)
    both = [{"path": "m", "op": "lt", "value": low}, {"path": "m", "op": "gt", "value": low + rng.randrange(3)}]
    rules = [{"path": "m", "op": "eq", "value": "x", "targets": ["a"]}, {"all": both, "targets": ["a"]}]
    before(
        rng, spec, [s.put("w", "m"), s.router("r", rules=rules, default=[spec["entry"]]), s.put("a")], "w>r", exits="a"
    )


@makes("NO_DEFAULT_ROUTE")
def no_default(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.put("w", "k"), s.router("r", [spec["entry"]])], "w>r")


@makes("LOOP_WITHOUT_EXIT", "NO_PATH_TO_END")
def endless(rng: random.Random, spec: Json) -> None:
    nodes = [s.pass_("f"), s.put("a"), *(s.put(f"c{i}") for i in range(2 + rng.randrange(3)))]
    ring = ">".join(node["id"] for node in nodes[2:])
    before(rng, spec, nodes, f"f>a>{ring}>c0", exits="f")


@makes("PARALLEL_WRITE_CONFLICT")
def race(rng: random.Random, spec: Json) -> None:
    path = rng.choice(["k", "k.a", "k.b.c"])
    before(rng, spec, [s.pass_("f"), s.put("a", path), s.put("b", rng.choice(["k", path])), s.join("j")],
           "f>a>j", "f>b>j", exits="j")  # fmt: skip


@makes("OUTPUT_AMBIGUOUS")
def ambiguous(rng: random.Random, spec: Json) -> None:
    spec.pop("output_key", None)
    before(rng, spec, [s.pass_("f"), s.llm("a", rng.choice(["ka", "kb"]))], "f>a>END", exits="f")


@makes("BUDGET_BELOW_SHORTEST_PATH")
def poor(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.llm("a"), s.llm("b")], "a>b", exits="b")
    spec["budgets"] = {rng.choice(["max_llm_calls", "max_nodes"]): 1}


@makes("ITERATIONS_BELOW_LOOPS")
def few(rng: random.Random, spec: Json) -> None:
    bound = rng.randrange(5, 50)
    before(rng, spec, [s.loop("l", "b", spec["entry"], bound), s.put("b")], "b>l")
    spec["max_iterations"] = rng.randrange(2, 2 * bound)


@makes("KEY_READ_BEFORE_WRITE")
def early(rng: random.Random, spec: Json) -> None:
    key = f"late{rng.randrange(99)}"
    before(rng, spec, [{**s.llm("a"), "prompt": f"use {{{key}}}"}, s.put("b", key)], "a>b", exits="b")


@makes("KEY_MAYBE_UNWRITTEN")
def unsure(rng: random.Random, spec: Json) -> None:
    key = f"sometimes{rng.randrange(99)}"
    nodes = [s.router("r", ["w"], default=["j"]), s.put("w", key), {**s.llm("j"), "prompt": f"use {{{key}}}"}]
    if rng.random() < 0.5:  # or only from the second round on
        back = s.router("b", ["j"], default=[spec["entry"]])
        before(rng, spec, [nodes[2], s.put("w", key), back], "j>w>b")
        return
    before(rng, spec, nodes, "w>j", exits="j")


@makes("PROMPT_PLACEHOLDER_UNKNOWN")
def misspelt(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.llm("a", "answer"), {**s.llm("b"), "prompt": rng.choice(["{answr}", "x {aswer.y}"])}],
           "a>b", exits="b")  # fmt: skip


@makes("JOIN_INPUT_NEVER_WRITTEN")
def missing(rng: random.Random, spec: Json) -> None:
    name = rng.choice(["answr", "zzzzzz", "f"])
    before(rng, spec, [s.pass_("f"), s.llm("a", "answer"), s.join("j", "", "answer", name)], "f>a>j", exits="j")


@makes("OUTPUT_NEVER_WRITTEN")
def unwritten(rng: random.Random, spec: Json) -> None:
    spec["output_key"] = spec.get("output_key", "result") + rng.choice(["x", "_final", "zz"])


@makes("OUTPUT_NEVER_READ")
def unread(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.llm("a", f"spare{rng.randrange(99)}")], exits="a")


@makes("JOIN_QUORUM_IMPOSSIBLE")
def quorum(rng: random.Random, spec: Json) -> None:
    if rng.random() < 0.5:
        nodes = [
            s.llm("a"),
            s.join("j", "", "a", mode="quorum", required=rng.randrange(2, 9), require=rng.random() < 0.5),
        ]
        before(rng, spec, nodes, "a>j", exits="j")
        return
    either = [s.router("r", ["a"], default=["b"]), s.llm("a"), s.llm("b")]
    before(rng, spec, [*either, s.join("j", "", "a", "b", mode="quorum", required=2)], "a>j", "b>j", exits="j")


@makes("LOOP_CROSSES_FORK")
def crosses(rng: random.Random, spec: Json) -> None:
    back = rng.choice(["d", "f"])
    nodes = [s.put("d", "k"), s.pass_("f"), s.put("a"), s.router("r", [back], default=["j"]), s.put("b"), s.join("j")]
    before(rng, spec, nodes, "d>f>a>r", "f>b>j", exits="j")


@makes("JOIN_BESIDE_LOOP")
def beside(rng: random.Random, spec: Json) -> None:
    nodes = [s.pass_("f"), s.put("a"), s.put("b"), s.join("j"), s.router("r", ["f"], default=["n"]), s.put("log"),
             s.join("n")]  # fmt: skip
    before(rng, spec, nodes, "f>a>j>r", "f>b>j", "f>log>n", exits="n")


@makes("NODE_WAITS_FOR_DECISION")
def waits(rng: random.Random, spec: Json) -> None:
    name = rng.choice(["on_reject", "on_request_changes"])
    before(rng, spec, [s.pass_("f"), s.put("a"), s.gate("g", **{name: ["a"]})], "f>a>END", "f>g", exits="g")


@makes("LOOP_NOT_NESTED")
def loose(rng: random.Random, spec: Json) -> None:
    if rng.random() < 0.5:
        before(rng, spec, [s.loop("l", "b", spec["entry"]), s.put("b")], "b>END")
    else:
        before(rng, spec, [s.router("r", ["b"], default=["l"]), s.loop("l", "b", spec["entry"]), s.put("b")], "b>l")


@makes("APPROVAL_AFTER_EFFECT")
def too_late(rng: random.Random, spec: Json) -> None:
    post = {"id": "h", "type": "http", "config": {"connection": "c", "method": rng.choice(["POST", "DELETE"])}}
    before(rng, spec, [post, s.gate("g", on_request_changes="continue")], "h>g", exits="g")


@makes("EFFECT_RETRY_UNSAFE")
def unsafe(rng: random.Random, spec: Json) -> None:
    retry = {"max_attempts": rng.randrange(2, 5)}
    node = {"id": "t", "type": "tool", "config": {"connection": "c", "tool": "t", "retry": retry}}
    before(rng, spec, [node], exits="t")


@makes("REQUEST_CHANGES_NO_LOOP")
def no_rework(rng: random.Random, spec: Json) -> None:
    before(rng, spec, [s.gate("g", **({"prompt": "ok?"} if rng.random() < 0.5 else {}))], exits="g")


def citing(rng: random.Random, spec: Json, **more: Any) -> None:
    """A node in front whose answer has to cite."""
    before(rng, spec, [s.llm("m", evidence_required=True, **more)], exits="m")


@makes("EVIDENCE_NEEDS_JSON")
def no_json(rng: random.Random, spec: Json) -> None:
    citing(rng, spec)


@makes("EVIDENCE_NOT_IN_SCHEMA")
def no_claims(rng: random.Random, spec: Json) -> None:
    citing(rng, spec, output_schema=rng.choice([
        {"type": "integer"}, {"type": "object", "properties": {"claims": {"type": "integer"}}, "required": ["claims"]},
    ]))  # fmt: skip


@makes("EVIDENCE_OPTIONAL")
def claims_at_will(rng: random.Random, spec: Json) -> None:
    claims = {"type": "array", "maxItems": rng.randrange(1, 9), "items": {"type": "object"}}
    citing(rng, spec, output_schema={"type": "object", "properties": {"claims": claims}})
