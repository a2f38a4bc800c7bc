"""The stored topology of any graph against the second reading's plain searches."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.topology import ENTRY, Topology, build, members
from tests.properties.shape_reading import Feeds, after, forward_order, ways_of
from tests.sizes import size


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Any edges and targets between up to nine nodes, self-loops and unreachable parts included."""
    rng: Random = draw(st.randoms(use_true_random=False))
    count = rng.randint(1, 9)
    names = [f"n{index}" for index in range(count)]
    density = rng.choice((0.1, 0.2, 0.35))
    edges = [{"from": a, "to": b} for a in names for b in names if rng.random() < density]
    rng.shuffle(edges)
    nodes = [
        {"id": a, "type": "human_approval", "config": {"on_reject": [b for b in names if rng.random() < density / 2]}}
        for a in names
    ]
    return {"entry": rng.choice(names), "nodes": nodes, "edges": edges}


def built(spec: dict[str, Any]) -> tuple[Topology, list[str]]:
    names = [node["id"] for node in spec["nodes"]]
    at = {name: index for index, name in enumerate(names)}
    declared = [(at[edge["from"]], at[edge["to"]]) for edge in spec["edges"]]
    targets = [[at[target] for target in node["config"]["on_reject"]] for node in spec["nodes"]]
    return build(len(names), at[spec["entry"]], declared=declared, targets=targets), names


@settings(max_examples=size(300, 20_000), deadline=None, database=None, derandomize=True)
@given(specs())
def test_reach_order_and_cycles_are_those_of_plain_searches(spec: dict[str, Any]) -> None:
    topology, names = built(spec)
    ways, feeds = ways_of(spec), Feeds(spec)
    reached = {spec["entry"], *after(ways, spec["entry"])}
    placed = sorted(range(len(names)), key=topology.forward.__getitem__)
    assert [names[i] for i in placed][: len(reached)] == forward_order(spec)[: len(reached)]
    for index, edge in enumerate(topology.edges):
        expected = set()
        if edge.source != ENTRY:
            wire = (names[edge.source], names[edge.target])
            expected = {name for name in names if feeds(name, wire)}
        assert {names[i] for i in members(topology.feeders(index))} == expected
    circling = {name for name in names if name in after(ways, name)}
    assert {names[i] for i in members(topology.in_cycle)} == circling
    behind = circling | {name for other in circling for name in after(ways, other)}
    assert {names[i] for i in members(topology.behind_cycle)} == behind
    assert {names[i] for i in members(topology.reachable)} == reached


@settings(max_examples=size(100, 2000), deadline=None, database=None, derandomize=True)
@given(specs())
def test_a_stored_topology_is_the_one_that_was_built(spec: dict[str, Any]) -> None:
    topology, _ = built(spec)
    again = Topology.from_json(topology.to_json())
    assert again == topology
    assert [again.feeders(i) for i in range(len(again.edges))] == [
        topology.feeders(i) for i in range(len(topology.edges))
    ]
