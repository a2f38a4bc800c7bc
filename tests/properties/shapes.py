"""Random shapes of graphs: which nodes there are and where tokens can go, before anybody says what the nodes do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

PLAIN = ("llm", "llm", "state_transform", "state_transform", "passthrough")
MEETING = ("join", "join", "join", "state_transform", "llm", "passthrough")
CHOOSING = frozenset({"router", "loop", "parallel"})


@dataclass(slots=True)
class Shape:
    """Nodes in the order they were made, their declared edges, and what choosing nodes can choose."""

    rng: Random
    kinds: dict[str, str] = field(default_factory=dict)
    config: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)
    counters: dict[str, str] = field(default_factory=dict)
    """Transform -> the key it counts up, so that a router knows when to leave its cycle."""
    entry: str = ""
    wild: bool = False
    """Built without structure: rounds, branches and cycles may overlap in any way."""

    def node(self, kind: str) -> str:
        name = f"n{len(self.kinds)}"
        self.kinds[name] = kind
        self.config[name] = {"rules": [], "default": ["END"]} if kind == "router" else {}
        return name

    def plain(self) -> str:
        return self.node(self.rng.choice(PLAIN))

    def edge(self, source: str, target: str) -> None:
        if (source, target) not in self.edges:
            self.edges.append((source, target))

    def choice(self, router: str, targets: list[str], *, rule: dict[str, Any] | None = None) -> None:
        """`router` can choose `targets`; without a rule `graphs` makes one up."""
        self.config[router]["rules"].append({**(rule or {}), "targets": targets})

    def counted_way_back(self, router: str, target: str) -> None:
        """A rule of `router` that leads back to `target` through a counter, a few times only."""
        counter = self.node("state_transform")
        key, bound = f"c_{counter}", self.rng.randint(1, 3)
        self.counters[counter] = key
        forms: list[dict[str, Any]] = [
            {"not": {"path": key, "op": "gte", "value": bound}},
            {"any": [{"path": key, "op": "not_exists"}, {"path": key, "op": "lt", "value": bound}]},
        ]
        self.choice(router, [counter], rule=self.rng.choice(forms))
        self.edge(counter, target)


Block = tuple[str, str]
"""First and last node of a part of a graph; only the last one still lacks its way out."""


def _step(shape: Shape, _budget: int) -> Block:
    name = shape.plain()
    return name, name


def _sequence(shape: Shape, budget: int) -> Block:
    cut = shape.rng.randint(1, budget - 1)
    first, middle = block(shape, cut)
    start, last = block(shape, budget - cut)
    shape.edge(middle, start)
    return first, last


def _parts(shape: Shape, budget: int) -> list[int]:
    """`budget` in two to four parts of at least one."""
    count = min(budget, shape.rng.choice((2, 2, 3, 4)))
    parts = [1] * count
    for _ in range(budget - count):
        parts[shape.rng.randrange(count)] += 1
    return parts


def _fork(shape: Shape, budget: int) -> Block:
    first, last = shape.plain(), shape.node(shape.rng.choice(MEETING))
    for part in _parts(shape, budget - 2):
        start, stop = block(shape, part)
        shape.edge(first, start)
        shape.edge(stop, last)
    if shape.rng.random() < 0.15:
        shape.edge(first, last)
    return first, last


def _branches(shape: Shape, budget: int) -> Block:
    first, last = shape.node("parallel"), shape.node("join")
    branches: list[dict[str, Any]] = []
    for part in _parts(shape, budget - 2):
        start, stop = block(shape, part)
        branches.append({"id": f"b{len(branches)}", "entry": start})
        if shape.rng.random() < 0.6:
            shape.edge(stop, last)  # else: a branch node without out-edges leads to the join
    shape.config[first] = {"branches": branches, "join": last}
    return first, last


def _choice(shape: Shape, budget: int) -> Block:
    first, last = shape.node("router"), shape.node(shape.rng.choice(MEETING))
    ways = []
    for part in _parts(shape, budget - 2):
        start, stop = block(shape, part)
        shape.edge(stop, last)
        ways.append(start)
    for way in ways[1:]:
        shape.choice(first, [way])
    if shape.rng.random() < 0.3:
        shape.choice(first, shape.rng.sample(ways, 2))
        shape.config[first]["mode"] = "all"
    shape.config[first]["default"] = [ways[0]]
    return first, last


def _rounds(shape: Shape, budget: int) -> Block:
    first, stop = block(shape, budget - 3)
    router, last = shape.node("router"), shape.plain()
    shape.edge(stop, router)
    shape.counted_way_back(router, first)
    shape.config[router]["default"] = [last]
    return first, last


def _loop(shape: Shape, budget: int) -> Block:
    loop, last = shape.node("loop"), shape.plain()
    start, stop = block(shape, budget - 2)
    shape.edge(stop, loop)
    shape.config[loop] = {"entry": start, "exit": last, "max_iterations": shape.rng.randint(1, 3)}
    return loop, last


def _gate(shape: Shape, budget: int) -> Block:
    gate = shape.node("human_approval")
    config = shape.config[gate]
    if budget > 1 and shape.rng.random() < 0.7:
        start, stop = block(shape, budget - 1)
        shape.edge(stop, gate)
        config["on_request_changes"] = [start]
    elif shape.rng.random() < 0.5:
        config["on_request_changes"] = "continue"
    if shape.rng.random() < 0.6:
        config["on_reject"] = shape.rng.choice(("continue", ["END"]))
    return gate, gate


_SMALLEST: tuple[tuple[Callable[[Shape, int], Block], int, int], ...] = (
    (_sequence, 2, 4), (_fork, 4, 4), (_branches, 4, 6), (_choice, 4, 6), (_rounds, 4, 6), (_loop, 3, 4), (_gate, 1, 1),
)  # fmt: skip
"""A part, the nodes it needs at least, how often it is picked."""


def block(shape: Shape, budget: int) -> Block:
    """A part of about `budget` nodes with one way in and one way out."""
    fitting = [(make, weight) for make, least, weight in _SMALLEST if budget >= least]
    if budget == 1 and shape.rng.random() < 0.93:
        return _step(shape, budget)
    make = shape.rng.choices([make for make, _ in fitting], [weight for _, weight in fitting])[0]
    return make(shape, budget)


def structured(rng: Random, size: int) -> Shape:
    """Forks that meet, choices that merge and cycles nested in one another, and a few edges across all that."""
    shape = Shape(rng)
    shape.entry, last = block(shape, max(2, size - 1))
    end = shape.node("join" if rng.random() < 0.3 else rng.choice(PLAIN))
    shape.edge(last, end)
    shape.edge(end, "END")
    if rng.random() < 0.35:
        for _ in range(rng.randint(1, 3)):
            _cross(shape)
    return shape


def _cross(shape: Shape) -> None:
    """One more way that respects no structure: an edge onwards, or a counted way back."""
    names = list(shape.kinds)
    source, target = sorted(shape.rng.sample(range(len(names)), 2))
    if shape.kinds[names[source]] == "llm" and shape.rng.random() < 0.5:
        handler = "END" if shape.rng.random() < 0.2 else names[target]
        shape.config[names[source]]["on_error"] = {"goto": [handler]}
    elif shape.kinds[names[source]] not in CHOOSING:
        shape.edge(names[source], names[target])
    elif shape.kinds[names[source]] == "router":
        shape.choice(names[source], [names[target]])
    if shape.kinds[names[target]] == "router" and shape.rng.random() < 0.5:
        shape.counted_way_back(names[target], names[source])


def unstructured(rng: Random, size: int) -> Shape:
    """Any node leads to any later one, and routers back to any earlier one."""
    shape = Shape(rng, wild=True)
    count = max(2, size - rng.randint(0, size // 5))
    kinds = ("router", "router", "human_approval", "join", "join", *PLAIN, *PLAIN)
    names = [shape.node(rng.choice(kinds)) for _ in range(count)]
    shape.entry = names[0]
    for place in range(1, count):
        _lead(shape, rng.choice(names[max(0, place - 4) : place]), names[place])
    for _ in range(rng.randint(0, count // 2)):
        source, target = sorted(rng.sample(range(count), 2))
        _lead(shape, names[source], names[target])
    routers = [place for place in range(1, count) if shape.kinds[names[place]] == "router"]
    for place in rng.sample(routers, rng.randint(0, min(len(routers), 3))):
        back = names[rng.randint(max(0, place - 8), place)]
        if rng.random() < 0.75:
            shape.counted_way_back(names[place], back)
        else:
            shape.choice(names[place], [back])
    for name in names:
        _give_way_out(shape, name)
    return shape


def _lead(shape: Shape, source: str, target: str) -> None:
    if shape.kinds[source] == "router":
        shape.choice(source, [target])
    elif shape.kinds[source] == "human_approval" and shape.rng.random() < 0.3:
        shape.config[source].setdefault("on_reject", []).append(target)
    elif shape.kinds[source] == "llm" and shape.rng.random() < 0.15:
        shape.config[source].setdefault("on_error", {"goto": []})["goto"].append(target)
    else:
        shape.edge(source, target)


def _give_way_out(shape: Shape, name: str) -> None:
    if shape.kinds[name] == "router":
        rules = shape.config[name]["rules"]
        plain = [rule for rule in rules if len(rule) == 1]
        if plain and shape.rng.random() < 0.8:
            shape.config[name]["default"] = plain[-1]["targets"]
        elif shape.rng.random() < 0.2:
            shape.config[name]["default"] = []
        if shape.rng.random() < 0.3:
            shape.config[name]["mode"] = "all"
    elif not any(source == name for source, _ in shape.edges):
        shape.edge(name, "END")
