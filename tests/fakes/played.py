"""Drives a run in the pure core, with a script in the place of the model and of the people who decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_graph.core import schema
from agent_graph.core.effects import CallModel, ModelAnswer, answer_to_json
from agent_graph.core.events import ApprovalDecided, Event, Fact, ModelAnswered, RouteTaken, RunAccepted, RunStarted
from agent_graph.core.graph import Graph
from agent_graph.core.outcome import final_state
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Perform, decide, evolve, new_run

Script = Callable[[str, int, CallModel], Any]
"""(node id, how often it was asked, the call) -> what the model says: a text, or a value to be written as JSON."""


@dataclass
class Played:
    """A run driven by a script: what was asked, and how it ended."""

    graph: Graph
    run: Run
    facts: list[Fact] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    """(node id, the whole prompt), in the order asked."""

    def feed(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.run = evolve(self.graph, self.run, Event(self.run.seq, 1_000 + self.run.seq, fact))

    @property
    def asked(self) -> list[str]:
        return [node for node, _ in self.calls]

    def prompt(self, node: str, nth: int = 0) -> str:
        return [text for name, text in self.calls if name == node][nth]

    @property
    def result(self) -> Any:
        assert self.run.status == "completed", self.run.error
        return final_state(self.run)[0]

    @property
    def routes(self) -> list[str]:
        return [fact.transition for fact in self.facts if isinstance(fact, RouteTaken)]


def play(graph: Graph, run_input: Any, script: Script, *, decisions: Sequence[tuple[str, str]] = ()) -> Played:
    """Drive a run to where nothing is left to do; calls are answered only when nothing else can happen."""
    played = Played(graph, new_run())
    played.feed(RunAccepted("run-1", graph.name, graph.version, run_input))
    played.feed(RunStarted())
    waiting: list[Perform] = []
    left = list(decisions)
    while True:
        actions = decide(graph, played.run)
        for action in actions:
            if isinstance(action, Perform):
                played.run.hand_over(action.firing)
                waiting.append(action)
            else:
                played.feed(action.fact)
        if actions:
            continue
        if waiting:
            _answer(played, waiting.pop(0), script)
        elif played.run.open_approvals and left:
            gate = played.run.open_approvals[0]
            decision, note = left.pop(0)
            played.feed(ApprovalDecided(gate.firing, gate.approval_id, decision, note, "ann", "cli"))
        else:
            return played


def _answer(played: Played, action: Perform, script: Script) -> None:
    node = action.firing.rpartition("/")[2].partition("#")[0]
    call = action.effect
    assert isinstance(call, CallModel)
    said = script(node, played.asked.count(node), call)
    played.calls.append((node, "\n".join(str(message["content"]) for message in call.messages)))
    text = said if isinstance(said, str) else json.dumps(said)
    if isinstance(call.format, dict):
        assert schema.violations(json.loads(text), call.format) == []
    played.feed(ModelAnswered(action.firing, answer_to_json(ModelAnswer(text)), action.attempt))
