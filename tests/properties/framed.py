"""Random graphs in which some nodes run other graphs, or a part of their own, once or for each item of a list."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from agent_graph.core import extents
from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.graph import Graph
from tests.properties import graphs
from tests.properties.fillings import INPUT

Spec = dict[str, Any]
ITEMS = ["a", {"topic": "b", "q": 2}, 3]
RUN_INPUT = {**INPUT, "items": ITEMS, "none": []}
LISTS = ("items", "items", "doc.z", "none")
KINDS = ("subgraph", "each graph", "each part", "each part")


@dataclass(frozen=True, slots=True)
class Framed:
    """One accepted graph, as it was compiled and as a later process gets it."""

    seed: int
    spec: Spec
    graph: Graph
    stored: Graph
    kinds: frozenset[str]
    forgiven: frozenset[str]
    """Nodes that may fail: they are the only ones under way in their item, and the item is put up with."""


def framed(seed: int) -> Framed:
    """The graph of `seed`; it stands on up to two others, of which the second may run the first."""
    rng = Random(seed)
    one = graphs.case(3 * seed + 1)
    inner = [_compiled({**one.spec, "name": "first"}, [])]
    second = _enclosed(rng, {**graphs.case(3 * seed + 2).spec, "name": "second"}, inner)
    if second is not None:
        inner.append(second.graph)
    while True:
        made = _enclosed(rng, graphs.case(rng.randrange(10**9)).spec, inner)
        if made is not None:
            return Framed(seed, made.spec, made.graph, stored(made.graph), made.kinds, made.forgiven)


def lenient(seed: int) -> Framed:
    """A graph of which some static forks put up with failures or are bounded as a whole, and whose calls in branches
    that are put up with may fail."""
    rng = Random(seed)
    while True:
        spec: Spec = json.loads(json.dumps(graphs.case(rng.randrange(10**9)).spec))
        forks = [node for node in spec["nodes"] if node["type"] == "parallel"]
        for one in forks:
            config = one["config"]
            config["fail_policy"] = rng.choice(("fail_fast", "collect_partial", "ignore", "ignore"))
            if rng.random() < 0.5:
                config["max_parallelism"] = rng.choice((1, 2))
            if rng.random() < 0.3:
                config["timeout_ms"] = 1_000
        graph = compile_graph(spec).graph
        if graph is None or not graph.extents:
            continue
        inside = 0
        for fork, _ in extents.lenient(graph):
            inside |= extents.whole(graph, fork)
        calls = frozenset(one.id for one in graph.nodes if one.type == "llm" and inside >> one.index & 1)
        return Framed(seed, spec, graph, stored(graph), frozenset(), calls)


def stored(graph: Graph) -> Graph:
    """The graph from its minimal form and what was compiled, both read back as JSON, and so those inside."""
    inner = {version: stored(one) for version, one in graph.subgraphs.items()}
    compiled = compile_graph(graph.spec, stored={(one.name, one.version): one for one in graph.subgraphs.values()})
    assert compiled.graph is not None
    assert compiled.graph.version == graph.version, "the minimal form is its own minimal form"
    minimal, facts = json.loads(json.dumps([compiled.graph.spec, compiled.compiled]))
    return load_graph(minimal, graph.version, facts, subgraphs=inner)


def _compiled(spec: Spec, inner: list[Graph]) -> Graph:
    graph = compile_graph(spec, stored={(one.name, ""): one for one in inner}).graph
    assert graph is not None
    return graph


def _enclosed(rng: Random, spec: Spec, inner: list[Graph]) -> Framed | None:
    """`spec` with up to three of its calls replaced by what opens frames; None when nothing comes of it."""
    calls = [node["id"] for node in spec["nodes"] if node["type"] == "llm"]
    chosen = rng.sample(calls, min(len(calls), rng.randint(1, 3)))
    made = _Made(rng, json.loads(json.dumps(spec)), inner)
    for name in chosen:
        made.replace(name)
    compiled = compile_graph(made.spec, stored={(one.name, ""): one for one in inner})
    if compiled.graph is None or not chosen:
        return None
    return Framed(0, made.spec, compiled.graph, compiled.graph, frozenset(made.kinds), frozenset(made.forgiven))


class _Made:
    def __init__(self, rng: Random, spec: Spec, inner: list[Graph]) -> None:
        self.rng, self.spec, self.inner = rng, spec, inner
        self.kinds: set[str] = set()
        self.forgiven: set[str] = set()

    def replace(self, name: str) -> None:
        node = next(one for one in self.spec["nodes"] if one["id"] == name)
        kept = {key: value for key, value in node["config"].items() if key in ("output_key", "on_error")}
        kind = self.rng.choice(KINDS)
        self.kinds.add(kind)
        graph = self.rng.choice(self.inner).name
        if kind == "subgraph":
            node["type"] = "subgraph"
            taken = {key: key for key in ("topic", "q", "total") if self.rng.random() < 0.8}
            more = {"input": taken} if taken and self.rng.random() < 0.5 else {}
            node["config"] = {**kept, "graph_name": graph, **more}
            return
        node["type"] = "parallel"
        node["config"] = {
            **kept, "for_each": {"path": self.rng.choice(LISTS)}, "max_parallelism": self.rng.choice((1, 2, 3)),
            "fail_policy": self.rng.choice(("fail_fast", "collect_partial", "ignore")),
        }  # fmt: skip
        if kind == "each graph":
            node["config"]["graph_name"] = graph
        else:
            self.part(name, node)

    def part(self, name: str, node: Spec) -> None:
        """What runs for each item: one call, two side by side, a loop, a gate, or a fan-out once more."""
        entry, last = f"{name}e", f"{name}j"
        node["config"] |= {"entry": entry, "join": last}
        for edge in self.spec["edges"]:
            if edge["from"] == name:
                edge["from"] = last
        shape = self.rng.choice(("call", "call", "fork", "loop", "gate", "each"))
        self.kinds.add(f"part: {shape}")
        nodes, wires = getattr(self, f"_{shape}")(entry, last)
        said = [one["id"] for one in nodes if one["type"] in ("llm", "human_approval", "parallel")]
        nodes.append({"id": last, "type": "join", "config": {"inputs": [*said, "index", "topic"]}})
        if shape == "call" and node["config"]["fail_policy"] != "fail_fast":
            self.forgiven.add(entry)
        self.spec["nodes"] += nodes
        self.spec["edges"] += [{"from": source, "to": target} for source, target in wires]

    def _ask(self, name: str) -> Spec:
        config = {"prompt": f"{name} {{item|json}} {{index}} {{topic?}} {{input|json}}"}
        return {"id": name, "type": "llm", "config": config}

    def _call(self, entry: str, last: str) -> tuple[list[Spec], list[tuple[str, str]]]:
        return [self._ask(entry)], [(entry, last)]

    def _fork(self, entry: str, last: str) -> tuple[list[Spec], list[tuple[str, str]]]:
        sides = [f"{entry}a", f"{entry}b"]
        wires = [pair for side in sides for pair in ((entry, side), (side, last))]
        return [{"id": entry, "type": "passthrough"}, *map(self._ask, sides)], wires

    def _loop(self, entry: str, last: str) -> tuple[list[Spec], list[tuple[str, str]]]:
        body = f"{entry}b"
        loop = {"entry": body, "exit": last, "max_iterations": self.rng.randint(1, 3)}
        return [{"id": entry, "type": "loop", "config": loop}, self._ask(body)], [(body, entry)]

    def _gate(self, entry: str, last: str) -> tuple[list[Spec], list[tuple[str, str]]]:
        gate = {"id": entry, "type": "human_approval", "config": {"prompt": "{item|json}?"}}
        return [gate], [(entry, last)]

    def _each(self, entry: str, last: str) -> tuple[list[Spec], list[tuple[str, str]]]:
        inner, meet = f"{entry}i", f"{entry}m"
        each = {"for_each": {"path": "doc.z", "as": "deep", "index_as": "at"}, "entry": inner, "join": meet}
        nodes = [{"id": entry, "type": "parallel", "config": each}, self._ask(inner)]
        return [*nodes, {"id": meet, "type": "join", "config": {"inputs": [inner, "at", "index"]}}], [
            (inner, meet), (meet, last),
        ]  # fmt: skip
