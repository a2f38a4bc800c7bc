"""Every log of a random graph follows from its own answers, and driven with them again it is the same run."""

from __future__ import annotations

import pytest

from agent_graph.core.following import follow
from agent_graph.core.replay import Replayed, _Driver
from agent_graph.core.scheduler import evolve, new_run
from tests.properties import control, graphs
from tests.properties.driver import Drive, orders, start
from tests.properties.graphs import Case
from tests.properties.world import World
from tests.sizes import size

SEEDS = size(20, 600)
KINDS = ("", "mutex", "waits", "each", "end_run", "early", "all")


def driven(case: Case, seed: int) -> Drive:
    world = World(seed, failing=0.0 if seed % 3 else 0.1, stumbling=0.2 if seed % 2 else 0.0)
    return start(case.graph, case.run_input, world, list(orders(seed).values())[seed % 6]).go()


def variants(seed: int) -> list[Case]:
    case = graphs.case(seed)
    found = [case if not kind else control.variant(case, kind) for kind in KINDS]
    return [one for one in found if one is not None]


@pytest.mark.timeout(size(60, 3600))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_log_follows_from_its_answers_and_they_make_the_same_run_again(seed: int) -> None:
    for case in variants(seed):
        drive = driven(case, seed)
        own = follow(case.graph, drive.log)
        assert own.divergence is None
        assert follow(case.graph, drive.log, like=own).divergence is None
        cut = len(drive.log) // 2
        run = new_run()
        for event in drive.log[:cut]:
            evolve(case.graph, run, event)
        replayed = Replayed(case.graph, run, drive.log[:cut])
        assert _Driver(replayed, own, drive.log, cut).go() == []
        if not control_choices(drive):
            drive_again = Drive(case.graph, drive.world, drive.order, log=replayed.log)
            assert drive_again.canonical() == drive.canonical()


def control_choices(drive: Drive) -> bool:
    """Where who is first decides, answers that were heard together may fall another way behind a divergence."""
    return bool(drive.canonical()["choices"])
