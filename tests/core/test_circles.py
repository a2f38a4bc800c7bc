"""Which node fires when waiting nodes wait only for one another."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_graph.core.circles import first_of_circle
from agent_graph.core.graph import Graph
from tests.core.played import shape


@dataclass
class Waits:
    """A frame as the rule sees it: who waits for whom, and who runs."""

    graph: Graph
    waits: dict[int, set[int]]
    running: set[int] = field(default_factory=set)
    soft: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.soft = self.soft or set(self.waits)

    @property
    def running_set(self) -> int:
        return sum(1 << node for node in self.running)

    @property
    def full(self) -> dict[int, set[int]]:
        return {node: {0} for node in self.waits}

    def blockers(self, node: int) -> int:
        return sum(1 << other for other in self.waits[node])


LINE = shape("0>1 1>2 2>3 3>4 4>5 5>6")


def first(waits: dict[int, set[int]], *running: int, soft: tuple[int, ...] = ()) -> int | None:
    return first_of_circle(Waits(LINE, waits, {*running}, {*soft}))


def test_of_two_that_wait_for_one_another_the_first_in_forward_order() -> None:
    assert first({2: {3}, 3: {2}}) == 2


def test_nobody_fires_while_one_of_them_waits_for_a_running_firing() -> None:
    assert first({2: {3}, 3: {2, 5}}, 5) is None


def test_who_waits_for_a_held_node_is_held_and_a_circle_beside_it_is_not() -> None:
    assert first({1: {2}, 2: {1, 6}, 3: {1}, 4: {5}, 5: {4}}, 6) == 4


def test_a_node_that_waits_for_a_circle_lets_it_go_first() -> None:
    assert first({1: {2}, 2: {3}, 3: {2}}) == 2


def test_of_several_circles_that_wait_for_nothing_outside_the_first_in_forward_order() -> None:
    assert first({1: {4, 2}, 4: {5}, 5: {4}, 2: {3}, 3: {2}}) == 2


def test_a_node_that_is_known_to_wait_for_a_running_firing_holds_the_others() -> None:
    assert first({1: {2}, 2: {1, 5}, 3: {4}, 4: {3}}, 5, soft=(1, 3, 4)) == 3


def test_a_node_that_runs_and_holds_a_further_token_is_running() -> None:
    assert first({1: {2}, 2: {1}}, 2) is None
