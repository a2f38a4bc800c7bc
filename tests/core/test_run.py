"""What a run says of itself: its status, its open approvals, its active firings."""

from __future__ import annotations

from agent_graph.core.events import NodeFailed, RunCancelRequested, RunStarted
from agent_graph.core.run import Run
from tests.core.played import accepted, compiled, gate, llm, plain, play

BOTH = compiled([plain("s"), gate("g"), llm("a")], "s>g s>a", output_key="g")
ERROR = {"code": "X", "message": "y", "class": "bug"}


def test_a_new_run_is_new_and_has_nothing() -> None:
    run = Run()
    assert (run.status, run.terminal, run.open_approvals, run.firing("a#1")) == ("new", False, [], None)


def test_a_run_is_accepted_then_running_then_waiting_then_over() -> None:
    at = accepted(BOTH)
    assert at.run.status == "accepted"
    at.go(RunStarted())
    assert at.run.status == "running", "a call to a model is under way"
    at.answer("a#1")
    assert (at.run.status, at.run.lifecycle) == ("waiting", "running")
    at.vote("g#1", "approve")
    assert (at.run.status, at.run.terminal) == ("completed", True)


def test_a_run_waits_no_longer_when_it_is_about_to_end() -> None:
    at = play(BOTH).answer("a#1")
    assert at.feed(RunCancelRequested("enough")).run.status == "running"
    at = play(BOTH)
    assert at.feed(NodeFailed("a#1", ERROR)).run.status == "running"


def test_a_run_that_only_queues_for_a_place_is_running() -> None:
    at = play(compiled([plain("s"), gate("g"), llm("a"), llm("b")], "s>g s>a s>b", max_parallelism=1, output_key="g"))
    assert (at.run.status, list(at.run.queue)) == ("running", ["b#1"])


def test_open_approvals_are_those_nobody_has_decided_oldest_first() -> None:
    at = play(compiled([plain("s"), gate("g"), gate("h")], "s>g s>h", output_key="g"))
    assert [one.firing for one in at.run.open_approvals] == ["g#1", "h#1"]
    at.vote("g#1", "approve")
    assert [one.firing for one in at.run.open_approvals] == ["h#1"]


def test_a_firing_is_found_by_its_path_while_it_is_active() -> None:
    at = play(BOTH)
    assert (found := at.run.firing("a#1")) is not None
    assert found.path == "a#1"
    assert [at.run.firing(path) for path in ("a#2", "b#1", "a", "s#1")] == [None] * 4


def test_what_a_driver_has_in_hand_is_not_offered_again() -> None:
    at = play(BOTH)
    assert (list(at.run.out), list(at.run.open)) == (["a#1"], [])


def test_with_a_frame_go_the_moments_set_in_it_and_no_others() -> None:
    run = Run()
    run.until = {"map#1[0]/p#1": 5, "map#1[1]/p#1": 6, "map#1": 7}
    run.let_go("map#1[0]/")
    assert run.until == {"map#1[1]/p#1": 6, "map#1": 7}
