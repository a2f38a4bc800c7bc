"""core.topology and core.dominators, with networkx as the oracle."""

from __future__ import annotations

import json
import random
import time

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.dominators import NONE, immediate_dominators
from agent_graph.core.topology import ENTRY, Topology, bits, build, members


def chain(count: int, *, closed: bool = False) -> Topology:
    edges = [(i, i + 1) for i in range(count - 1)]
    return build(count, 0, declared=edges, targets=[[0] if closed and i == count - 1 else [] for i in range(count)])


@st.composite
def graphs(draw: st.DrawFn) -> Topology:
    count = draw(st.integers(1, 12))
    node = st.integers(0, count - 1)
    declared = draw(st.lists(st.tuples(node, node), max_size=2 * count))
    targets = draw(st.lists(st.lists(node, max_size=3), min_size=count, max_size=count))
    loops = draw(st.dictionaries(node, node, max_size=3))
    return build(count, draw(node), declared=declared, targets=targets, ends=draw(st.sets(node)), loops=loops)


def as_networkx(topology: Topology) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(topology.node_count))
    graph.add_edges_from((edge.source, edge.target) for edge in topology.edges[1:])
    return graph


def reference_order(topology: Topology) -> list[int]:
    """engine.md 2, read recursively."""
    seen: set[int] = set()
    finished: list[int] = []

    def visit(node: int) -> None:
        seen.add(node)
        for i in topology.out_all[node]:
            if topology.edges[i].target not in seen:
                visit(topology.edges[i].target)
        finished.append(node)

    visit(topology.edges[0].target)
    return finished[::-1] + [node for node in range(topology.node_count) if node not in seen]


def test_a_way_named_twice_is_one_edge_and_edge_zero_is_the_entry() -> None:
    topology = build(3, 1, declared=[(0, 1), (0, 1), (1, 2)], targets=[[2, 1, 2], [], []], ends=[1])
    assert [(e.source, e.target, e.declared) for e in topology.edges] == [
        (ENTRY, 1, False), (0, 1, True), (1, 2, True), (0, 2, False)
    ]  # fmt: skip
    assert topology.in_edges == ((), (0, 1), (2, 3))
    assert topology.out_declared == ((1,), (2,), ())
    assert topology.out_all == ((1, 3), (2,), ())
    assert topology.edge_between == {(ENTRY, 1): 0, (0, 1): 1, (1, 2): 2, (0, 2): 3}
    assert topology.ends == (False, True, True)


def test_declared_edges_come_before_targets_in_the_forward_order() -> None:
    topology = build(4, 0, declared=[(0, 2)], targets=[[1, 2], [3], [3], []])
    assert topology.forward == (0, 1, 2, 3)
    assert build(4, 0, declared=[(0, 1)], targets=[[2], [3], [3], []]).forward == (0, 2, 1, 3)


def test_a_node_feeds_its_own_edge_but_the_target_never_does() -> None:
    topology = build(3, 0, declared=[(0, 1), (1, 2), (2, 1), (1, 1)], targets=[[], [], []])
    edge = topology.edge_between
    assert topology.feeders(0) == 0
    assert topology.feeders(edge[0, 1]) == 0b001
    assert topology.feeders(edge[2, 1]) == 0b100
    assert topology.feeders(edge[1, 1]) == 0
    assert topology.feeders(edge[1, 2]) == 0b011


@settings(max_examples=200)
@given(graphs())
def test_reach_agrees_with_networkx(topology: Topology) -> None:
    graph = as_networkx(topology)
    for i, edge in enumerate(topology.edges):
        if edge.source in (ENTRY, edge.target):
            assert topology.feeders(i) == 0
            continue
        rest = graph.copy()
        rest.remove_node(edge.target)
        assert members(topology.feeders(i)) == sorted(nx.ancestors(rest, edge.source) | {edge.source})
        assert topology.feeders(i) == topology.feeders(i)
    entry = topology.edges[0].target
    assert members(topology.reachable) == sorted(nx.descendants(graph, entry) | {entry})


@settings(max_examples=200)
@given(graphs())
def test_components_and_cycles_agree_with_networkx(topology: Topology) -> None:
    graph = as_networkx(topology)
    ours: dict[int, set[int]] = {}
    for node, number in enumerate(topology.component):
        ours.setdefault(number, set()).add(node)
    assert sorted(map(sorted, ours.values())) == sorted(map(sorted, nx.strongly_connected_components(graph)))
    for edge in topology.edges[1:]:
        assert topology.component[edge.source] >= topology.component[edge.target]
    on_cycle = {n for c in nx.strongly_connected_components(graph) for n in c if len(c) > 1 or graph.has_edge(n, n)}
    assert set(members(topology.in_cycle)) == on_cycle
    assert set(members(topology.behind_cycle)) == on_cycle.union(*(nx.descendants(graph, n) for n in on_cycle))


@settings(max_examples=200)
@given(graphs())
def test_the_forward_order_is_the_reverse_postorder(topology: Topology) -> None:
    order = reference_order(topology)
    assert [topology.forward[node] for node in order] == list(range(topology.node_count))


@settings(max_examples=200)
@given(graphs())
def test_dominators_agree_with_networkx(topology: Topology) -> None:
    graph, entry = as_networkx(topology), topology.edges[0].target
    out = [[topology.edges[i].target for i in row] for row in topology.out_all]
    into = [[topology.edges[i].source for i in row] for row in topology.in_edges]
    expected = {
        node: up for node, up in nx.immediate_dominators(graph, entry).items() if up is not None and node != entry
    }
    assert {n: up for n, up in enumerate(immediate_dominators(entry, out, into)) if up != NONE} == expected


@settings(max_examples=200)
@given(graphs(), st.data())
def test_a_loop_body_is_what_it_dominates_on_the_way_back(topology: Topology, data: st.DataObject) -> None:
    graph, entry = as_networkx(topology), topology.edges[0].target
    node = st.integers(0, topology.node_count - 1)
    loop, start = data.draw(node), data.draw(node)
    declared = [(e.source, e.target) for e in topology.edges[1:]]
    again = build(
        topology.node_count, entry, declared=declared, targets=[[]] * topology.node_count, loops={loop: start}
    )
    reached = nx.descendants(graph, entry) | {entry}
    rest = graph.copy()
    rest.remove_node(loop)
    beside = set() if loop == entry else nx.descendants(rest, entry) | {entry}
    region = graph.subgraph((reached - beside) | {loop}) if loop in reached else nx.DiGraph()
    inside = region.subgraph(set(region) - {loop})
    ahead = nx.descendants(inside, start) | {start} if start in inside else set()
    assert members(again.bodies[loop]) == sorted(n for n in ahead if nx.has_path(region, n, loop))


@settings(max_examples=100)
@given(graphs())
def test_a_stored_topology_is_the_same_topology(topology: Topology) -> None:
    again = Topology.from_json(json.loads(json.dumps(topology.to_json())))
    assert again == topology


def test_a_chain_and_a_cycle_of_thousands_of_nodes_need_no_recursion() -> None:
    long = chain(10_000)
    assert long.forward == tuple(range(10_000))
    assert long.ancestors(9_999) == (1 << 10_000) - 1
    ring = chain(4_000, closed=True)
    assert ring.in_cycle == (1 << 4_000) - 1
    assert ring.feeders(ring.edge_between[3_999, 0]) == (1 << 4_000) - 2


def test_bits_and_members_are_inverse() -> None:
    assert members(bits([5, 0, 63, 64], 100)) == [0, 5, 63, 64]
    assert members(0) == []


def test_who_feeds_the_edges_of_a_dense_cycle_is_found_once_and_not_once_an_edge() -> None:
    rng = random.Random(1)
    ways = {(i, (i + 1) % 600) for i in range(600)}
    while len(ways) < 12_000:
        ways.add((rng.randrange(600), rng.randrange(600)))
    dense = build(601, 600, declared=[(600, 0), *sorted(ways)], targets=[[] for _ in range(601)])
    before = time.process_time()
    fed = [dense.feeders(i) for i in range(len(dense.edges))]
    assert time.process_time() - before < 2, "a search an edge takes a minute"
    for i in rng.sample(range(len(fed)), 20):
        edge = dense.edges[i]
        rest = as_networkx(dense)
        rest.remove_node(edge.target)
        expected = [] if edge.source in (ENTRY, edge.target) else nx.ancestors(rest, edge.source) | {edge.source}
        assert members(fed[i]) == sorted(expected)
