"""Random graphs that the compiler accepts, from a seed or from hypothesis, and what they are like on the whole."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st

from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.graph import Graph
from tests.properties.fillings import INPUT, REDUCERS, Filling
from tests.properties.shape_reading import after, ways_of
from tests.properties.shapes import Shape, structured, unstructured

SMALLEST, LARGEST = 2, 25


@dataclass(frozen=True, slots=True)
class Case:
    """One accepted graph with the input of its run; `seed` makes it again."""

    seed: int
    spec: dict[str, Any]
    graph: Graph
    run_input: Any
    refusals: tuple[str, ...] = ()
    """The codes for which earlier tries were refused."""


def as_stored(spec: dict[str, Any]) -> Graph:
    """The graph as a later process gets it: from the minimal form and what was compiled, both read back as JSON."""
    compiled = compile_graph(spec)
    assert compiled.graph is not None
    minimal, facts = json.loads(json.dumps([compiled.graph.spec, compiled.compiled]))
    return load_graph(minimal, compiled.graph.version, facts)


def case(seed: int) -> Case:
    """The graph of `seed`: it tries until the compiler accepts one, which takes a few tries at most."""
    rng = Random(seed)
    refusals: list[str] = []
    while True:
        spec = candidate(rng)
        graph, codes = accepted(spec)
        if graph is not None:
            return Case(seed, spec, graph, run_input(rng, spec), tuple(refusals))
        refusals += codes
        assert len(refusals) < 5000, Counter(refusals)


def accepted(spec: dict[str, Any]) -> tuple[Graph | None, list[str]]:
    """The compiled graph of `spec`, or None and the codes of its errors."""
    compiled = compile_graph(spec)
    return compiled.graph, sorted({issue.code for issue in compiled.issues if issue.severity == "error"})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Accepted graphs for hypothesis, which shrinks towards few nodes."""
    rng = draw(st.randoms(use_true_random=False))
    for _ in range(20):
        spec = candidate(rng)
        graph, _ = accepted(spec)
        if graph is not None:
            return Case(-1, spec, graph, run_input(rng, spec))
    spec = {"name": "refused-too-often", "entry": "n0", "nodes": [{"id": "n0", "type": "passthrough"}]}
    graph, codes = accepted(spec)
    assert graph is not None, codes
    return Case(-1, spec, graph, INPUT)


def run_input(rng: Random, spec: dict[str, Any]) -> Any:
    """Mostly an object with everything that is read; now and then less, so that steps fail too, or a node's own key."""
    if rng.random() < 0.1:
        return rng.choice(({"topic": "moss"}, "plain text", [1, "two"], None))
    keys = [node["config"].get("output_key", node["id"]) for node in spec["nodes"] if node["type"] != "router"]
    return {**INPUT, rng.choice(keys or ["topic"]): "not to be trusted"} if rng.random() < 0.2 else INPUT


def candidate(rng: Random) -> dict[str, Any]:
    """A random spec of 2 to 25 nodes that is well-formed; whether it makes sense is for the compiler to say."""
    while True:
        size = rng.choice((rng.randint(SMALLEST, 7), rng.randint(5, LARGEST), rng.randint(5, LARGEST)))
        shape = (unstructured if rng.random() < 0.4 else structured)(rng, size)
        if len(shape.kinds) <= LARGEST:
            break
    filling = Filling(shape, rng)
    filling.fill()
    nodes: list[dict[str, Any]] = [
        {"id": name, "type": kind, "config": shape.config[name]} for name, kind in shape.kinds.items()
    ]
    edges = [{"from": source, "to": target} for source, target in shape.edges]
    rng.shuffle(nodes)  # declaration order decides nothing but the order of writes
    rng.shuffle(edges)
    spec = {
        "spec_version": "2", "name": "random", "entry": shape.entry, "nodes": nodes, "edges": edges,
        "reducers": filling.reducers, "max_iterations": rng.choice((30, 60, 60)),
        "max_parallelism": rng.choice((1, 2, 8)),
    }  # fmt: skip
    output = _output_key(shape, filling, rng)
    if output:
        spec["output_key"] = output
    return spec


def _output_key(shape: Shape, filling: Filling, rng: Random) -> str:
    """A key that the run writes or the input has, so that most runs complete; or none, to have it inferred."""
    if not shape.wild and rng.random() < 0.3:
        return ""
    present = [key for key in filling.reducers if key in INPUT]
    return rng.choice([filling.own.get(shape.entry, "topic"), *present, "doc"])


@dataclass(slots=True)
class Statistics:
    """What the graphs of a suite are like; a law about loops that no graph had would say nothing."""

    graphs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)

    def add(self, one: Case) -> None:
        self.graphs += 1
        self.refused.update(one.refusals)
        self.sizes[len(one.spec["nodes"])] += 1
        self.types.update({node["type"] for node in one.spec["nodes"]})
        self.features.update(features(one.spec))

    def share(self, feature: str) -> float:
        return self.features[feature] / max(1, self.graphs)

    def __str__(self) -> str:
        def part(counts: Counter[Any]) -> str:
            return ", ".join(f"{key} {count / max(1, self.graphs):.0%}" for key, count in counts.most_common())

        mean = sum(size * count for size, count in self.sizes.items()) / max(1, self.graphs)
        return (
            f"{self.graphs} graphs of {min(self.sizes)} to {max(self.sizes)} nodes (mean {mean:.1f}); "
            f"{part(self.features)}; types: {part(self.types)}; refused on the way: {dict(self.refused.most_common())}"
        )


def features(spec: dict[str, Any]) -> set[str]:
    """Which of cycle, routers, reducers, deletes the graph has."""
    found = {"cycle"} if has_cycle(spec) else set()
    for node in spec["nodes"]:
        if node["type"] == "router":
            found.add("routers")
        text = repr(node["config"]) if "config" in node else ""
        if any(f"'{key}'" in text for key in REDUCERS if key in spec.get("reducers", {})):
            found.add("reducers")
        if any(operation["op"] == "delete" for operation in node.get("config", {}).get("operations", ())):
            found.add("deletes")
    if {"routers", "reducers", "deletes"} <= found:
        found.add("all three")
    return found


def has_cycle(spec: dict[str, Any]) -> bool:
    """A token can come back to a node it came from."""
    ways = ways_of(spec)
    return any(name in after(ways, name) for name in ways)
