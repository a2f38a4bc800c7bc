"""Small graphs, and runs of them driven by hand: nothing answers unless a test does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import Done, ModelAnswer, answer_to_json
from agent_graph.core.events import (
    ApprovalDecided,
    ApprovalExpired,
    Event,
    Fact,
    ModelAnswered,
    NodeFailed,
    NodeFinished,
    RunAccepted,
    RunCancelRequested,
    RunInterrupted,
    RunResumed,
    RunStarted,
    from_json,
    to_json,
)
from agent_graph.core.firing import Firing
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph, Node, Output
from agent_graph.core.jsonvalue import canonical
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Perform, Record, decide, evolve, new_run
from agent_graph.core.topology import build


def pairs(edges: str) -> list[tuple[int, int]]:
    """``0>1 1>2`` as pairs."""
    return [(int(a), int(b)) for a, _, b in (edge.partition(">") for edge in edges.split())]


def shape(
    edges: str, *, choose: dict[int, str] | None = None, ends: Iterable[int] = (), joins: Iterable[int] = (),
    loops: dict[int, int] | None = None, reducers: dict[str, str] | None = None,
) -> Graph:  # fmt: skip
    """Nodes ``n0``, ``n1`` ... wired as told; `choose` lists what a node can choose, as in ``{1: "2 3"}``."""
    declared, chosen = pairs(edges), {node: [*map(int, text.split())] for node, text in (choose or {}).items()}
    named = [0, *(node for pair in declared for node in pair), *chosen, *(n for row in chosen.values() for n in row)]
    count = max(named) + 1
    topology = build(
        count, 0, declared=declared, targets=[chosen.get(node, []) for node in range(count)], ends=ends, loops=loops
    )
    kinds = dict.fromkeys(joins, "join")
    nodes = []
    for node in range(count):
        kind = kinds.get(node, "passthrough")
        nodes.append(Node(f"n{node}", node, kind, NODE_TYPES[kind].Config()))
    return Graph(
        "shape", "sha256:0", {}, tuple(nodes), {node.id: node.index for node in nodes}, topology, reducers or {},
        1_000, 8, Output(),
    )  # fmt: skip


class Tokens:
    """A frame moved on by hand."""

    def __init__(self, graph: Graph) -> None:
        self.frame = Frame(graph)
        self.fired: list[Firing] = []
        self.frame.enter()
        self.look()

    def look(self) -> None:
        self.fired += self.frame.enabled
        self.frame.enabled = []

    @property
    def running(self) -> list[str]:
        return [firing.path for firing in self.frame.running.values()]

    @property
    def order(self) -> list[str]:
        """Everything that fired so far, in order."""
        return [firing.path for firing in self.fired]

    def firing(self, path: str) -> Firing:
        return next(firing for firing in self.fired if firing.path == path)

    def done(self, path: str, *targets: str, all_out: bool = True, **done: Any) -> list[str]:
        """Finish a running firing; returns what that enabled. Without `targets` all its out-edges get a token."""
        before = len(self.fired)
        chosen = targets if targets or not all_out else None
        self.frame.finish(self.firing(path), Done(targets=chosen, **done))
        self.look()
        return self.order[before:]


def compiled(nodes: Sequence[dict[str, Any]], edges: str = "", *, inner: Iterable[Graph] = (), **top: Any) -> Graph:
    """A graph of node objects, ``a>b b>END``; starts at the first of them. `inner` are the graphs it may run."""
    wires = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    spec = {"spec_version": "2", "name": "g", "entry": nodes[0]["id"], "nodes": [*nodes], "edges": wires, **top}
    made = compile_graph(spec, stored={(graph.name, ""): graph for graph in inner})
    assert made.graph is not None, [issue.to_json() for issue in made.issues if issue.severity == "error"]
    return made.graph


def llm(name: str, prompt: str = "{input}", **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "llm", "config": {"prompt": prompt, **config}}


def sub(name: str, graph: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "subgraph", "config": {"graph_name": graph, **config}}


def plain(name: str) -> dict[str, Any]:
    return {"id": name, "type": "passthrough"}


def writes(name: str, **values: Any) -> dict[str, Any]:
    """A transform that sets top-level keys."""
    return does(name, *({"op": "set", "path": key, "value": value} for key, value in values.items()))


def does(name: str, *operations: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "type": "state_transform", "config": {"operations": [*operations]}}


def router(name: str, path: str, ways: dict[str, list[str]], default: list[str] | None = None) -> dict[str, Any]:
    """Chooses by the text at `path`."""
    rules = [{"path": path, "op": "contains", "value": word, "targets": to} for word, to in ways.items()]
    return {"id": name, "type": "router", "config": {"rules": rules, "default": default}}


def gate(name: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "human_approval", "config": {"prompt": "Fine?", **config}}


@dataclass
class Played:
    """A run whose answers come from the test."""

    graph: Graph
    run: Run = field(default_factory=new_run)
    log: list[Event] = field(default_factory=list)
    calls: dict[str, Perform] = field(default_factory=dict)
    """What was asked of a model and not answered yet."""
    at_ms: int = 1_000

    def feed(self, *facts: Fact) -> Played:
        """Fold facts as they come, without asking what may happen next."""
        for fact in facts:
            self.log.append(Event(self.run.seq, self.at_ms, fact))
            self.run = evolve(self.graph, self.run, self.log[-1])
        return self

    def go(self, *facts: Fact) -> Played:
        """Fold facts, then all that can happen without an answer."""
        self.feed(*facts)
        while actions := decide(self.graph, self.run):
            for action in actions:
                if isinstance(action, Record):
                    self.feed(action.fact)
                else:
                    self.calls[action.firing] = action
                    self.run.hand_over(action.firing)
        return self

    def answer(self, firing: str, text: str = "ok", **answer: Any) -> Played:
        call = self.calls.pop(firing)
        return self.go(ModelAnswered(firing, answer_to_json(ModelAnswer(text, **answer)), call.attempt))

    def answer_all(self, text: str = "ok") -> Played:
        """Answer every call, oldest first, until none is left."""
        while self.calls:
            self.answer(next(iter(self.calls)), text)
        return self

    def fail(self, firing: str, code: str = "MODEL_NOT_FOUND") -> Played:
        call = self.calls.pop(firing)
        return self.go(NodeFailed(firing, {"code": code, "message": "no", "class": "not_found"}, call.attempt))

    def vote(self, firing: str, decision: str, **more: str) -> Played:
        open_ = next(gate for gate in self.run.open_approvals if gate.firing == firing)
        named = {"note": "", "by": "ann", "via": "cli", **more}
        return self.go(ApprovalDecided(firing, open_.approval_id, decision, **named))

    def expire(self, firing: str) -> Played:
        open_ = next(gate for gate in self.run.open_approvals if gate.firing == firing)
        return self.go(ApprovalExpired(firing, open_.approval_id))

    def cancel(self) -> Played:
        return self.go(RunCancelRequested("enough"))

    def resume(self) -> Played:
        """Stopped and taken up again: calls in flight are forgotten."""
        self.calls.clear()
        return self.go(RunInterrupted("stopped"), RunResumed())

    def prompt(self, firing: str) -> Any:
        return self.calls[firing].effect.messages[-1]["content"]

    def facts(self, kind: type[Fact]) -> list[Any]:
        return [event.fact for event in self.log if isinstance(event.fact, kind)]

    def facts_of(self, node: str) -> list[NodeFinished]:
        """How the firings of a node ended, in order; `node` with its frame's path, if it is not in the root."""
        return [fact for fact in self.facts(NodeFinished) if fact.firing.rpartition("#")[0] == node]

    @property
    def told(self) -> list[str]:
        """The types of all facts so far."""
        return [event.fact.type for event in self.log]


def accepted(graph: Graph, value: Any = "hello", **more: Any) -> Played:
    return Played(graph).feed(RunAccepted("run-1", graph.name, graph.version, value, **more))


def play(graph: Graph, value: Any = "hello", **more: Any) -> Played:
    """Accepted, started, and driven to where answers are needed."""
    return accepted(graph, value, **more).go(RunStarted())


def stored(event: Event) -> Event:
    """The event as it is read back from a log: canonical key order and number form."""
    body = json.loads(canonical(json.loads(json.dumps(to_json(event.fact)))))
    return Event(event.seq, event.at_ms, from_json(body))


def folded(graph: Graph, log: Iterable[Event]) -> Run:
    """The run as another process finds it."""
    run = new_run()
    for event in log:
        run = evolve(graph, run, stored(event))
    return run
