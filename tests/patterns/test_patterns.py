"""Every scenario by hand, by the engine and from its log; and other semantics, which its assertion has to reject."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.scheduler import decide
from tests.patterns.driver import ByEngine, ByHand, at_random, following, graph_of
from tests.patterns.rivals import RIVALS, choices_of, is_plain
from tests.patterns.scenario import Scenario, Trace
from tests.sizes import size

FILES = sorted(Path(__file__).parent.glob("p[0-9][0-9]_*.py"))
SCENARIOS: list[Scenario] = [import_module(f"tests.patterns.{path.stem}").SCENARIO for path in FILES]
NAMES = [path.stem for path in FILES]
SEEDS = range(size(8, 200))

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)


def by_hand(scenario: Scenario, seed: int) -> ByHand:
    return ByHand(scenario, graph_of(scenario), at_random(seed)).go()


def fits(scenario: Scenario, trace: Trace, record: Any) -> None:
    """The run ended as the scenario says, and the pattern's assertion holds."""
    assert record["status"] == scenario.status, (record["error_code"], str(trace))
    scenario.holds(trace)
    if scenario.results:
        assert record["final_state"] in [[result] for result in scenario.results]


def same_record_for_same_choices(scenario: Scenario, runs: Sequence[ByHand]) -> None:
    """What comes by the clock or as a message is an answer; which of them came is part of the key."""
    by_choice = defaultdict(set)
    for run in runs:
        record = run.canonical
        came = sorted(str(event.fact) for event in run.log if isinstance(event.fact, e.TimerFired | e.SignalReceived))
        key = json.dumps([record["choices"], record["approvals"], came], sort_keys=True)
        by_choice[key].add(json.dumps(record, sort_keys=True))
    assert all(len(same) == 1 for same in by_choice.values()), "the same choices, and another run"
    if not scenario.choices:
        assert len(by_choice) == 1, "the order of answers decides something"
    elif len(runs) == len(SEEDS):
        assert len(by_choice) > 1, "no order of answers made another choice"


@every_scenario
def test_by_hand_in_random_orders_it_is_the_pattern(scenario: Scenario) -> None:
    runs = []
    for seed in SEEDS:
        try:
            run = by_hand(scenario, seed)
            fits(scenario, run.trace, run.canonical)
        except AssertionError as wrong:
            raise AssertionError(f"seed {seed}: {wrong}") from wrong
        runs.append(run)
    same_record_for_same_choices(scenario, runs)
    ends = [run.canonical["final_state"] for run in runs]
    assert all([result] in ends for result in scenario.results), "no order of answers came to one of the results"


@every_scenario
@pytest.mark.parametrize("seed", [1, 2])
async def test_by_the_engine_it_is_the_pattern_and_by_hand_the_same_run(scenario: Scenario, seed: int) -> None:
    run = await ByEngine(scenario, at_random(seed)).go()
    fits(scenario, Trace.of(run.log), run.canonical)
    graph = graph_of(scenario)
    assert run.graph is not None
    assert graph.version == run.graph.version
    assert ByHand(scenario, graph, following(run.asked)).go().canonical == run.canonical


@every_scenario
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_from_its_log_it_is_the_same_run_and_from_any_cut_it_goes_on_as_one(scenario: Scenario, seed: int) -> None:
    run = by_hand(scenario, seed)
    again = run.again(len(run.log), at_random(seed))
    assert again.canonical == run.canonical
    assert decide(again.graph, again.run) == ()
    for cut in Random(seed).sample(range(2, len(run.log)), min(4, len(run.log) - 2)):
        other = run.again(cut, at_random(seed + cut)).go()
        fits(scenario, other.trace, other.canonical)
        same_record_for_same_choices(scenario, [run, other])


def rival_traces(scenario: Scenario) -> Iterator[tuple[str, Trace]]:
    choices = choices_of(by_hand(scenario, 1).log)
    for name, text in scenario.against.items():
        yield name, Trace.read(text) if text else RIVALS[name](graph_of(scenario), choices)


def rejects(scenario: Scenario, trace: Trace) -> bool:
    try:
        scenario.holds(trace)
    except AssertionError:
        return True
    return False


@every_scenario
def test_under_another_semantics_it_would_fail(scenario: Scenario) -> None:
    assert scenario.against
    graph = graph_of(scenario)
    inner = {node["id"] for spec in scenario.graphs for node in spec["nodes"]}
    for name, trace in rival_traces(scenario):
        firings = [mark[1:] for mark in trace.marks if mark[0] in "+-!"]
        assert {firing.rpartition("/")[2].partition("#")[0] for firing in firings} <= inner, name
        assert trace.marks[0] == f"+{graph.spec['entry']}#1", f"{name}: a run starts at the entry"
        assert trace.marks[-1][0] == "=", f"{name}: a run ends"
        assert rejects(scenario, trace), f"{name} passes: {trace}"


@every_scenario
def test_it_says_truly_whether_supersteps_do_something_else(scenario: Scenario) -> None:
    assert bool(scenario.supersteps) == ("supersteps" in scenario.against)
    graph = graph_of(scenario)
    if not scenario.supersteps and len(scenario.graphs) == 1 and is_plain(graph):
        scenario.holds(RIVALS["supersteps"](graph, choices_of(by_hand(scenario, 1).log)))
