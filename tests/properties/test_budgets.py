"""Random graphs under random budgets: none is passed, a cut changes nothing, and what is always raised bounds nothing.

Set `AGENT_GRAPH_TEST_SIZE=full` for 2,000 graphs instead of 80.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from agent_graph.core import checkpoint, events
from agent_graph.core.budgets import LLM_CALLS, NODES, ON_BUDGET, TOKENS, ledger
from agent_graph.core.effects import ApprovalAnswer, CallModel, ModelAnswer
from agent_graph.core.scheduler import decide, evolve, new_run
from tests.properties import graphs
from tests.properties.driver import TERMINAL, Drive, Order, orders, refold, start
from tests.properties.graphs import Case, as_stored
from tests.properties.laws import is_cut_off
from tests.properties.world import World
from tests.sizes import size

GRAPHS = size(40, 2_000)
CHUNK = size(20, 250)
FIRST = int(os.environ.get("AGENT_GRAPH_TEST_SEED", "0"))
BY_NAME = "some nodes always slow"
"""An order that hangs on what is open alone: a run that is taken up again goes on as it would have."""


@dataclass(frozen=True, slots=True)
class Purse(World):
    """A world whose hosts mostly count, and in which somebody answers when a run asks for more."""

    generous: float = 1.0
    """Share of such questions that are approved."""

    def model(self, firing: str, call: CallModel) -> ModelAnswer | dict[str, Any]:
        answer = World.model(self, firing, call)
        if isinstance(answer, ModelAnswer) and self._draw("counts", firing, len(call.messages)) < 0.7:
            took = int(self._draw("took", firing, len(call.messages)) * 1500)
            return replace(answer, prompt_tokens=took // 2, completion_tokens=took - took // 2)
        return answer

    def person(self, firing: str, round_: int, allowed: tuple[str, ...]) -> ApprovalAnswer | None:
        if firing != ON_BUDGET:
            return World.person(self, firing, round_, allowed)
        decision = "approve" if self._draw("more", round_) < self.generous else "reject"
        return ApprovalAnswer(round_, decision, "", "someone", "console", 1000)


def bounds_of(case: Case, seed: int) -> dict[str, Any]:
    rng = Random(seed)
    most = {LLM_CALLS: rng.randint(1, 6), NODES: rng.randint(2, 30), TOKENS: rng.choice([200, 1200, 4000])}
    named = rng.sample(sorted(most), rng.randint(1, 3))
    nodes = [node["id"] for node in case.spec["nodes"]]
    elsewhere = rng.sample(nodes, min(len(nodes), rng.randint(1, 2))) + rng.choice([[], ["END"]])
    return {**{name: most[name] for name in named}, ON_BUDGET: rng.choice(["fail", "pause", {"goto": elsewhere}])}


def run(case: Case, world: World, order: Order, bounds: dict[str, Any], *, one_by_one: bool = False) -> Drive:
    return start(case.graph, case.run_input, world, order, one_by_one=one_by_one, budgets=bounds).go()


def never_passed(drive: Drive, bounds: dict[str, Any]) -> None:
    """After every event, nothing more is granted than is there; what is over is what calls in flight took beyond it."""
    folded, started, asked = new_run(), set[str](), Counter[str]()
    for event in drive.log:
        folded = evolve(drive.graph, folded, event)
        books, fact = folded.ledger, event.fact
        assert books is not None
        if isinstance(fact, events.BudgetGranted):
            of_it = {NODES} if fact.nodes else {LLM_CALLS, TOKENS}
            for name in of_it & books.most.keys():
                assert books.used(name) <= books.most[name], (event, books)
            asked[fact.firing] += fact.llm_calls
        elif isinstance(fact, events.NodeStarted):
            started.add(fact.firing)
        elif isinstance(fact, events.ModelAnswered):
            assert asked[fact.firing] or not {LLM_CALLS, TOKENS} & books.most.keys(), f"{fact.firing} was not granted"
        if NODES in books.most:
            assert len(started) <= books.most[NODES]
        if LLM_CALLS in books.most:
            assert books.calls <= books.most[LLM_CALLS]
    books = drive.run.ledger
    assert books is not None
    if drive.run.status in TERMINAL:
        assert not books.held, "a call was not settled"
        assert not books.due
        assert not books.untold
    most = ledger(bounds)
    assert most is not None
    rounds = sum(
        isinstance(event.fact, events.ApprovalDecided) and event.fact.firing == ON_BUDGET for event in drive.log
    )
    assert sum(books.most[name] // books.sizes[name] - 1 for name in books.most) <= rounds


def settled(drive: Drive) -> None:
    assert decide(drive.graph, drive.run) == ()
    assert not drive.calls
    status = drive.run.status
    assert status == "waiting" if drive.gates else status in TERMINAL, (status, drive.gates)
    assert drive.run.places == 0 or drive.run.status in TERMINAL, "a place is lost"


def continues(drive: Drive, world: World, cut: int, *, seed: int, stored: Any) -> None:
    """Killed after any event and taken up again, from the log or from a snapshot, the run is the same."""
    expected = drive.canonical()
    again = refold(drive.graph, drive.log[:cut], world, orders(seed)[BY_NAME])
    loaded = checkpoint.load(stored, checkpoint.dump(again.run))
    assert loaded.ledger == again.run.ledger
    if len(again.log) > 2:
        assert decide(stored, loaded) == decide(drive.graph, again.run)
    again.go()
    assert again.canonical() == expected, f"cut after {cut}: {drive.log[cut - 1].fact}"


def bounds_nothing(case: Case, world: World, bounds: dict[str, Any], *, seed: int) -> None:
    """A run whose every question is answered with more does what a run without budgets does."""
    without = start(case.graph, case.run_input, world, orders(seed)["fifo"]).go()
    bounded = run(case, world, orders(seed)["random 1"], {**bounds, ON_BUDGET: "pause"})
    assert is_cut_off(without) == is_cut_off(bounded)
    if is_cut_off(without):
        return  # by a person who rejects, and what was done by then depends on time
    free, raised = without.canonical(), bounded.canonical()
    assert {name: raised[name] for name in ("status", "final_state", "state", "firings")} == {
        name: free[name] for name in ("status", "final_state", "state", "firings")
    }


def check(seed: int) -> Drive:
    case, bounds = graphs.case(seed), bounds_of(graphs.case(seed), seed)
    world = Purse(seed, generous=0.8)
    drives = {
        name: run(case, world, order, bounds, one_by_one=name == "random 1") for name, order in orders(seed).items()
    }
    for drive in drives.values():
        settled(drive)
        never_passed(drive, bounds)
    refusals = [drive for drive in drives.values() if any(isinstance(e.fact, events.BudgetRefused) for e in drive.log)]
    if not refusals and not any(map(is_cut_off, drives.values())):
        records = [drive.canonical() for drive in drives.values()]
        assert all(record == records[0] for record in records), "the order counts although nothing was refused"
    drive, stored = drives[BY_NAME], as_stored(case.spec)
    cuts = range(2, len(drive.log) + 1)
    for cut in Random(seed).sample(cuts, min(6, len(cuts))):
        continues(drive, world, cut, seed=seed, stored=stored)
    if TOKENS not in bounds:  # a call that is too large for any budget could be asked for without end
        bounds_nothing(case, Purse(seed), bounds, seed=seed)
    return drive


@pytest.mark.timeout(size(180, 7200))
@pytest.mark.parametrize("chunk", range(GRAPHS // CHUNK))
def test_no_run_passes_its_budget_and_a_cut_changes_nothing(chunk: int, capsys: pytest.CaptureFixture[str]) -> None:
    endings = Counter[str]()
    for seed in range(FIRST + chunk * CHUNK, FIRST + (chunk + 1) * CHUNK):
        try:
            drive = check(seed)
        except Exception as wrong:
            bounds = bounds_of(graphs.case(seed), seed)
            raise AssertionError(f"seed {seed}: budgets {bounds}: {wrong}\n{graphs.case(seed).spec}") from wrong
        refused = [event.fact.then for event in drive.log if isinstance(event.fact, events.BudgetRefused)]
        endings[f"{drive.run.status} {refused[0] if refused else 'within'}"] += 1
    assert len(endings) > 3, endings
    if size(0, 1):
        with capsys.disabled():
            os.write(1, f"\n{dict(endings)}\n".encode())
