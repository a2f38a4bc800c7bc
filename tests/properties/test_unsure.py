"""What may be unwritten when it is read: compared with every choice the runs of small graphs can make."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from agent_graph.core.checks.shape import Shape
from agent_graph.core.checks.unsure import STEPS, Search
from agent_graph.core.choices import EXIT, Selections
from agent_graph.core.graph import Graph, Output
from tests.core.played import Tokens, shape
from tests.sizes import size

pytestmark = pytest.mark.timeout(size(60, 1_200))


def drawn(rng: Random) -> tuple[Graph, list[Selections]]:
    """A graph without circles whose nodes fork or choose, and what each can select."""
    count = rng.randint(3, 8)
    ahead: dict[int, set[int]] = {node: set() for node in range(count)}
    for node in range(1, count):
        for parent in rng.sample(range(node), rng.randint(1, min(3, node))):
            ahead[parent].add(node)
    edges, choose, ways = [], {}, []
    for node in range(count):
        targets = sorted(ahead[node])
        if targets and rng.random() < 0.5:
            options = [tuple(sorted(rng.sample(targets, rng.randint(1, min(2, len(targets)))))) for _ in range(2)]
            options += [tuple(to for to in targets if not any(to in one for one in options))] + [(EXIT,)] * (
                rng.random() < 0.3
            )
            ways.append(tuple(dict.fromkeys(one for one in options if one)))
            choose[node] = " ".join(map(str, targets))
        else:
            edges += [f"{node}>{to}" for to in targets]
            ways.append((tuple(targets) or (EXIT,),))
    return shape(" ".join(edges), choose=choose), ways


def fired(graph: Graph, chosen: tuple[tuple[int, ...], ...]) -> list[int]:
    """The nodes of one run in their order."""
    tokens = Tokens(graph)
    while tokens.running:
        path = tokens.running[0]
        node = tokens.firing(path).node
        tokens.done(path, *("END" if to == EXIT else f"n{to}" for to in chosen[node]))
    return [firing.node for firing in tokens.fired]


def may_miss(runs: list[list[int]], reader: int, writers: list[int]) -> bool:
    return any(reader in run and not {*writers} & {*run[: run.index(reader)]} for run in runs)


def test_a_way_without_a_writer_is_found_exactly_where_a_run_can_take_one() -> None:
    said = {True: 0, False: 0}
    for seed in range(size(150, 20_000)):
        rng = Random(seed)
        graph, ways = drawn(rng)
        looked = Shape(graph.nodes, graph.index, graph.topology, ways, {}, Output())
        runs = [fired(graph, chosen) for chosen in product(*ways)]
        search = Search(looked, STEPS)
        for reader in range(1, len(graph.nodes)):
            above = [node for node in range(len(graph.nodes)) if looked.upstream(reader) >> node & 1]
            writers = rng.sample(above, rng.randint(1, min(2, len(above))))
            way = search.way_without(reader, writers)
            assert (way is not None) == may_miss(runs, reader, writers), (seed, reader, writers)
            said[way is not None] += 1
            if way is not None:
                assert way[-1] == reader
                assert looked.branches.passes(way[0], reader)
                assert not {*writers} & {*way}
        everybody = rng.sample(range(len(graph.nodes)), 2)
        assert search.ends_without(everybody) == any(not {*everybody} & {*run} for run in runs), (seed, everybody)
    assert min(said.values()) > size(20, 5_000)
