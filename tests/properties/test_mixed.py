"""Frames, fan-outs, mutexes, waits, ends of the run, early joins and budgets in one random graph: it ends, and every
snapshot of it is the fold of what was before."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from agent_graph.core import checkpoint, events
from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.compile import compile_graph
from agent_graph.core.graph import Graph
from agent_graph.core.scheduler import decide, evolve, new_run
from tests.properties import control
from tests.properties.driver import Drive, start
from tests.properties.framed import RUN_INPUT, framed
from tests.properties.world import World
from tests.sizes import size

SEEDS = size(15, 2_000)
MOST_ANSWERS = 2_000


def mixed(seed: int) -> Graph | None:
    """The framed graph of `seed` with what makes timing count put into it; None where the compiler refuses that."""
    rng, case = Random(f"mixed {seed}"), framed(seed)
    inner = {(one.name, ""): one for one in case.graph.subgraphs.values()}
    spec = control.with_waits(rng, control.with_mutexes(rng, json.loads(json.dumps(case.spec))))
    if rng.random() < 0.4:
        spec = control.with_end_run(rng, control.with_each(rng, spec, case.graph))
    for node in spec["nodes"]:
        config: dict[str, Any] = node.get("config", {})
        if config.get("for_each") and rng.random() < 0.3:
            config["timeout_ms"] = 1_000
            config["for_each"]["wait"] = {"count": rng.randint(1, 3)}
    if rng.random() < 0.4:
        spec["budgets"] = {"max_llm_calls": rng.randint(1, 20), "max_nodes": rng.randint(5, 60), "on_budget": "pause"}
    return compile_graph(spec, stored=inner).graph


def driven(graph: Graph, seed: int) -> Drive:
    """The run in a random order; whoever is asked for more grants it or not."""
    rng = Random(seed)
    drive = start(graph, RUN_INPUT, World(seed, stumbling=0.2 if seed % 2 else 0.0), lambda _: 0)
    for _ in range(MOST_ANSWERS):
        drive.do_all()
        if drive.run.terminal:
            return drive
        for path in [path for path in drive.calls if path not in drive.run.out]:
            del drive.calls[path]
        open_ = [
            *drive.calls,
            *drive.run.pausing,
            *drive.run.waits,
            *(gate.firing for gate in drive.run.open_approvals),
        ]
        assert open_, f"{drive.run.status}, and nobody is asked"
        asked = rng.choice(open_)
        if asked == ON_BUDGET:
            (gate,) = [gate for gate in drive.run.open_approvals if gate.firing == ON_BUDGET]
            said = "approve" if rng.random() < 0.8 else "reject"
            drive.record(events.ApprovalDecided(ON_BUDGET, gate.approval_id, said, "", "ann", "cli"))
        else:
            drive.answer(asked)
    raise AssertionError("it does not end")


def snapshots(graph: Graph, drive: Drive) -> None:
    """Of every beginning of the log."""
    run = new_run()
    for event in drive.log:
        run = evolve(graph, run, event)
        data = checkpoint.dump(run)
        loaded = checkpoint.load(graph, data)
        assert checkpoint.dump(loaded) == data
        assert decide(graph, loaded) == decide(graph, run)
        assert loaded.status == run.status


@pytest.mark.timeout(size(180, 7200))
def test_a_graph_with_all_of_it_ends_and_its_snapshots_are_its_folds() -> None:
    statuses = Counter[str]()
    for seed in range(SEEDS):
        graph = mixed(seed)
        if graph is None:
            continue
        try:
            drive = driven(graph, seed)
            snapshots(graph, drive)
        except Exception as wrong:
            raise AssertionError(f"seed {seed}: {type(wrong).__name__}: {wrong}\n{json.dumps(graph.spec)}") from wrong
        assert (drive.run.error or {}).get("code") != "INTERNAL", drive.run.error
        assert not drive.run.mutexes
        assert not drive.run.waits
        statuses[drive.run.status] += 1
    assert statuses["completed"] >= SEEDS // 5, statuses
