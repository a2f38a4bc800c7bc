"""The laws of engine.md, each as a check of one random graph that says what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from agent_graph.core import checkpoint, events, statepath
from agent_graph.core.effects import MISSING, Done
from agent_graph.core.events import Event
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph
from agent_graph.core.outcome import final_state, output_path, state
from agent_graph.core.scheduler import decide
from agent_graph.errors import NodeFailure
from tests.properties.driver import TERMINAL, Drive, Order, orders, refold, seal, start
from tests.properties.graphs import Case, as_stored
from tests.properties.second_reading import Firing, Past, Reading
from tests.properties.world import World

TIMELESS_ERRORS = frozenset({"OUTPUT_KEY_NOT_WRITTEN"})
"""Errors of the end of a run, when everything has fired; any other cuts off what happens to be late."""


def world_of(case: Case, seed: int) -> World:
    """Most worlds answer everything, many only in the end; a few have models that fail or people who never decide."""
    handled = [n["id"] for n in case.spec["nodes"] if n.get("config", {}).get("on_error", "fail") != "fail"]
    return World(
        seed, failing=0.03 if seed % 10 == 1 else 0.0, silent=0.3 if seed % 10 == 2 else 0.0,
        stumbling=0.3 if seed % 2 else 0.0, forgiven=frozenset(handled),
    )  # fmt: skip


def read(case: Case, world: World, seed: int) -> Reading:
    rng = Random(seed)

    def pick(going: Sequence[Firing]) -> Firing:
        return going[rng.randrange(len(going))]

    return Reading(case.graph, case.run_input, world, pick).run()


def check(case: Case, *, seed: int, every_cut: bool = False) -> Drive:
    """All laws for one graph; returns one of its runs for the statistics."""
    world = world_of(case, seed)
    reading = read(case, world, seed)
    assert told(read(case, world, seed + 1)) == told(reading), "the second reading itself depends on the order"
    drives = [
        start(case.graph, case.run_input, world, order, one_by_one=name == "random 1").go()
        for name, order in orders(seed).items()
    ]
    for drive in drives:
        settled(drive)
        told_once(drive)
        unchanged(drive)
        agrees(drive, reading)
        same(drive, drives[0])
    first = drives[seed % len(drives)]
    replays(first)
    rng, stored = Random(seed), as_stored(case.spec)
    cuts = range(1, len(first.log) + 1)
    for cut in cuts if every_cut else rng.sample(cuts, min(2, len(cuts))):
        continues(first, reading, cut, stored=stored)
    stops(first, told(reading), rng.choice(cuts))
    return first


def is_cut_off(drive: Drive) -> bool:
    """It failed while other firings were under way, so what was done by then depends on time."""
    error = drive.run.error or {}
    return drive.run.status == "failed" and (str(error.get("code")) not in TIMELESS_ERRORS or "node_path" in error)


def settled(drive: Drive) -> None:
    """Nothing is stuck: the run has ended, or only people who do not answer are left."""
    status = drive.run.status
    assert decide(drive.graph, drive.run) == ()
    assert not drive.calls, f"{list(drive.calls)} are neither answered nor cancelled"
    if drive.gates:
        assert status == "waiting", f"{status} while {list(drive.gates)} wait for a decision"
    else:
        assert status in TERMINAL, f"{status}, and nothing is left to do"
    opened = sorted(gate.approval_id for gate in drive.gates.values())
    assert sorted(row.approval_id for row in drive.run.open_approvals) == opened


ONCE = (events.RouteTaken, events.LoopExhausted, events.WriteConflict, events.FrameFailed, events.ApprovalWithdrawn)


def told_once(drive: Drive) -> None:
    """Wherever the log was cut, nothing that was in it already is told again."""
    told = [as_text(events.to_json(event.fact)) for event in drive.log if isinstance(event.fact, ONCE)]
    assert len(told) == len(set(told)), [text for text in told if told.count(text) > 1]


def unchanged(drive: Drive) -> None:
    """No event was changed by what was done with it."""
    for event, sealed in zip(drive.log, drive.sealed, strict=True):
        assert seal(event) == sealed, "a value that belongs to an event was changed"


def chose(drive: Drive) -> bool:
    """A frame inside or a branch failed while others of its firings were under way: what was cancelled, or which of
    two failures was the first, depends on time."""
    facts = [event.fact for event in drive.log]
    inside = [fact for fact in facts if isinstance(fact, events.FrameFailed) and fact.frame]
    branches = [fact for fact in facts if isinstance(fact, events.BranchFailed)]
    failed = [fact for fact in facts if isinstance(fact, events.NodeFailed) and fact.targets is None]
    if branches and len(branches) + len(inside) < len(failed):
        return True
    return bool(inside or branches) and any(isinstance(fact, events.FiringCancelled) for fact in facts)


def same(drive: Drive, other: Drive) -> None:
    if chose(drive) or chose(other):
        return
    assert drive.run.status == other.run.status
    if is_cut_off(drive):
        return
    assert as_text(drive.canonical()) == as_text(other.canonical())
    conflicts = [
        sorted(as_text(events.to_json(e.fact)) for e in d.log if isinstance(e.fact, events.WriteConflict))
        for d in (drive, other)
    ]
    assert conflicts[0] == conflicts[1], "write conflicts depend on the order"


def as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, indent=1)


def told(reading: Reading) -> dict[str, Any]:
    """What a reading says of each firing that is done."""
    if reading.told is None:
        reading.told = _told(reading)
    return reading.told


def _told(reading: Reading) -> dict[str, Any]:
    return {
        firing.path: {
            "depth": firing.depth,
            **(of_done(firing.done) if firing.failed is None else of_failed(firing.failed, firing.selected)),
            "route": [firing.done.transition, sorted(firing.selected)] if firing.done.transition else None,
        }
        for firing in reading.firings.values()
        if firing.done is not None
    }


def of_failed(failed: NodeFailure, targets: Sequence[str]) -> dict[str, Any]:
    return {"failed": [failed.code, failed.message], "went": sorted(targets)}


def of_done(done: Done) -> dict[str, Any]:
    output, current = (() if value is MISSING else (value,) for value in (done.output, done.current))
    rest: Any = {"output": output, "current": current}
    return of_fact(events.NodeFinished("", done.writes, targets=done.targets, inputs=done.inputs, **rest))


def of_fact(fact: events.NodeFinished | events.NodeFailed) -> dict[str, Any]:
    if isinstance(fact, events.NodeFailed):
        return of_failed(NodeFailure(str(fact.error["code"]), str(fact.error["message"])), fact.targets or ())
    body: dict[str, Any] = json.loads(json.dumps(events.to_json(fact)))
    return {name: body.get(name) for name in ("writes", "output", "current", "targets", "inputs")}


def of_drive(drive: Drive) -> dict[str, Any]:
    record: Any = drive.canonical()
    depths = {firing["path"]: firing["depth"] for firing in record["firings"]}
    routes = drive.routes()
    found = {}
    for path, fact in drive.finished().items():
        route = [routes[path][0], sorted(routes[path][1])] if path in routes else None
        found[path] = {"depth": depths[path], **of_fact(fact), "route": route}
    return found


def agrees(drive: Drive, reading: Reading) -> None:
    """The run fired what the second reading fires, with the same inputs and results, and ended in the same state."""
    got, expected = of_drive(drive), told(reading)
    for path in got:
        assert path in expected, f"{path} fires, and by the second reading it does not"
        assert as_text(got[path]) == as_text(expected[path]), f"{path} is not what the second reading says"
    if is_cut_off(drive):
        error: Any = drive.run.error
        named = f"{error.get('node_path')} {error['code']}"
        assert named in reading.errors(), f"{named}, and the second reading fails with {reading.errors() or 'nothing'}"
        return
    assert not reading.errors(), f"{drive.run.status}, and the second reading fails with {reading.errors()}"
    assert set(expected) == set(got), f"{set(expected) - set(got)} do not fire"
    assert drive.run.status == expected_status(reading, where=drive.run.frame)
    conflicts_agree(drive, reading)
    if drive.run.status in TERMINAL:
        assert as_text(state(drive.run)) == as_text(reading.final_state()), "another final state"
        stuck = [edge for edge, tokens in reading.edges.items() if tokens]
        assert not stuck, f"tokens are stuck on {stuck}"


def conflicts_agree(drive: Drive, reading: Reading) -> None:
    """Each write conflict is told where its writes first meet: the later wins, and every loser is named there."""
    told: dict[str, list[events.WriteConflict]] = {}
    for event in drive.log:
        if isinstance(event.fact, events.WriteConflict):
            told.setdefault(event.fact.firing, []).append(event.fact)
    parts: dict[str, Sequence[Past]] = {firing.path: firing.parts for firing in reading.firings.values()}
    parts["END"] = [token.past for token in reading.ended] if drive.run.status in TERMINAL else []
    for path, pasts in parts.items():
        pairs = reading.conflicts(pasts)
        facts = told.pop(path, [])
        got = {(loser, fact.winner) for fact in facts for loser in fact.losers}
        assert got <= pairs, f"{path} tells of conflicts that are none: {got - pairs}"
        lost = {loser for loser, _ in pairs}
        assert lost == {loser for loser, _ in got}, f"{path} does not tell what is lost: {pairs}"
    assert not told


def expected_status(reading: Reading, *, where: Frame | None = None) -> str:
    """How a run ends in which no firing fails: the result must have been written, or be there from the input. `where`
    says at which node it ended, if that decides where the result is."""
    if any(firing.silent for firing in reading.firings.values()):
        return "waiting"
    path = reading.graph.output.path if where is None else output_path(where)
    found = not path or statepath.read(reading.final_state(), path) is not MISSING
    return "completed" if found else "failed"


def replays(drive: Drive) -> None:
    """Folding the whole log again gives the same run and asks for nothing."""
    again = refold(drive.graph, drive.log, drive.world, drive.order)
    assert as_text(again.canonical()) == as_text(drive.canonical())
    assert as_text(final_state(again.run)) == as_text(final_state(drive.run))
    assert (again.run.status, again.run.seq) == (drive.run.status, drive.run.seq)
    assert decide(again.graph, again.run) == ()


def continues(drive: Drive, reading: Reading | None, cut: int, *, stored: Graph) -> None:
    """Cut after `cut` events: folded anew, from a snapshot, and interrupted and resumed, it ends the same."""
    log: list[Event] = drive.log[:cut]
    ways = list(orders(drive.world.seed + cut).values())
    order = ways[cut % len(ways)]
    drives = [
        refold(drive.graph, log, drive.world, order),
        loaded(stored, log, drive.world, order, in_hand=cut % 2 == 1),
    ]
    if drives[0].run.status not in TERMINAL:
        resumed = refold(drive.graph, log, drive.world, ways[(cut + 1) % len(ways)])
        if cut % 2:
            resumed.do_all()
            resumed.calls.clear()  # whoever made them is gone
        if resumed.run.status not in TERMINAL:
            resumed.record(events.RunInterrupted("shutdown"))
            assert decide(resumed.graph, resumed.run) == (), "an interrupted run asks for something"
            resumed.record(events.RunResumed())
        drives.append(resumed)
    for again in drives:
        again.go()
        settled(again)
        told_once(again)
        unchanged(again)
        if reading is not None:
            agrees(again, reading)
        same(again, drive)


def loaded(stored: Graph, log: Sequence[Event], world: World, order: Order, *, in_hand: bool) -> Drive:
    """The run from a snapshot, on the graph as it is stored; `in_hand`: its calls were being made when it was taken."""
    again = refold(stored, log, world, order)
    if in_hand:
        again.do_all()
        again.calls.clear()
    again.run = checkpoint.load(stored, checkpoint.dump(again.run))
    return again


def stops(drive: Drive, expected: dict[str, Any], cut: int) -> None:
    """Cancelled after `cut` events it ends at once, and what was done by then is what it would have been."""
    stopped = refold(drive.graph, drive.log[:cut], drive.world, drive.order)
    if stopped.run.status in TERMINAL:
        return
    stopped.do_all()
    if stopped.run.status in TERMINAL:
        return
    stopped.record(events.RunCancelRequested("enough"))
    stopped.do_all()
    assert stopped.run.status == "cancelled"
    settled(stopped)
    told_once(stopped)
    got = of_drive(stopped)
    assert all(as_text(got[path]) == as_text(expected.get(path)) for path in got)
