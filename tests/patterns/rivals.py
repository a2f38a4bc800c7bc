"""Other readings of a graph, small enough to be seen through: what a scenario's assertion has to tell ours from."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from agent_graph.core import events as e
from agent_graph.core.graph import SPECIAL_TARGETS, Graph
from agent_graph.core.topology import ENTRY
from tests.patterns.scenario import Trace

MOST_FIRINGS = 60
PLAIN = frozenset({"passthrough", "llm", "router", "join", "state_transform", "loop"})
"""What the readings of this module know."""

Choices = dict[str, list[tuple[str, ...]]]
"""By node: the targets its firings chose, in order; the last is chosen from then on."""


def choices_of(log: Iterable[e.Event]) -> Choices:
    """What a run chose, for the others to choose the same."""
    found: Choices = {}
    for event in log:
        if isinstance(event.fact, e.NodeFinished) and event.fact.targets is not None:
            found.setdefault(event.fact.firing.partition("#")[0], []).append(tuple(event.fact.targets))
    return found


def is_plain(graph: Graph) -> bool:
    """Whether the graph holds nothing but what these readings know."""
    return all(
        node.type in PLAIN
        and getattr(node.config, "merge", "round") == "round"
        and not getattr(node.config, "mutex", "")
        and getattr(node.config, "wait", "all") == "all"
        for node in graph.nodes
    )


class Reading:
    """One run under another semantics, as marks."""

    def __init__(self, graph: Graph, choices: Choices) -> None:
        self.graph = graph
        self.choices = choices
        self.fired: Counter[str] = Counter()
        self.marks: list[str] = []

    def start(self, node: str) -> str:
        self.fired[node] += 1
        self.marks.append(f"+{node}#{self.fired[node]}")
        return f"{node}#{self.fired[node]}"

    def end(self, node: str, firing: str) -> list[str]:
        """The nodes it leads to."""
        asked = self.graph.nodes[self.graph.index[node]].type == "llm"
        self.marks += [f"?{firing}"] * asked + [f"-{firing}"]
        chosen = self.choices.get(node)
        if chosen is not None:
            targets: Sequence[str] = chosen[min(self.fired[node], len(chosen)) - 1]
            return [target for target in targets if target not in SPECIAL_TARGETS]
        topology = self.graph.topology
        place = self.graph.index[node]
        return [self.graph.nodes[topology.edges[i].target].id for i in topology.out_declared[place]]

    def trace(self, *, stuck: bool = False) -> Trace:
        return Trace((*self.marks, "=stuck" if stuck else "=completed"))


def supersteps(graph: Graph, choices: Choices) -> Trace:
    """All that anybody has sent to runs at once, each node once; the next step begins when the slowest is through."""
    reading = Reading(graph, choices)
    ready = _entry(graph)
    while ready and sum(reading.fired.values()) < MOST_FIRINGS:
        started = [(node, reading.start(node)) for node in ready]
        ready = [*dict.fromkeys(to for node, firing in started for to in reading.end(node, firing))]
    return reading.trace()


def each_token(graph: Graph, choices: Choices) -> Trace:
    """Whatever comes to a node runs it, as often as something comes."""
    reading = Reading(graph, choices)
    tokens = deque(_entry(graph))
    while tokens and sum(reading.fired.values()) < MOST_FIRINGS:
        node = tokens.popleft()
        tokens.extend(reading.end(node, reading.start(node)))
    return reading.trace()


def all_edges(graph: Graph, choices: Choices) -> Trace:
    """A node runs when every edge into it holds a token, and waits for ever for one that was not chosen."""
    reading = Reading(graph, choices)
    held: Counter[tuple[str, str]] = Counter({("", _entry(graph)[0]): 1})
    while sum(reading.fired.values()) < MOST_FIRINGS:
        ready = next((node for node in _names(graph) if all(held[edge] for edge in _into(graph, node))), None)
        if ready is None:
            break
        held.subtract(_into(graph, ready))
        held.update((ready, to) for to in reading.end(ready, reading.start(ready)))
    return reading.trace(stuck=any(held.values()))


RIVALS: dict[str, Callable[[Graph, Choices], Trace]] = {
    "supersteps": supersteps, "a firing for each token": each_token, "a wait for every edge": all_edges,
}  # fmt: skip


def _names(graph: Graph) -> Iterator[str]:
    return (node.id for node in graph.nodes)


def _entry(graph: Graph) -> list[str]:
    (first,) = [edge.target for edge in graph.topology.edges if edge.source == ENTRY]
    return [graph.nodes[first].id]


def _into(graph: Graph, node: str) -> list[tuple[str, str]]:
    edges = [graph.topology.edges[i] for i in graph.topology.in_edges[graph.index[node]]]
    return [("" if edge.source == ENTRY else graph.nodes[edge.source].id, node) for edge in edges]
