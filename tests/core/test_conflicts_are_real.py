"""No false alarm: what compile calls a PARALLEL_WRITE_CONFLICT is met as one by a run of the scheduler."""

from __future__ import annotations

import random
from typing import Any

from agent_graph.core import events as e
from agent_graph.core.compile import load_graph
from agent_graph.core.conflicts import write_conflicts
from agent_graph.core.graph import Graph
from agent_graph.core.scheduler import Perform, decide, evolve, new_run
from agent_graph.core.spec import minimal, parse_spec
from agent_graph.core.wiring import wire
from tests.core.specs import join, loop, pass_, put, spec, transform
from tests.sizes import size


def random_graph(rng: random.Random) -> dict[str, Any]:
    """Forks, joins, routers that follow the input, loops, routers that lead back; two to four nodes write `x`."""
    count = rng.randint(4, 10)
    writers = set(rng.sample(range(1, count), min(count - 1, rng.randint(2, 4))))
    nodes: list[dict[str, Any]] = []
    ways: list[str] = []
    for i in range(count):
        ahead = [f"n{j}" for j in range(i + 1, count)]
        out = rng.sample(ahead[:5], min(len(ahead), 5, rng.choice([1, 1, 2, 2, 3]) if i else 3))
        kind = "put" if i in writers else "pass" if i == 0 else rng.choice(["pass", "join", "router", "loop", "again"])
        if kind == "router" and len(out) > 1:
            rules = [{"path": f"c{i}", "op": "eq", "value": 0, "targets": out[:-1]}]
            nodes.append({"id": f"n{i}", "type": "router", "config": {"rules": rules, "default": out[-1:]}})
        elif kind == "loop" and out:
            nodes += [loop(f"n{i}", f"body{i}", out[0], 2), pass_(f"body{i}")]
            ways.append(f"body{i}>n{i}")
        elif kind == "again" and out:
            nodes.append(transform(f"n{i}", {"op": "increment", "path": f"t{i}"}))
            back = {"path": f"t{i}", "op": "lt", "value": rng.randint(2, 3), "targets": [f"n{rng.randint(0, i)}"]}
            nodes.append({"id": f"r{i}", "type": "router", "config": {"rules": [back], "default": out}})
            ways.append(f"n{i}>r{i}")
        else:
            nodes.append(put(f"n{i}", "x") if kind == "put" else join(f"n{i}") if kind == "join" else pass_(f"n{i}"))
            ways += [f"n{i}>{target}" for target in out]
    return spec(nodes, *ways, output_key="__input__")


def built(raw: dict[str, Any]) -> tuple[Graph, list[set[str]]]:
    """The graph even where it is refused, and the nodes of every conflict compile sees in it."""
    parsed, _ = parse_spec(raw)
    assert parsed is not None
    wiring, found = wire(parsed)
    assert wiring is not None, found
    topology = wiring.topology()
    issues = write_conflicts(wiring, topology, wiring.ways(topology), reducers={})
    output = {"path": "", "declared": True, "by_end": {}}
    compiled = {"topology": topology.to_json(), "max_iterations": 1_000, "output": output}
    named = [{name for name in issue.message.split('"')[1::2] if name in wiring.index} for issue in issues]
    return load_graph(minimal(parsed), "", compiled), named


def run_once(graph: Graph, given: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The nodes that fired, and those that met in a conflict."""
    run, fired, met = new_run(), set(), set()
    todo: list[e.Fact] = [e.RunAccepted("r", "g", "v", given), e.RunStarted()]
    while todo:
        for fact in todo:
            run = evolve(graph, run, e.Event(run.seq, 0, fact))
            if isinstance(fact, e.NodeFinished):
                fired.add(fact.firing.partition("#")[0])
            if isinstance(fact, e.WriteConflict):
                met |= {name.partition("#")[0] for name in (fact.winner, *fact.losers)}
        actions = decide(graph, run)
        assert not any(isinstance(action, Perform) for action in actions)
        todo = [action.fact for action in actions]
    if run.status == "failed":
        assert run.error is not None
        assert run.error["code"] == "MAX_ITERATIONS_EXCEEDED"
    return fired, met


def test_every_conflict_that_is_reported_happens() -> None:
    reported = 0
    for seed in range(size(200, 5_000)):
        rng = random.Random(seed)
        graph, conflicts = built(random_graph(rng))
        if not conflicts:
            continue
        reported += 1
        (names,) = conflicts
        met: set[str] = set()
        seen: set[str] = set()
        for _ in range(24):
            choices = {f"c{i}": rng.randint(0, 1) for i in range(10)}
            fired, here = run_once(graph, choices)
            seen |= fired
            met |= here
        # of two writers in a row only the later one meets the third: not all that are named need be met
        assert names & met or not names <= seen, (seed, names, met)
    assert reported > size(200, 5_000) // 10
