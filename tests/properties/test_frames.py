"""Random graphs with graphs inside and fan-out over data: any order, any cut, replay and snapshots come to the same."""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random

import pytest

from tests.properties import laws
from tests.properties.driver import orders, start
from tests.properties.framed import RUN_INPUT, Framed, framed, lenient
from tests.properties.world import World
from tests.sizes import size

GRAPHS = size(40, 4_000)
CHUNK = size(20, 100)
FIRST = int(os.environ.get("AGENT_GRAPH_TEST_SEED", "0"))


def check(case: Framed) -> tuple[str, bool]:
    """All laws that need no second reading; the status of the run and whether what failed was put up with."""
    seed = case.seed
    world = World(seed, stumbling=0.2 if seed % 2 else 0.0, forgiven=case.forgiven)
    drives = [
        start(case.graph, RUN_INPUT, world, order, one_by_one=name == "random 1").go()
        for name, order in orders(seed).items()
    ]
    for drive in drives:
        laws.settled(drive)
        laws.told_once(drive)
        laws.unchanged(drive)
        laws.same(drive, drives[0])
        assert drive.run.until == {} or not drive.run.terminal, "branches are through, and the clock waits for them"
        assert [*drive.run.frames] == [""] or drive.run.status == "waiting", "a frame outlives its owner"
    first = drives[seed % len(drives)]
    laws.replays(first)
    rng = Random(seed)
    cuts = range(1, len(first.log) + 1)
    for cut in rng.sample(cuts, min(4, len(cuts))):
        laws.continues(first, None, cut, stored=case.stored)
    if not laws.is_cut_off(first):
        laws.stops(first, laws.of_drive(first), rng.choice(cuts))
    failed = any(event.fact.type == "frame_failed" for event in first.log)
    return first.run.status, failed and first.run.status == "completed"


@pytest.mark.timeout(size(180, 7200))
@pytest.mark.parametrize("chunk", range(GRAPHS // CHUNK))
def test_every_law_holds_where_nodes_open_frames(chunk: int, capsys: pytest.CaptureFixture[str]) -> None:
    statuses, kinds = Counter[str](), Counter[str]()
    for seed in range(FIRST + chunk * CHUNK, FIRST + (chunk + 1) * CHUNK):
        case = framed(seed)
        try:
            status, survived = check(case)
        except Exception as wrong:
            raise AssertionError(f"seed {seed}: {type(wrong).__name__}: {wrong}\n{json.dumps(case.spec)}") from wrong
        statuses[status] += 1
        statuses["failed inside and completed"] += survived
        kinds.update(case.kinds)
    assert statuses["completed"] >= CHUNK // 3, statuses
    with capsys.disabled():
        os.write(1, f"\n{dict(statuses.most_common())}; {dict(kinds.most_common())}\n".encode())


@pytest.mark.timeout(size(180, 7200))
@pytest.mark.parametrize("chunk", range(GRAPHS // CHUNK))
def test_every_law_holds_where_branches_may_fail(chunk: int, capsys: pytest.CaptureFixture[str]) -> None:
    statuses = Counter[str]()
    for seed in range(FIRST + chunk * CHUNK, FIRST + (chunk + 1) * CHUNK):
        case = lenient(seed)
        try:
            status, _ = check(case)
        except Exception as wrong:
            raise AssertionError(f"seed {seed}: {type(wrong).__name__}: {wrong}\n{json.dumps(case.spec)}") from wrong
        statuses[status] += 1
    with capsys.disabled():
        os.write(1, f"\n{dict(statuses.most_common())}\n".encode())
