"""Mutexes, END_RUN, `merge` "each", timers and messages in random graphs: same answers and same recorded choices, same
run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.properties import control, graphs, laws
from tests.properties.control import Case
from tests.properties.driver import start
from tests.sizes import size

SEEDS = size(80, 4_000)
CHUNK = size(40, 200)
ORDERS = 6
KINDS = ("mutex", "waits", "each", "end_run", "early", "all")


def checked(case: Case, original: Case, kind: str) -> int:
    """All laws for one graph; how many different choices the orders made."""
    world = laws.world_of(original, original.seed)
    drives = control.runs(case, world, ORDERS)
    for drive in drives:
        laws.told_once(drive)
        laws.unchanged(drive)
        control.one_holder_at_a_time(drive)
        assert not drive.run.mutexes or not drive.run.terminal
        assert drive.run.waits == {} or not drive.run.terminal
    control.cut_and_go_on(case, drives[0], world)
    choices = control.same_choices_same_record(drives)
    if kind == "mutex":
        plain = start(original.graph, original.run_input, world, control.at_random(original.seed, 0)).go()
        for drive in drives:
            without_choices(drive.canonical(), plain.canonical())
    return choices


def without_choices(held: dict[str, Any], plain: dict[str, Any]) -> None:
    """A mutex changes when firings run, and nothing else: while none fails, when nothing is cut off by chance."""
    if plain["status"] == "completed":
        for name in ("status", "final_state", "state", "firings", "approvals"):
            assert held[name] == plain[name], name


@pytest.mark.timeout(size(180, 3600))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", range(SEEDS // CHUNK))
def test_the_same_answers_and_choices_give_the_same_run(chunk: int, kind: str) -> None:
    tried = more = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        original = graphs.case(seed)
        case = control.variant(original, kind)
        if case is None:
            continue
        tried += 1
        try:
            more += checked(case, original, kind) > 1
        except Exception as wrong:
            raise AssertionError(f"seed {seed}, {kind}: {wrong}\n{json.dumps(case.spec)}") from wrong
    assert tried >= CHUNK // 8, f"only {tried} graphs had a place for it"
    if kind in ("mutex", "all"):
        assert more, "no order ever made another choice"
