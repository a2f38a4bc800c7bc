"""Random graphs with what makes timing count: mutexes, END_RUN, `merge` "each", timers and messages put into them."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

from agent_graph.core.graph import Graph
from tests.properties import graphs
from tests.properties.driver import Drive, Order, refold, start
from tests.properties.graphs import Case
from tests.properties.world import World

Spec = dict[str, Any]
EACH = ("llm", "passthrough", "state_transform", "router")


def with_mutexes(rng: Random, spec: Spec) -> Spec:
    """Half of the nodes stand in line for one of two names."""
    for node in spec["nodes"]:
        if rng.random() < 0.5:
            node.setdefault("config", {})["mutex"] = rng.choice(["m", "n"])
    return spec


def with_waits(rng: Random, spec: Spec) -> Spec:
    """Nodes that do nothing wait for the clock, or for a message that nobody reads."""
    for node in spec["nodes"]:
        if node["type"] == "passthrough" and rng.random() < 0.7:
            config = {name: value for name, value in node.get("config", {}).items() if name in ("on_error", "mutex")}
            node["type"] = rng.choice(["timer", "signal"])
            node["config"] = config | ({"delay_ms": rng.randrange(9)} if node["type"] == "timer" else {})
    return spec


def with_each(rng: Random, spec: Spec, graph: Graph) -> Spec:
    """Nodes outside cycles that several edges lead to fire for every token."""
    topology = graph.topology
    for place, node in enumerate(spec["nodes"]):
        several = len(topology.in_edges[place]) > 1 and not topology.in_cycle >> place & 1
        if node["type"] in EACH and several and rng.random() < 0.8:
            node.setdefault("config", {})["merge"] = "each"
    return spec


def with_end_run(rng: Random, spec: Spec) -> Spec:
    """Ends of branches that end the run."""
    for edge in spec["edges"]:
        if edge["to"] == "END" and rng.random() < 0.5:
            edge["to"] = "END_RUN"
    for node in spec["nodes"]:
        for rule in node.get("config", {}).get("rules", ()):
            rule["targets"] = ["END_RUN" if to == "END" and rng.random() < 0.5 else to for to in rule["targets"]]
    return spec


def with_early_joins(rng: Random, spec: Spec) -> Spec:
    """Joins that do not wait for all, where the compiler takes them."""
    for place, node in enumerate(spec["nodes"]):
        if node["type"] == "join":
            tried = copy.deepcopy(spec)
            more = {"wait": rng.choice(["any", {"count": 1}, {"count": 2}]), "cancel_rest": rng.random() < 0.7}
            tried["nodes"][place].setdefault("config", {}).update(more)
            if graphs.accepted(tried)[0] is not None:
                spec = tried
    return spec


def variant(case: Case, kind: str) -> Case | None:
    """The case with constructs of that kind, None where there is no place for them."""
    rng = Random(f"{case.seed} {kind}")
    spec = copy.deepcopy(case.spec)
    match kind:
        case "mutex":
            spec = with_mutexes(rng, spec)
        case "waits":
            spec = with_waits(rng, spec)
        case "each":
            spec = with_each(rng, spec, case.graph)
        case "end_run":
            spec = with_end_run(rng, spec)
        case "early":
            spec = with_early_joins(rng, spec)
        case _:
            spec = with_early_joins(rng, spec)
            spec = with_end_run(rng, with_each(rng, with_mutexes(rng, with_waits(rng, spec)), case.graph))
    if spec == case.spec:
        return None
    graph, _ = graphs.accepted(spec)
    return None if graph is None else Case(case.seed, spec, graph, case.run_input)


def runs(case: Case, world: World, count: int) -> list[Drive]:
    """The run in so many random orders."""
    return [start(case.graph, case.run_input, world, at_random(case.seed, shift)).go() for shift in range(count)]


def at_random(seed: int, shift: int) -> Order:
    rng = Random(f"{seed} {shift}")
    return lambda open_: rng.randrange(len(open_))


def same_choices_same_record(drives: Sequence[Drive]) -> int:
    """Runs with equal recorded choices have equal canonical records; how many choices there were."""
    by_choice: dict[str, list[Drive]] = defaultdict(list)
    for drive in drives:
        record = drive.canonical()
        withdrawn = [gate for gate in record["approvals"] if gate["status"] == "withdrawn"]
        by_choice[json.dumps([record["choices"], withdrawn], sort_keys=True)].append(drive)
    for drives_ in by_choice.values():
        for drive in drives_:
            assert drive.canonical() == drives_[0].canonical(), "the same choices, and another run"
    return len(by_choice)


def one_holder_at_a_time(drive: Drive) -> None:
    """No two firings held one mutex between grant and end."""
    held: dict[str, str] = {}
    for event in drive.log:
        fact: Any = event.fact
        if fact.type == "mutex_granted":
            assert fact.name not in held.values() or fact.firing in held, f"{fact.name} has two holders"
            held[fact.firing] = fact.name
        elif fact.type in ("node_finished", "node_failed", "firing_cancelled"):
            held.pop(fact.firing, None)


def cut_and_go_on(case: Case, drive: Drive, world: World) -> None:
    """From any event on another process goes the same way, when the answers come in the same order."""
    rng = Random(case.seed)
    for _ in range(3):
        cut = rng.randrange(2, len(drive.log) + 1)
        again = refold(case.graph, drive.log[:cut], world, at_random(case.seed, 99)).go()
        same_choices_same_record([again, drive])
