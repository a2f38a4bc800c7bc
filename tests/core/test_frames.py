"""When a node runs: tokens on edges, witnesses, circles, rounds and the memory a frame keeps."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from agent_graph.core.effects import Write
from agent_graph.core.firing import Token
from tests.core.played import Tokens, shape

COUNTEREXAMPLE = {"edges": "2>3 0>1", "choose": {1: "2 0 3", 3: "1"}}


def put(key: str, value: object = 1, op: str = "set") -> tuple[Write, ...]:
    return (Write(op, tuple(key.split(".")), value),)  # type: ignore[arg-type]


def test_the_entry_runs_first_and_at_depth_one() -> None:
    at = Tokens(shape("0>1"))
    assert at.running == ["n0#1"]
    assert (at.fired[0].depth, at.fired[0].past, at.fired[0].tips) == (1, 0, ())


def test_all_out_edges_get_a_token() -> None:
    at = Tokens(shape("0>1 0>2"))
    assert sorted(at.done("n0#1")) == ["n1#1", "n2#1"]


def test_a_slow_sibling_holds_up_no_unrelated_branch() -> None:
    at = Tokens(shape("0>1 0>2 1>3"))
    at.done("n0#1")
    assert at.done("n1#1") == ["n3#1"]
    assert "n2#1" in at.running


def test_a_node_with_two_parents_runs_once_after_both_and_deeper_than_the_deeper() -> None:
    at = Tokens(shape("0>1 0>2 1>3 3>4 2>4"))
    at.done("n0#1")
    at.done("n1#1")
    assert at.done("n2#1") == []
    assert at.done("n3#1") == ["n4#1"]
    assert at.firing("n4#1").depth == 4


def test_a_node_waits_no_longer_when_the_last_that_could_still_come_goes_another_way() -> None:
    at = Tokens(shape("0>1 0>2 1>3 2>3", choose={2: "3"}))
    at.done("n0#1")
    assert at.done("n1#1") == []
    assert at.done("n2#1", "END") == ["n3#1"]


def test_a_waiting_node_is_looked_at_again_however_often_its_witness_changes() -> None:
    at = Tokens(shape("0>1 0>2 0>3 0>4 1>5 2>5 3>5 4>5", choose={2: "5", 3: "5", 4: "5"}))
    at.done("n0#1")
    at.done("n1#1")
    for path in ("n2#1", "n4#1"):
        assert at.done(path, "END") == []
    assert at.done("n3#1", "END") == ["n5#1"]


def test_a_waiting_node_that_gets_a_further_token_still_waits_for_the_others() -> None:
    at = Tokens(shape("0>1 0>2 0>3 1>4 2>4 3>4"))
    at.done("n0#1")
    assert [at.done(path) for path in ("n3#1", "n2#1", "n1#1")] == [[], [], ["n4#1"]]


def test_a_node_fires_one_at_a_time_and_takes_its_tokens_in_the_order_they_came() -> None:
    at = Tokens(shape("0>1", choose={0: "0 1"}))
    at.done("n0#1", "n0", "n1", writes=put("first"))
    at.done("n0#2", "n0", "n1", writes=put("second"))
    at.done("n0#3", "n1", writes=put("third"))
    assert at.running == ["n1#1"]
    pasts = [at.firing("n1#1").past]
    assert at.done("n1#1") == ["n1#2"]
    assert at.done("n1#2") == ["n1#3"]
    pasts += [at.firing(f"n1#{nth}").past for nth in (2, 3)]
    assert pasts == [0b1, 0b11, 0]  # the last is all there is: it becomes the base
    assert at.done("n1#3") == []


def test_a_node_can_lead_to_itself() -> None:
    at = Tokens(shape("0>1", choose={0: "0 1"}))
    assert at.done("n0#1", "n0") == ["n0#2"]
    assert at.done("n0#2", "n1") == ["n1#1"]
    assert at.firing("n1#1").depth == 3


def test_the_entry_may_be_the_head_of_a_loop() -> None:
    at = Tokens(shape("0>1", choose={1: "0 2"}))
    assert at.done("n0#1") == ["n1#1"]
    assert at.done("n1#1", "n0") == ["n0#2"]
    at.done("n0#2")
    assert at.done("n1#2", "n2") == ["n2#1"]


def test_a_join_in_a_loop_waits_for_the_branch_that_went_round_once_more() -> None:
    at = Tokens(shape("0>1 0>2 1>3 2>3", choose={1: "1 3"}))
    at.done("n0#1")
    assert at.done("n2#1") == []
    assert at.done("n1#1", "n1") == ["n1#2"]
    assert at.done("n1#2", "n3") == ["n3#1"]


def test_of_nodes_that_wait_only_for_one_another_the_first_in_forward_order_fires() -> None:
    at = Tokens(shape("0>2 0>1 1>2 2>1"))  # depth first: 0, 2, 1
    assert at.done("n0#1") == ["n2#1"]
    assert at.done("n2#1") == ["n1#1"]


def test_a_circle_is_held_while_something_that_runs_can_still_reach_it() -> None:
    at = Tokens(shape("0>1 0>2 0>3 1>2 2>1", choose={3: "1"}))
    assert at.done("n0#1") == ["n3#1"]
    assert at.done("n3#1", "END") == ["n1#1"]
    assert at.frame.soft == {2}


def test_what_waits_for_a_held_node_is_held_too() -> None:
    at = Tokens(shape("0>1 0>2 0>4 0>3 1>2 2>1 2>4", choose={3: "1"}))
    assert at.done("n0#1") == ["n3#1"]
    assert sorted(at.frame.full) == [1, 2, 4]


def test_circles_that_wait_for_nothing_outside_are_broken_first_and_all_of_them() -> None:
    circles = "0>1 0>2 1>2 2>1 0>3 0>4 3>4 4>3"
    at = Tokens(shape(f"{circles} 0>5 2>5 4>5"))
    assert at.done("n0#1") == ["n3#1", "n1#1"]  # depth first goes to 1 first: what it leads to stands behind 3
    assert 5 in at.frame.full


def test_a_node_behind_a_circle_waits_until_it_is_through() -> None:
    at = Tokens(shape("0>3 0>1 0>2 1>2 2>1 1>3"))
    assert at.done("n0#1") == ["n1#1"]
    assert sorted(at.done("n1#1")) == ["n2#1", "n3#1"]
    assert at.done("n2#1") == ["n1#2"]


def finish_all(seed: int, order: tuple[int, ...]) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Drive the counterexample; answers depend on the firing alone, the order of completion on `order`."""
    at, answers = Tokens(shape(**COUNTEREXAMPLE)), 0  # type: ignore[arg-type]
    while at.frame.running:
        assert answers < 200, "it does not end"
        ready = sorted(at.frame.running.values(), key=lambda firing: order[firing.node])
        path = ready[0].path
        rng = Random(f"{seed} {path}")
        if path.startswith("n1") and answers < 40:
            ways = [["n2", "n0"], ["n3", "n2"], ["n0", "n3"], ["END"]]
            at.done(path, *ways[rng.randrange(4)])
        elif path.startswith("n3"):
            at.done(path, rng.choice(["n1", "END"]))
        else:
            at.done(path)
        answers += 1
    return {f.path: (f.depth, f.nth) for f in at.fired}, [str(sorted(at.frame.full))]


@pytest.mark.parametrize("seed", range(12))
def test_the_known_counterexample_fires_the_same_in_every_order_of_completion(seed: int) -> None:
    outcomes = [finish_all(seed, order) for order in permutations(range(4))]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert outcomes[0][1] == ["[]"], "no token is stuck"


def test_a_circle_that_formed_in_the_counterexample_is_broken() -> None:
    at = Tokens(shape(**COUNTEREXAMPLE))  # type: ignore[arg-type]
    at.done("n0#1")
    assert at.done("n1#1", "n2", "n0") == ["n0#2", "n2#1"]
    assert at.done("n2#1") == []  # 3 is held: 0 runs and can still reach it by way of 1
    assert at.done("n0#2") == ["n1#2"]  # now 1 and 3 wait for one another alone
    assert at.done("n1#2", "n2") == ["n2#2", "n3#1"]  # 2 leads to 1 through 3 alone, so 3 need not wait for it
    assert at.done("n3#1", "n1") == ["n1#3"]
    assert at.done("n2#2") == []
    assert at.done("n1#3", "END") == ["n3#2"]


def test_an_end_stands_beside_other_targets() -> None:
    at = Tokens(shape("0>1", choose={0: "1"}))
    assert at.done("n0#1", "n1", "END", "n1") == ["n1#1"]
    at.done("n1#1")
    assert (at.frame.merged_end().depth, at.frame.active) == (2, 0)
    assert at.frame.ended_at == {0: 1, 1: 2}


def test_choosing_nothing_ends_the_branch() -> None:
    at = Tokens(shape("0>1", choose={0: "1"}))
    assert at.done("n0#1", all_out=False) == []
    assert at.frame.merged_end() == Token(0, (), 1)
    assert not at.frame.active


def test_a_declared_end_stands_beside_declared_edges() -> None:
    at = Tokens(shape("0>1 0>2", ends=[0]))
    assert sorted(at.done("n0#1")) == ["n1#1", "n2#1"]
    assert len(at.frame.ended) == 1


def test_a_branch_starts_with_its_own_input_and_its_sibling_sees_nothing_of_it() -> None:
    at = Tokens(shape("0>1 0>2 1>3 2>3"))
    at.frame.state.base_current = "start"
    at.done("n0#1", "n1", "n2", inputs={"n1": "mine"})
    current = [at.frame.state.current(at.firing(path).tips) for path in ("n1#1", "n2#1")]
    assert current == ["mine", "start"]
    at.done("n1#1")
    at.done("n2#1")
    assert at.frame.state.current(at.firing("n3#1").tips) == "mine"


def test_two_branches_with_inputs_meet_at_what_both_came_from() -> None:
    at = Tokens(shape("0>1 0>2 1>3 2>3"))
    at.frame.state.base_current = "start"
    at.done("n0#1", "n1", "n2", inputs={"n1": 1, "n2": 2})
    at.done("n1#1")
    at.done("n2#1")
    assert at.frame.state.current(at.firing("n3#1").tips) == "start"


def test_a_firing_that_is_dropped_leaves_no_token_and_enables_nothing() -> None:
    at = Tokens(shape("0>1 0>2 1>3 2>3"))
    at.done("n0#1")
    at.done("n1#1")
    at.frame.drop(at.firing("n2#1"))
    assert (at.frame.enabled, at.running) == ([], [])
    at.frame.look_again()
    assert (at.frame.enabled, at.running) == ([], []), "a frame that fails starts nothing, looked at again or not"


def test_a_token_from_the_body_of_a_loop_is_a_further_round() -> None:
    at = Tokens(shape("0>1 2>1", choose={1: "2 3"}, loops={1: 2}))
    at.done("n0#1")
    at.done("n1#1", "n2")
    assert at.done("n2#1") == ["n1#2"]
    assert [at.firing(path).reentered for path in ("n0#1", "n1#1", "n1#2")] == [False, False, True]


def test_a_nodes_previous_firing_belongs_to_the_past_and_depth_of_its_next_one() -> None:
    at = Tokens(shape("0>3", choose={0: "0 1 3", 1: "2", 2: "2"}))
    at.done("n0#1", "n0", "n1", "n3")
    at.done("n1#1", "n2")
    at.done("n0#2", "n1", "n0")
    assert at.done("n1#2", "END", writes=put("k")) == []
    assert at.done("n0#3", "n1", writes=put("other")) == ["n1#3"]
    again = at.firing("n1#3")
    assert again.depth == max(at.firing("n1#2").depth, at.firing("n0#3").depth) + 1
    assert [at.frame.state.read(key, again.past) for key in ("k", "other")] == [1, 1]


def test_the_depth_of_a_previous_firing_counts_also_when_its_writes_became_the_base() -> None:
    at = Tokens(shape("0>1", choose={1: "0 1"}))
    at.done("n0#1", writes=put("a"))
    for nth in range(1, 5):
        at.done(f"n1#{nth}", "n1")
    at.done("n1#5", "n0")
    at.done("n0#2")
    assert [at.firing(path).depth for path in ("n1#5", "n0#2", "n1#6")] == [6, 7, 8]


def test_concurrent_writes_are_told_by_each_firing_where_they_meet_and_by_none_behind_it() -> None:
    at = Tokens(shape("0>1 0>2 1>3 2>3 3>4 1>5 2>5"))
    at.done("n0#1")
    at.done("n1#1", writes=put("k", 1))
    assert at.done("n2#1", writes=put("k", 2)) == ["n5#1", "n3#1"]
    at.done("n3#1")
    at.done("n5#1")
    at.done("n4#1")
    told = {path: [(c.key, c.winner, c.losers) for c in at.firing(path).conflicts] for path in at.order}
    met = [("k", "n2#1", ("n1#1",))]
    assert told == {"n0#1": [], "n1#1": [], "n2#1": [], "n3#1": met, "n5#1": met, "n4#1": []}
    assert at.frame.end_conflicts() == ()


def test_concurrent_writes_can_meet_only_where_everything_ends() -> None:
    at = Tokens(shape("0>1 0>2"))
    at.done("n0#1")
    at.done("n2#1", writes=put("k", 2))
    at.done("n1#1", writes=put("k.x", 1))
    (conflict,) = at.frame.end_conflicts()
    assert (conflict.key, conflict.winner, conflict.losers) == ("k", "n2#1", ("n1#1",))


def test_a_loop_of_two_thousand_rounds_keeps_no_more_than_one_of_two_rounds() -> None:
    at = Tokens(shape("0>1", choose={1: "0"}, reducers={"sum": "add"}))
    for nth in range(1, 2_001):
        at.done(f"n0#{nth}", writes=(Write("operand", ("sum",), 1), *put("k", nth)), output=nth, current=nth)
        at.done(f"n1#{nth}", "n0")
        at.fired = at.fired[-2:]
    frame, state = at.frame, at.frame.state
    tables = [
        frame.tokens, frame.full, frame.running, frame.blocked_by, frame.soft, frame.watched, frame.nth, frame.depths,
        frame.last, frame.ended, frame.ended_at, state.base, state.base_writers, state.journal, state.writers,
    ]  # fmt: skip
    assert max(map(len, tables)) <= 3
    assert at.fired[-1].past == 0
    assert (state.read("sum", 0), state.read("k", 0), state.base_current) == (2_000, 2_000, 2_000)


def test_a_join_of_a_thousand_branches_takes_them_all_at_once() -> None:
    width = 1_000
    wires = " ".join(f"0>{n} {n}>{width + 1}" for n in range(1, width + 1))
    at = Tokens(shape(wires, reducers={"all": "append"}))
    at.done("n0#1")
    enabled = [at.done(f"n{n}#1", writes=(Write("operand", ("all",), n),)) for n in range(width, 0, -1)]
    assert enabled == [[]] * (width - 1) + [[f"n{width + 1}#1"]]
    assert at.frame.state.read("all", at.firing(f"n{width + 1}#1").past) == [*range(1, width + 1)]
    assert len(at.frame.blocked_by) <= 1


def test_a_join_in_a_cycle_remembers_what_it_has_seen() -> None:
    at = Tokens(shape("0>1", choose={1: "0"}, joins=[1]))
    object.__setattr__(at.frame.graph.nodes[1].config, "inputs", ["n0", "k", "nobody"])
    at.done("n0#1", output="x", writes=put("k"))
    assert at.firing("n1#1").seen_before == {}
    at.done("n1#1", "n0")
    at.done("n0#2", output="y")
    assert at.firing("n1#2").seen_before == {"n0": 0, "k": 0}
    assert at.frame.join_seen == {1: {"n0": 1, "k": 0}}
