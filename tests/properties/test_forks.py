"""A fork of a random graph's run, from anywhere, that changes nothing and hears the same answers is the same run."""

from __future__ import annotations

import pytest

from agent_graph.core import checkpoint, events, fork_questions, forking
from agent_graph.core.following import follow
from agent_graph.core.fork_changes import Changes
from agent_graph.errors import ForkPointInvalid
from tests.properties.control import same_choices_same_record
from tests.properties.driver import Drive, orders, refold, seal, start
from tests.properties.framed import RUN_INPUT, framed, lenient
from tests.properties.graphs import Case
from tests.properties.test_replays import driven, variants
from tests.properties.world import World
from tests.sizes import FULL, size

SEEDS = size(12, 400)
POINTS = 5


def forked(case: Case, log: list[events.Event], count: int, run_id: str) -> forking.Made | None:
    """The fork after so many events, None where the run was about to end."""
    forker = fork_questions.Forker(run_id, "cli")
    try:
        return forking.fork(
            case.graph, log, forking.Point(count), origin=case.graph, forker=forker, changes=Changes(), now_ms=9
        )
    except ForkPointInvalid:
        return None


def gone_on(case: Case, made: forking.Made, world: World, seed: int, *, dumped: bool = False) -> Drive:
    """The fork as it goes on by itself, from its snapshot if `dumped`."""
    run = checkpoint.load(made.graph, checkpoint.dump(made.run)) if dumped else made.run
    drive = Drive(case.graph, world, list(orders(seed).values())[seed % 6], run=run, log=[*made.log])
    drive.sealed = [seal(event) for event in made.log]
    for gate in run.open_approvals:
        fact = next(e.fact for e in reversed(made.log) if getattr(e.fact, "approval_id", "") == gate.approval_id)
        assert isinstance(fact, events.ApprovalOpened)
        drive.gates[gate.firing] = fact
    if run.lifecycle == "accepted":
        drive.record(events.RunStarted())
    return drive.go()


@pytest.mark.timeout(size(90, 3600))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_fork_that_changes_nothing_is_the_same_run_and_so_is_a_fork_of_it(seed: int) -> None:
    for case in variants(seed):
        origin = driven(case, seed)
        length = len(origin.log)
        counts = range(1, length) if FULL and length < 60 else {1 + (length * n) // POINTS for n in range(POINTS)}
        for count in counts:
            made = forked(case, origin.log, count, "fork")
            if made is None:
                continue
            fork = gone_on(case, made, origin.world, seed, dumped=count % 2 == 0)
            same_choices_same_record([origin, fork])
            assert follow(case.graph, fork.log).divergence is None
            again = forked(case, fork.log, min(count + 3, len(fork.log) - 1), "again")
            if again is not None:
                second = gone_on(case, again, origin.world, seed)
                same_choices_same_record([fork, second])


@pytest.mark.timeout(size(90, 3600))
@pytest.mark.parametrize("seed", range(size(6, 100)))
def test_a_fork_whose_process_ends_after_any_event_is_the_same_run(seed: int) -> None:
    for case in variants(seed)[:3]:
        origin = driven(case, seed)
        made = forked(case, origin.log, len(origin.log) // 2, "fork")
        if made is None:
            continue
        fork = gone_on(case, made, origin.world, seed)
        last = len(fork.log)
        for cut in {len(made.log), len(made.log) + 1, (len(made.log) + last) // 2, last - 1} - {last}:
            if cut >= len(made.log):
                again = refold(case.graph, fork.log[:cut], origin.world, list(orders(seed).values())[seed % 6]).go()
                same_choices_same_record([again, fork])


@pytest.mark.timeout(size(90, 3600))
@pytest.mark.parametrize("seed", range(size(8, 200)))
def test_forks_in_the_middle_of_subgraphs_and_items_are_the_same_run(seed: int) -> None:
    for made_of in (framed, lenient):
        one = made_of(seed)
        case = Case(seed, {}, one.graph, RUN_INPUT)
        world = World(seed, stumbling=0.2 if seed % 2 else 0.0, forgiven=one.forgiven)
        origin = start(one.graph, RUN_INPUT, world, list(orders(seed).values())[seed % 6]).go()
        for count in {len(origin.log) // 3, len(origin.log) // 2}:
            made = forked(case, origin.log, count, "fork")
            if made is not None:
                fork = gone_on(case, made, world, seed, dumped=count % 2 == 0)
                same_choices_same_record([origin, fork])
                assert follow(one.graph, fork.log).divergence is None
