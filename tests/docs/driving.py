"""Drives a graph through the pure core, one answer at a time, in the order a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import ModelAnswer, answer_to_json
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.outcome import to_done
from agent_graph.core.record import canonical_record
from agent_graph.core.scheduler import Perform, decide, evolve, new_run
from agent_graph.core.view import View

FAILS = "(fails)"
"""What an answering function says for a call that fails."""
Answering = Callable[[str], str]


def graph_of(spec: JsonObject) -> Graph:
    """The compiled graph; a spec with an error fails the test."""
    compiled = compile_graph(spec)
    assert compiled.graph is not None, compiled.issues
    return compiled.graph


def numbered(firing: str) -> str:
    """``a#2`` says A2."""
    return firing.replace("#", "").upper()


def lettered(firing: str) -> str:
    """``a#2`` says A."""
    return firing.partition("#")[0].upper()


class Drive:
    """A run that gets the answers a test hands out. `asked` are the calls in flight, in the order they were made."""

    def __init__(self, graph: Graph, value: JsonValue = "question", answering: Answering = lettered) -> None:
        self.graph = graph
        self.answering = answering
        self.run = new_run()
        self.log: list[e.Event] = []
        self.asked: dict[str, int] = {}
        self.current: dict[str, JsonValue] = {}
        """By firing, the current value it saw when it started."""
        self.record(e.RunAccepted("run-1", graph.name, graph.version, value))
        self.record(e.RunStarted())
        self.settle()

    def record(self, fact: e.Fact) -> None:
        event = e.Event(self.run.seq, 0, fact)
        self.log.append(event)
        evolve(self.graph, self.run, event)
        if isinstance(fact, e.NodeStarted) and self.run.frame is not None:
            firing = self.run.firing(fact.firing)
            assert firing is not None
            self.current[fact.firing] = View(firing).current

    def settle(self) -> None:
        """Go on until only answers are left to wait for."""
        while actions := decide(self.graph, self.run):
            for action in actions:
                if isinstance(action, Perform):
                    self.asked[action.firing] = action.attempt
                    self.run.hand_over(action.firing)
                else:
                    self.record(action.fact)
        if self.run.terminal:
            self.asked.clear()

    def answer(self, *firings: str) -> None:
        """Answers to these calls come at one moment."""
        for firing in firings:
            attempt = self.asked.pop(firing)
            said = self.answering(firing)
            if said == FAILS:
                error: JsonObject = {"code": "MODEL_BAD_REPLY", "message": "nothing came", "class": "bad_reply"}
                self.record(e.NodeFailed(firing, error, attempt))
            else:
                self.record(e.ModelAnswered(firing, answer_to_json(ModelAnswer(said)), attempt))
        self.settle()

    def answer_all(self, *, last: Sequence[str] = ()) -> None:
        """Answer what is asked, call by call; the nodes in `last` only when nothing else is."""
        while self.asked:
            ready = [firing for firing in self.asked if lettered(firing).lower() not in last]
            self.answer((ready or list(self.asked))[0])

    @property
    def finished(self) -> list[str]:
        """The firings that are done, in the order of the log."""
        return [event.fact.firing for event in self.log if isinstance(event.fact, e.NodeFinished)]

    @property
    def cancelled(self) -> list[str]:
        """The firings that were cancelled."""
        return [event.fact.firing for event in self.log if isinstance(event.fact, e.FiringCancelled)]

    def started(self, node: str) -> list[str]:
        """The firings of a node so far."""
        facts = [event.fact for event in self.log if isinstance(event.fact, e.NodeStarted)]
        return [fact.firing for fact in facts if fact.firing.partition("#")[0] == node]

    def holds_token(self, node: str) -> bool:
        """Whether tokens wait at a node that does not run."""
        assert self.run.frame is not None
        return self.graph.index[node] in self.run.frame.full

    def output(self, firing: str) -> Any:
        """The output a finished firing left."""
        (fact,) = [x.fact for x in self.log if isinstance(x.fact, e.NodeFinished) and x.fact.firing == firing]
        return to_done(fact).output

    def written(self, firing: str) -> Any:
        """The value a finished firing wrote first."""
        (fact,) = [x.fact for x in self.log if isinstance(x.fact, e.NodeFinished) and x.fact.firing == firing]
        return to_done(fact).writes[0].value

    @property
    def record_of_run(self) -> JsonObject:
        return canonical_record(self.graph, self.log)


def every_order(make: Callable[[], Drive]) -> Iterator[Drive]:
    """The run in every order in which its answers can come, one at a time."""
    todo: list[tuple[str, ...]] = [()]
    while todo:
        order = todo.pop()
        drive = make()
        for firing in order:
            drive.answer(firing)
        if drive.asked:
            todo += [(*order, firing) for firing in drive.asked]
        else:
            yield drive
