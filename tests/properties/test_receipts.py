"""Receipts of random runs, with frames, loops, gates and failures: each holds, with a leaf for every firing's end."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from agent_graph.core.receipt_check import check
from tests.core.played import Played
from tests.core.test_receipt import KEY, document
from tests.properties.driver import orders, start
from tests.properties.framed import RUN_INPUT, framed, lenient
from tests.properties.graphs import case
from tests.properties.laws import world_of
from tests.properties.world import World
from tests.sizes import size

GRAPHS = size(6, 300)
ENDS = {"node_finished", "node_failed", "firing_cancelled"}


def holds(at: Played) -> Counter[str]:
    """How its leaves ended; nothing of a run that waits for ever."""
    if not at.run.terminal:
        return Counter()
    made = document(at)
    checked = check(made, {KEY.key_id: KEY})
    assert (checked.faults, checked.authentic) == ((), True)
    leaves = made["receipt"]["leaves"]
    assert len(leaves) == sum(event.fact.type in ENDS for event in at.log)
    assert len({leaf["node_path"] for leaf in leaves}) == len(leaves)
    return Counter(leaf["outcome"] for leaf in leaves)


@pytest.mark.timeout(size(180, 7200))
def test_receipts_of_random_runs_hold() -> None:
    outcomes = Counter[str]()
    for seed in range(GRAPHS):
        order = Random(seed).choice([*orders(seed).values()])
        plain = case(seed)
        drive = start(plain.graph, plain.run_input, world_of(plain, seed), order).go()
        outcomes += holds(Played(plain.graph, drive.run, list(drive.log)))
        for inside in (framed(seed), lenient(seed)):
            world = World(seed, stumbling=0.2 if seed % 2 else 0.0, forgiven=inside.forgiven)
            drive = start(inside.graph, RUN_INPUT, world, order).go()
            outcomes += holds(Played(inside.graph, drive.run, list(drive.log)))
    assert outcomes["finished"] > 50
    assert outcomes["failed"] > 0
    assert outcomes["cancelled"] > 0
    assert outcomes["unfinished"] == 0
