"""What came of a firing or a run: sizes, facts, state and result."""

from __future__ import annotations

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import Done, Warning_, Write
from agent_graph.core.firing import Firing
from agent_graph.core.frames import Frame
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.outcome import check_bounds, final_state, finished, output_path, state, to_done
from agent_graph.core.run import Run
from agent_graph.errors import NodeFailure
from tests.core.played import accepted, compiled, gate, llm, plain, play, router, shape, writes


def firing(wires: str = "0>1", ends: tuple[int, ...] = ()) -> Firing:
    return Firing(Frame(shape(wires, ends=ends)), 0, "n0#1", 1, 1, 0, (), False)


def test_a_firing_tells_warnings_exhaustion_and_way_before_it_is_finished() -> None:
    done = Done(targets=(), transition="limit", exhausted=3, warnings=(Warning_("W", "w"),))
    assert finished(firing(), done, 2) == [
        e.Warned("n0#1", "W", "w"), e.LoopExhausted("n0#1", 3), e.RouteTaken("n0#1", "limit", ("END",)),
        e.NodeFinished("n0#1", targets=(), attempt=2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wires", "ends", "ways"),
    [("0>1 0>2", (), ("n1", "n2")), ("0>1", (0,), ("n1", "END")), ("1>2", (), ("END",))],
)
def test_a_way_without_targets_of_its_own_is_that_of_the_out_edges(
    wires: str, ends: tuple[int, ...], ways: tuple[str, ...]
) -> None:
    facts = finished(firing(wires, ends), Done(transition="approve"), 1)
    assert facts[0] == e.RouteTaken("n0#1", "approve", ways)


def test_what_a_step_said_is_kept_exactly_null_and_nothing_apart() -> None:
    for done in (
        Done(),
        Done(output=None, current=None, targets=(), inputs={"a": None}),
        Done(writes=(Write("set", ("a",), 1), Write("delete", ("b", "c")))),
    ):
        assert to_done(finished(firing(), done, 1)[-1]) == done  # type: ignore[arg-type]  # the last is NodeFinished


BIG = "x" * (DEFAULTS.value_bytes + 1)


@pytest.mark.parametrize(
    ("done", "what"),
    [
        (Done(writes=(Write("set", ("a", "b"), [BIG]),)), "a.b"),
        (Done(writes=(Write("set", ("a",), {"k": BIG}),)), "a"),
        (Done(output=BIG), "its output"),
    ],
)
def test_a_value_beyond_the_limit_is_not_written(done: Done, what: str) -> None:
    with pytest.raises(NodeFailure, match=f"{what} would be larger") as refused:
        check_bounds(Run(), firing(), done)
    assert refused.value.code == "VALUE_TOO_LARGE"


def test_a_long_text_within_the_limit_is_written() -> None:
    check_bounds(Run(), firing(), Done(output="x" * (DEFAULTS.value_bytes - 2)))


def test_a_run_that_was_not_accepted_has_no_state_and_no_result() -> None:
    assert (state(Run()), final_state(Run())) == ({}, ())


def test_the_result_of_a_live_run_is_not_there_yet_but_its_state_is() -> None:
    at = play(compiled([writes("a", k=1), llm("b")], "a>b"))
    assert (state(at.run), final_state(at.run)) == ({"k": 1}, ())
    at.answer("b#1", "done")
    assert final_state(at.run) == ("done",)


def test_a_declared_result_is_read_where_it_was_declared_and_may_be_null() -> None:
    at = play(compiled([writes("a", k={"x": None})], output_key="k.x"))
    assert final_state(at.run) == (None,)


def test_the_result_is_what_the_node_wrote_at_which_the_run_ended() -> None:
    choice = router("r", "which", {"key": ["key"], "plain": ["plain"]}, default=["gate"])
    nodes = [choice, llm("key", output_key="answer"), llm("plain"), gate("gate")]
    graph = compiled(nodes, "key>END plain>END gate>END")
    assert graph.output.by_end == {"key": "answer", "plain": "", "gate": "gate"}
    ended = {which: play(graph, {"which": which}) for which in ("key", "plain", "gate")}
    assert final_state(ended["key"].answer("key#1", "K").run) == ("K",)
    assert final_state(ended["plain"].answer("plain#1", "P").run) == ("P",)
    (decided,) = final_state(ended["gate"].vote("gate#1", "approve").run)
    assert isinstance(decided, dict)
    assert decided["decision"] == "approve"
    assert output_path(accepted(graph).run.frames[""]) == ""


def test_the_state_of_a_completed_run_is_what_all_ends_wrote_together() -> None:
    at = play(compiled([plain("s"), writes("a", x=1), writes("b", y=2)], "s>a s>b", output_key="x"), {"in": 0})
    assert (at.run.status, state(at.run)) == ("completed", {"in": 0, "x": 1, "y": 2})


def test_the_state_of_a_failed_run_is_that_of_all_its_finished_firings() -> None:
    at = play(compiled([plain("s"), writes("a", x=1), llm("b")], "s>a s>b", output_key="x")).fail("b#1")
    assert (at.run.status, state(at.run), final_state(at.run)) == ("failed", {"x": 1}, ())
