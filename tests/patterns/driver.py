"""Runs a scenario in two ways, with one order of answers: by hand on the pure core, and by the engine through its
tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.approval import Ballot, vote
from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import CallModel, ModelAnswer, answer_to_json
from agent_graph.core.graph import Graph
from agent_graph.core.record import canonical_record
from agent_graph.core.run import Run
from agent_graph.core.scheduler import decide, evolve, new_run
from agent_graph.core.signals import deliver
from agent_graph.core.step import Perform, Record
from agent_graph.errors import AgentGraphError
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import Room, opened
from tests.patterns.scenario import Act, Scenario, Trace

Order = Callable[[Sequence[str]], str]
"""Which of the open questions is answered next."""
MOST_EVENTS = 500
WHO, VIA = "Ada", "assistant"
EXPIRES = " expires"
"""Behind the name of a firing: the time for its message is over."""
_COMPILED: dict[int, Graph] = {}


def at_random(seed: int) -> Order:
    rng = Random(seed)
    return lambda open_: open_[rng.randrange(len(open_))]


def graph_of(scenario: Scenario) -> Graph:
    """The graph of a scenario, compiled with those inside it, once."""
    if scenario.number in _COMPILED:
        return _COMPILED[scenario.number]
    stored: dict[tuple[str, str], Graph] = {}
    for spec in scenario.graphs:
        made = compile_graph(spec, stored=stored)
        assert made.graph is not None, [issue.to_json() for issue in made.issues if issue.severity == "error"]
        graph = _COMPILED[scenario.number] = made.graph
        stored[graph.name, ""] = stored[graph.name, graph.version] = graph
    return _COMPILED[scenario.number]


def answer_of(scenario: Scenario, firing: str) -> str:
    said = scenario.of(scenario.says, firing)
    return firing if said is None else said if isinstance(said, str) else json.dumps(said)


def open_questions(scenario: Scenario, run: Run, calls: Sequence[str], *, seen: set[str]) -> list[str]:
    """What can come from outside now: answers, decisions, the clock, and acts; `seen` are marks and acts so far."""
    found = list(calls)
    for firing, wait in run.waits.items():
        if wait.due_ms is not None:
            found.append(firing + EXPIRES if wait.name else firing)
    found += [gate.firing for gate in run.open_approvals]
    found += [name for name in scenario.acts if name not in seen]
    return [name for name in found if name not in scenario.after or scenario.after[name] in seen]


@dataclass
class ByHand:
    """A run on the pure core whose answers come in an order that is handed in."""

    scenario: Scenario
    graph: Graph
    order: Order
    run: Run = field(default_factory=new_run)
    log: list[e.Event] = field(default_factory=list)
    calls: dict[str, Perform] = field(default_factory=dict)
    acts: dict[str, int] = field(default_factory=dict)
    """What was done, and how many events there were before."""

    @property
    def trace(self) -> Trace:
        return Trace.of(self.log)

    def record(self, fact: e.Fact) -> None:
        assert len(self.log) < MOST_EVENTS, "it does not end"
        self.log.append(e.Event(self.run.seq, 7, fact))
        self.run = evolve(self.graph, self.run, self.log[-1])
        if isinstance(fact, e.FiringCancelled):
            self.calls.pop(fact.firing, None)

    def go(self) -> ByHand:
        """From the start, or from wherever its log ends, to where nothing is left to answer."""
        if not self.log:
            self.record(e.RunAccepted("r", self.graph.name, self.graph.version, self.scenario.run_input))
            self.record(e.RunStarted())
        while True:
            self.settle()
            seen = {*self.trace.marks, *self.acts}
            open_ = open_questions(self.scenario, self.run, [*self.calls], seen=seen)
            if self.run.terminal or not open_:
                return self
            self.answer(self.order(open_))

    def settle(self) -> None:
        while actions := decide(self.graph, self.run):
            for action in actions:
                if isinstance(action, Record):
                    self.record(action.fact)
                else:
                    self.calls[action.firing] = action
                    self.run.hand_over(action.firing)

    def answer(self, name: str) -> None:
        if name in self.scenario.acts:
            self.acts[name] = len(self.log)
            self.act(self.scenario.acts[name])
        elif name in self.calls:
            call = self.calls.pop(name)
            said = answer_to_json(ModelAnswer(answer_of(self.scenario, name)))
            self.record(e.ModelAnswered(name, said, call.attempt))
        elif name.removesuffix(EXPIRES) in self.run.waits:
            self.record(e.TimerFired(name.removesuffix(EXPIRES)))
        else:
            (gate,) = [gate for gate in self.run.open_approvals if gate.firing == name]
            decision = self.scenario.of(self.scenario.decisions, name) or "approve"
            for fact in vote(self.run, gate.approval_id, Ballot(decision, WHO, VIA), now_ms=7):
                self.record(fact)

    def act(self, act: Act) -> None:
        if not act.signal:
            self.record(e.RunCancelRequested("enough"))
            return
        code = ""
        try:
            self.record(deliver(self.graph, self.run, act.signal, act.payload, by="", via=""))
        except AgentGraphError as refused:
            code = refused.code
        assert code == act.refused, f"{act}: {code}"

    def again(self, cut: int, order: Order) -> ByHand:
        """As another process finds it: the first `cut` events, from their stored form, and from a snapshot."""
        done = {name: before for name, before in self.acts.items() if before < cut}
        other = ByHand(self.scenario, self.graph, order, acts=done)
        for event in self.log[:cut]:
            fact = e.from_json(json.loads(json.dumps(e.to_json(event.fact))))
            other.log.append(e.Event(event.seq, event.at_ms, fact))
            other.run = evolve(self.graph, other.run, other.log[-1])
        if other.run.frame is not None:
            other.run = checkpoint.load(self.graph, checkpoint.dump(other.run))
        return other

    @property
    def canonical(self) -> Any:
        return canonical_record(self.graph, self.log)


@dataclass
class ByEngine:
    """A run by the engine, with its models held until the order lets one answer."""

    scenario: Scenario
    order: Order
    calls: dict[str, asyncio.Future[str]] = field(default_factory=dict)
    """By what was asked: calls under way."""
    asked: list[str] = field(default_factory=list)
    """Which questions were answered, in order."""
    log: list[e.Event] = field(default_factory=list)
    canonical: Any = None
    graph: Graph | None = None
    acts: set[str] = field(default_factory=set)

    async def model(self, call: CallModel) -> str:
        held = asyncio.get_running_loop().create_future()
        self.calls[_question(call)] = held
        try:
            return str(await held)
        finally:
            self.calls.pop(_question(call), None)

    async def go(self) -> ByEngine:
        async with opened(ScriptedModel(self.model)) as room:
            for spec in self.scenario.graphs[:-1]:
                await room.create(spec)
            run_id = await room.start(self.scenario.graphs[-1], self.scenario.run_input)
            row = await room.store.runs.get(run_id)
            self.graph = await room.deps.catalog.get(row.graph_id, row.graph_version)
            async with asyncio.timeout(15):
                while not await self.moved(room, run_id):  # noqa: ASYNC110  (many events tell of it)
                    await asyncio.sleep(0)
            await room.ended(run_id)
            self.log = await room.log(run_id)
            self.canonical = await room.record(run_id)
        return self

    async def moved(self, room: Room, run_id: str) -> bool:
        """Answer one question if the run can do nothing else; whether it has ended."""
        assert self.graph is not None
        log = await room.log(run_id)
        run = new_run()
        for event in log:
            run = evolve(self.graph, run, event)
        if run.terminal:
            return True
        actions = decide(self.graph, run)
        wanted = {a.firing: _question(a.effect) for a in actions if isinstance(a, Perform)}
        if run.lifecycle != "running" or len(wanted) != len(actions) or {*wanted.values()} != {*self.calls}:
            return False
        seen = {*Trace.of(log).marks, *self.acts}
        open_ = open_questions(self.scenario, run, [*wanted], seen=seen)
        open_ = [name for name in open_ if name.removesuffix(EXPIRES) not in run.waits]  # the clock comes by itself
        if not open_:
            assert any(wait.due_ms is not None for wait in run.waits.values()), f"it is stuck: {Trace.of(log)}"
            return False
        name = self.order(open_)
        self.asked.append(name)
        await self.answer(room, run_id, name, run, wanted)
        return False

    async def answer(self, room: Room, run_id: str, name: str, run: Run, wanted: dict[str, str]) -> None:
        if name in self.scenario.acts:
            self.acts.add(name)
            await self.act(room, run_id, self.scenario.acts[name])
        elif name in wanted:
            self.calls.pop(wanted[name]).set_result(answer_of(self.scenario, name))
        else:
            (gate,) = [gate for gate in run.open_approvals if gate.firing == name]
            decision = self.scenario.of(self.scenario.decisions, name) or "approve"
            assert (await room.decide(gate.approval_id, decision, decided_by=WHO))["ok"]

    async def act(self, room: Room, run_id: str, act: Act) -> None:
        if not act.signal:
            await room.data("graph_run_cancel", run_id=run_id, reason="enough")
            return
        before = await room.log(run_id)
        envelope = await room.call("graph_run_signal", run_id=run_id, name=act.signal, payload=act.payload)
        assert envelope["ok"] is not bool(act.refused), envelope
        if act.refused:
            assert envelope["error_code"] == act.refused
            assert await room.log(run_id) == before


def _question(call: Any) -> str:
    """What a call is told from others under way by."""
    return str(call.messages[-1]["content"])


def following(names: Sequence[str]) -> Order:
    """The order in which `names` were answered; by themselves those come that the clock answers."""
    left = list(names)

    def order(open_: Sequence[str]) -> str:
        if left and left[0] in open_:
            return left.pop(0)
        return next(name for name in open_ if name not in left)

    return order
