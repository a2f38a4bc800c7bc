"""What a scenario of a control-flow pattern is: a graph, a script, and what has to hold of every way it can go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from agent_graph.core import events as e
from tests.specs import Json


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened, as marks in order.

    ``+a#1`` node `a` started, ``?a#1`` it was answered from outside, ``-a#1`` it is done, ``!a#1`` it was cancelled,
    ``?go`` a message "go" came that nobody waited for yet, ``=completed`` the run ended.
    """

    marks: tuple[str, ...]

    @staticmethod
    def of(log: Iterable[e.Event]) -> Trace:
        return Trace(tuple(mark for event in log if (mark := _mark(event.fact))))

    @staticmethod
    def read(text: str) -> Trace:
        """From marks with blanks between them."""
        return Trace(tuple(text.split()))

    def at(self, mark: str) -> int:
        assert mark in self.marks, f"there is no {mark} in {' '.join(self.marks)}"
        return self.marks.index(mark)

    def firings(self, node: str, kind: str = "+") -> list[str]:
        """The firings of `node` (with the path of its frame, if it is not in the root) that started, in order."""
        return [mark[1:] for mark in self.marks if mark[0] == kind and mark[1:].rpartition("#")[0] == node]

    def once(self, *nodes: str) -> None:
        """Each of `nodes` started exactly once."""
        for node in nodes:
            assert len(self.firings(node)) == 1, f"{node} started {len(self.firings(node))} times: {self}"

    def never(self, *nodes: str) -> None:
        for node in nodes:
            assert not self.firings(node), f"{node} started: {self}"

    def in_order(self, *marks: str) -> None:
        """The marks are all there, and in this order."""
        places = [self.at(mark) for mark in marks]
        assert places == sorted(places), f"not in the order {' '.join(marks)}: {self}"

    def at_once(self, cause: str, effect: str) -> None:
        """`effect` follows `cause`, and nothing had to come from outside in between."""
        self.in_order(cause, effect)
        between = self.marks[self.at(cause) + 1 : self.at(effect)]
        assert not [mark for mark in between if mark[0] == "?"], f"{effect} waited for more than {cause}: {self}"

    def alone(self, *firings: str) -> None:
        """No two of `firings` were under way at a time."""
        spans = sorted((self.at(f"+{firing}"), self.at(f"-{firing}")) for firing in firings)
        for (_, end), (start, _) in pairwise(spans):
            assert end < start, f"two of {firings} at a time: {self}"

    def __str__(self) -> str:
        return " ".join(self.marks)


def _mark(fact: e.Fact) -> str:
    match fact:
        case e.NodeStarted():
            return f"+{fact.firing}" if fact.attempt == 1 else ""
        case e.NodeFinished():
            return f"-{fact.firing}"
        case e.FiringCancelled():
            return f"!{fact.firing}"
        case e.ModelAnswered() | e.ApprovalDecided() | e.ApprovalExpired() | e.TimerFired():
            return f"?{fact.firing}"
        case e.SignalReceived():
            return f"?{fact.firing or fact.name}"
        case e.RunCancelRequested():
            return "?cancel"
        case e.RunCompleted() | e.RunFailed() | e.RunCancelled():
            return f"={fact.type.removeprefix('run_')}"
        case _:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What somebody does to a run who is no model and decides at no gate: sends a message, or cancels the run."""

    signal: str = ""
    """The name of the message; "" cancels the run."""
    payload: Any = ""
    refused: str = ""
    """The code of the refusal that is expected; then nothing is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One pattern: `graphs` (the last is the one that runs, the others stand inside it) and its script."""

    number: int
    """In the catalogue of the workflow patterns initiative."""
    name: str
    degree: Literal["full", "partial"]
    graphs: Sequence[Json]
    holds: Callable[[Trace], None]
    """Asserts what the pattern asks for, of a run in any order of answers."""
    against: Mapping[str, str]
    """What `holds` must reject: other semantics by name -> the trace they give; "" where `rivals` works it out."""
    run_input: Any = "go"
    says: Mapping[str, Any] = field(default_factory=dict)
    """What models say, by firing or node; what is not named says the path of its firing."""
    decisions: Mapping[str, str] = field(default_factory=dict)
    """What people decide, by node; what is not named is approved."""
    acts: Mapping[str, Act] = field(default_factory=dict)
    """What is done once each, at any moment while the run goes on, unless `after` says otherwise."""
    after: Mapping[str, str] = field(default_factory=dict)
    """Question or act -> the mark in the trace, or the act, before which it does not come."""
    results: Sequence[Any] = ()
    """The final states a run may come to."""
    status: str = "completed"
    choices: bool = False
    """Which answer is first decides something, and that is recorded; else every order gives one record."""
    supersteps: str = ""
    """What the same graph does under supersteps, where that is something else."""

    def of(self, table: Mapping[str, Any], firing: str) -> Any:
        """What a script holds for a firing or its node, None for nothing."""
        node = firing.rpartition("/")[2].partition("#")[0]
        return table.get(firing, table.get(node))
