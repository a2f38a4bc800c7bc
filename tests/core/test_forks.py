"""A fork in the pure core: times, budgets, what is gone, and what a snapshot keeps of it."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import checkpoint, fork_questions, forking
from agent_graph.core import events as e
from agent_graph.core.fork_changes import Changes
from agent_graph.core.fork_outputs import Past
from agent_graph.core.outcome import state
from agent_graph.core.record import canonical_record
from agent_graph.core.run import Run
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.errors import ForkPointInvalid
from tests.core.test_following import drive, graph_of
from tests.properties.driver import Drive, orders, start
from tests.properties.world import World
from tests.specs import gate, join, llm, node, passthrough, put, spec

LATER = 1_000_000


def fork(drive_: Drive, count: int, *, now_ms: int = LATER, **changes: Any) -> Run:
    """The fold of a fork after so many events, as a snapshot keeps it."""
    made = forking.fork(
        drive_.graph, drive_.log, forking.Point(count), origin=drive_.graph,
        forker=fork_questions.Forker("fork", "cli"), changes=Changes(**changes), now_ms=now_ms,
    )  # fmt: skip
    again = checkpoint.load(drive_.graph, checkpoint.dump(made.run))
    assert checkpoint.dump(again) == checkpoint.dump(made.run)
    return again


def test_bounds_of_time_go_on_with_what_was_left_and_timers_keep_their_moment() -> None:
    graph = graph_of(spec(
        passthrough("s"), node("t", "timer", delay_ms=50), node("w", "signal", name="go", expiry_ms=60),
        node("p", "parallel", for_each={"path": "items"}, entry="i", join="j", timeout_ms=70, output_key="all"),
        node("i", "signal", name="never"), node("j", "join", inputs=["i"]), llm("a"),
        node("f", "parallel", branches=[{"id": "x", "entry": "bx"}], join="fj", timeout_ms=80, fail_policy="ignore"),
        node("bx", "signal", name="never"), join("fj", ["bx"], "fx"), put("z", said=1),
        edges="s>t s>w s>p s>a s>f i>j bx>fj t>z w>z j>z a>z fj>z z>END", output_key="said",
    ))  # fmt: skip
    one = start(graph, {"items": ["x"]}, World(1), orders(0)["fifo"])
    one.do_all()
    one.record(e.NodeRetried("a#1", {"code": "X", "message": "", "class": "timeout"}, 40, 1))
    run = fork(one, len(one.log))
    before, later = one.run, LATER - one.run.at_ms
    assert {path: wait.due_ms for path, wait in run.waits.items()} == {
        "t#1": before.waits["t#1"].due_ms,
        "w#1": before.waits["w#1"].due_ms + later,  # type: ignore[operator]  # it has one
        "p#1": before.waits["p#1"].due_ms + later,  # type: ignore[operator]  # as above
        "p#1[0]/i#1": None,
        "bx#1": None,
    }
    assert run.pausing == {"a#1": before.pausing["a#1"] + later}
    assert run.until == {path: due_ms + later for path, due_ms in before.until.items()}
    assert run.until
    assert (run.accepted_at_ms, run.started_at_ms) == (LATER, LATER)


def test_budgets_and_usage_start_anew_and_what_was_refused_asks_again() -> None:
    graph = graph_of(spec(
        llm("a"), llm("b", output_key="said"), edges="a>b b>END", output_key="said",
        budgets={"max_llm_calls": 1, "max_wall_clock_ms": 500, "on_budget": "pause"},
    ))  # fmt: skip
    one = start(graph, {}, World(1, silent=1.0), orders(0)["fifo"])
    one.do_all()
    one.answer("a#1")
    one.do_all()
    assert [gate_.firing for gate_ in one.run.open_approvals] == ["on_budget"]
    run = fork(one, len(one.log))
    assert run.ledger is not None
    assert (run.ledger.calls, run.ledger.parked, run.ledger.refused) == (0, {}, "")
    assert run.ledger.deadline_ms == LATER + 500
    assert [gate_.firing for gate_ in run.gates.values()] == ["on_fork"], "more was asked for, and nobody has said yes"
    assert run.fork is not None
    assert (run.usage.llm_calls, run.fork.inherited.llm_calls) == (0, 1)
    assert [*run.queue, *run.open] == ["b#1"]


def test_a_key_can_be_taken_out_and_one_that_branches_wrote_be_overwritten() -> None:
    graph = graph_of(spec(
        passthrough("s"), put("a", k=["a"]), put("b", k=["b"]), llm("c", "{k|json}", output_key="kc"),
        join("m", ["a", "b", "kc"], "met"), edges="s>a s>b s>c a>m b>m c>m m>END", output_key="met",
        reducers={"k": "append"},
    ))  # fmt: skip
    one = start(graph, {"gone": 1, "k": []}, World(1), orders(0)["fifo"])
    one.do_all()
    assert state(one.run)["k"] == ["a", "b"]
    run = fork(one, len(one.log), patch=({"op": "replace", "path": "/k", "value": ["new"]},
                                         {"op": "remove", "path": "/gone"}))  # fmt: skip
    assert state(run) == {"k": ["new"]}
    made = forking.fork(
        graph, one.log, forking.Point(len(one.log)), origin=graph, forker=fork_questions.Forker("fork", "cli"),
        changes=Changes(patch=({"op": "replace", "path": "/k", "value": ["new"]},)), now_ms=LATER,
    )  # fmt: skip
    again = Drive(graph, World(1), orders(0)["fifo"], run=made.run, log=[*made.log], sealed=["" for _ in made.log])
    done = again.go()
    assert done.run.lifecycle == "completed"
    assert state(done.run)["k"] == ["new"]
    record = canonical_record(graph, done.log)
    assert {"type": "run_forked", "put": {"k": ["new"]}} in record["choices"]  # type: ignore[operator]  # a list


def test_a_run_that_failed_at_no_node_says_so() -> None:
    graph = graph_of(spec(passthrough("a"), put("b", other=1), edges="a>b b>END", output_key="other"))
    log = drive(graph).log
    failed = [*log[:-1], e.Event(len(log) - 1, 7, e.RunFailed({"code": "OUTPUT_KEY_NOT_WRITTEN", "message": ""}))]
    with pytest.raises(ForkPointInvalid, match="at no node"):
        forking.failed(failed)


def test_a_call_that_failed_at_the_point_is_made_again() -> None:
    graph = graph_of(spec(llm("a", output_key="said"), edges="a>END", output_key="said"))
    one = start(graph, {}, World(1), orders(0)["fifo"])
    one.do_all()
    cut = len(one.log)
    one.record(e.NodeRetried("a#1", {"code": "X", "message": "", "class": "timeout"}, 40, 1))
    run = fork(one, cut)
    assert run.open["a#1"].restart


def test_facts_of_a_fork_about_what_is_not_there_change_nothing() -> None:
    graph = graph_of(spec(gate("g"), edges="g>END"))
    one = drive(graph, world=World(1, silent=1.0))
    for fact in (e.AnswerGiven("a#1", {"text": "x"}), e.ApprovalDecided("on_fork", "apr-x", "approve", "", "a", "cli")):
        before = checkpoint.dump(one.run)
        evolve(graph, one.run, e.Event(one.run.seq, 7, fact))
        one.run.seq -= 1
        assert checkpoint.dump(one.run) == before
    opened = e.ApprovalOpened("on_fork", "apr-y", 0, "", None, "sha256:0", (), ("approve",), 5)
    run = new_run()
    for event in (*one.log, e.Event(len(one.log), 7, opened)):
        evolve(graph, run, event)
    evolve(graph, run, e.Event(run.seq, 7, e.ApprovalDecided("on_fork", "apr-y", "approve", "", "a", "cli")))
    assert run.fork is None


def test_a_question_that_nobody_answers_in_time_ends_the_fork() -> None:
    graph = graph_of(spec(gate("g"), llm("z", output_key="said"), edges="g>z z>END", output_key="said"))
    one = start(graph, {}, World(1), orders(0)["fifo"]).go()
    point = forking.before(one.log, "z", nth=1)
    run = fork(one, point.count, models={"z": "m"})
    (asks,) = run.open_approvals
    assert run.status == "waiting"
    evolve(graph, run, e.Event(run.seq, LATER, e.ApprovalExpired("on_fork", asks.approval_id)))
    assert run.failure is not None
    assert run.failure["code"] == "APPROVAL_EXPIRED"


def test_an_answer_that_was_tried_again_was_not_heard() -> None:
    log = [
        e.Event(0, 1, e.NodeStarted("a#1", 1)), e.Event(1, 1, e.NodeFinished("b#1", (), (), (), None, {}, 1)),
        e.Event(2, 1, e.AnswerGiven("a#1", {"text": "x"}, 1)),
    ]  # fmt: skip
    past = Past(log)
    assert (past.heard, past.over) == ({"a#1", "b#1"}, {"b#1"})
    again = Past([*log, e.Event(3, 1, e.NodeRetried("a#1", {"code": "X", "message": "", "class": "timeout"}, 40, 1))])
    assert again.heard == {"b#1"}
