"""Thousands of random graphs, each against every law: any order, any cut, replay, and the second reading.

Set `AGENT_GRAPH_TEST_SIZE=full` for 20,000 graphs instead of 300; each chunk prints what its graphs were like.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from tests.properties import graphs, laws
from tests.properties.graphs import Case, Statistics
from tests.properties.shrink import Spec, shrink
from tests.sizes import FULL, size

GRAPHS = size(300, 20_000)
CHUNK = size(20, 250)
FIRST = int(os.environ.get("AGENT_GRAPH_TEST_SEED", "0"))
"""Another first seed gives other graphs."""
SMALL = 6
"""Graphs of up to this many nodes are cut after every event, the others after some."""


def broken(case: Case, *, seed: int) -> str:
    """What is wrong with the graph, or ""."""
    try:
        laws.check(case, seed=seed, every_cut=len(case.spec["nodes"]) <= SMALL and seed % 5 == 0)
    except Exception as wrong:  # noqa: BLE001  (a finding whatever it is: decide must not raise either)
        return f"{type(wrong).__name__}: {wrong}"
    return ""


def report(case: Case, *, seed: int, wrong: str) -> str:
    """The failure with the smallest graph that still has one like it."""

    def fails(spec: Spec) -> bool:
        try:
            graph, _ = graphs.accepted(spec)
        except Exception:  # noqa: BLE001  (the shrinker proposes nonsense too)
            return False
        return graph is not None and bool(broken(Case(seed, spec, graph, case.run_input), seed=seed))

    small = shrink(case.spec, fails)
    graph, _ = graphs.accepted(small)
    assert graph is not None
    again = broken(Case(seed, small, graph, case.run_input), seed=seed)
    return (
        f"seed {case.seed}: {wrong}\nspec: {json.dumps(case.spec)}\ninput: {json.dumps(case.run_input)}\n"
        f"smallest: {json.dumps(small)}\nwhich gives: {again}"
    )


@pytest.mark.timeout(size(180, 7200))
@pytest.mark.parametrize("chunk", range(GRAPHS // CHUNK))
def test_every_law_holds_for_random_graphs(chunk: int, capsys: pytest.CaptureFixture[str]) -> None:
    statistics, statuses = Statistics(), Counter[str]()
    for seed in range(FIRST + chunk * CHUNK, FIRST + (chunk + 1) * CHUNK):
        case = graphs.case(seed)
        statistics.add(case)
        wrong = broken(case, seed=seed)
        assert not wrong, report(case, seed=seed, wrong=wrong)
        statuses[ending(case, seed)] += 1
    assert statuses["completed"] >= CHUNK // 2
    if FULL:
        common(statistics)
        with capsys.disabled():
            os.write(1, f"\n{statistics}; {dict(statuses)}\n".encode())


def ending(case: Case, seed: int) -> str:
    """How the run ends, by the second reading."""
    reading = laws.read(case, laws.world_of(case, seed), seed)
    codes = {firing.error.code for firing in reading.firings.values() if firing.error}
    return min(codes) if codes else laws.expected_status(reading)


def common(statistics: Statistics) -> None:
    """Enough graphs have what makes scheduling hard."""
    for feature in ("cycle", "routers", "reducers", "deletes", "all three"):
        assert statistics.share(feature) >= 0.3, statistics


@pytest.mark.timeout(120)
def test_the_random_graphs_have_enough_of_what_makes_scheduling_hard(capsys: pytest.CaptureFixture[str]) -> None:
    statistics, statuses = Statistics(), Counter[str]()
    for seed in range(FIRST, FIRST + 300):
        case = graphs.case(seed)
        statistics.add(case)
        statuses[ending(case, seed)] += 1
    with capsys.disabled():
        os.write(1, f"\n{statistics}; runs: {dict(statuses.most_common())}\n".encode())
    common(statistics)
    types = {"llm", "router", "passthrough", "state_transform", "join", "parallel", "human_approval", "loop"}
    assert all(statistics.types[kind] >= 30 for kind in types), statistics
    assert {min(statistics.sizes), max(statistics.sizes)} <= set(range(2, 26)), statistics
    assert statuses["completed"] >= 200, statuses


@pytest.mark.timeout(size(180, 3600))
@settings(
    max_examples=size(25, 1000), deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)  # fmt: skip
@given(graphs.cases())
def test_every_law_holds_for_the_graphs_of_hypothesis(case: Case) -> None:
    laws.check(case, seed=len(case.spec["nodes"]), every_cut=len(case.spec["nodes"]) <= SMALL)
