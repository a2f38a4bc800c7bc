"""What waits for the clock or for a message: nothing comes twice, nothing is lost, nothing holds a place."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import checkpoint, signals, waits
from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph
from agent_graph.core.record import canonical_record
from agent_graph.core.render import mermaid
from agent_graph.core.signals import deliver
from agent_graph.core.ways import ways
from agent_graph.errors import AgentGraphError
from tests.core.played import Played, accepted, compiled, folded, gate, llm, plain, play, sub


def timer(name: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "timer", "config": config}


def signal(node_id: str, **config: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "signal", "config": config}


def after(at: Played, at_ms: int) -> Played:
    """The clock says `at_ms`, and somebody looks."""
    at.at_ms = at_ms
    return at.go(*waits.due(at.run, at_ms))


def send(at: Played, name: str, payload: Any = "hi") -> Played:
    return at.go(deliver(at.graph, at.run, name, payload, by="ann", via="cli"))


WAITS = compiled([timer("a", delay_ms=500), plain("z")], "a>z z>END")


def test_a_timer_waits_from_the_moment_its_turn_comes() -> None:
    at = play(WAITS)
    assert (at.run.status, waits.next_due_ms(at.run), waits.wake_ms(at.run)) == ("waiting", 1_500, 1_500)
    assert at.told[-2:] == ["node_started", "timer_set"]
    assert after(at, 1_499).run.status == "waiting"
    assert after(at, 1_500).run.status == "completed"
    assert at.told.count("timer_fired") == 1
    assert (waits.due(at.run, 10**15), waits.next_due_ms(at.run), waits.wake_ms(at.run)) == ((), None, None)


def test_a_timer_that_is_told_twice_fires_once() -> None:
    at = play(compiled([timer("a", delay_ms=5), llm("m")], "a>m m>END"))
    at.go(e.TimerFired("a#1"), e.TimerFired("a#1"), e.TimerSet("gone#1", 5))
    at.go(e.SignalAwaited("gone#1", "x"), e.SignalReceived("x", 1, "gone#1"))
    assert list(at.calls) == ["m#1"]
    assert at.run.waits == {}


def test_a_moment_in_the_past_has_come() -> None:
    at = play(compiled([timer("a", until="2020-01-01T00:00:00Z")], "a>END"))
    at.at_ms = 1_900_000_000_000
    assert [fact.firing for fact in waits.due(at.run, at.at_ms)] == ["a#1"]


def test_a_clock_that_went_back_only_waits_longer() -> None:
    at = play(WAITS)
    assert waits.due(at.run, 3) == ()
    assert waits.next_due_ms(at.run) == 1_500


def test_two_moments_come_in_their_order() -> None:
    graph = compiled(
        [plain("s"), timer("late", delay_ms=9), timer("soon", delay_ms=3)], "s>late s>soon", output_key="x"
    )
    at = play(graph)
    assert [fact.firing for fact in waits.due(at.run, 10_000)] == ["soon#1", "late#1"]


def test_timers_and_messages_hold_no_place_of_the_run() -> None:
    graph = compiled(
        [plain("s"), timer("a", delay_ms=9), signal("b"), llm("m"), llm("n")], "s>a s>b s>m s>n", max_parallelism=1,
        output_key="x",
    )  # fmt: skip
    at = play(graph)
    assert (list(at.calls), at.run.places, at.run.status) == (["m#1"], 1, "running")


def test_while_a_run_stands_still_no_moment_comes_and_then_it_comes_late() -> None:
    graph = compiled([plain("s"), timer("a", delay_ms=9), llm("m")], "s>a s>m", output_key="x")
    at = play(graph).go(e.RunInterrupted("stopped"))
    assert waits.due(at.run, 10**9) == ()
    at.calls.clear()
    at.go(e.RunResumed())
    assert [fact.firing for fact in waits.due(at.run, 10**9)] == ["a#1"]


@pytest.mark.parametrize("end", ["cancel", "failure"])
def test_the_end_of_the_run_is_the_end_of_its_waits(end: str) -> None:
    graph = compiled([plain("s"), timer("a", delay_ms=9), signal("b"), llm("m")], "s>a s>b s>m", output_key="x")
    at = play(graph)
    if end == "cancel":
        at.cancel()
    else:
        at.fail("m#1")
    assert at.run.terminal
    assert (at.run.waits, waits.due(at.run, 10**9), waits.wake_ms(at.run)) == ({}, (), None)
    assert {fact.firing for fact in at.facts(e.FiringCancelled)} >= {"a#1", "b#1"}
    with pytest.raises(AgentGraphError) as refused:
        deliver(graph, at.run, "b", 1, by="", via="")
    assert refused.value.code == "RUN_TERMINAL"


def test_gates_tell_themselves_when_they_are_over() -> None:
    at = play(compiled([plain("s"), gate("g", expiry_ms=70), timer("a", delay_ms=90)], "s>g s>a", output_key="g"))
    assert (waits.wake_ms(at.run), waits.next_due_ms(at.run)) == (1_090, 1_090)


# -- messages ------------------------------------------------------------------------------------------------------


PAID = compiled([signal("a", name="paid", output_key="paid")], "a>END", output_key="paid")


def test_a_message_reaches_who_waits_for_its_name() -> None:
    at = play(PAID)
    assert (at.run.status, waits.next_due_ms(at.run)) == ("waiting", None)
    send(at, "paid", {"amount": 3})
    record = canonical_record(PAID, at.log)
    assert (record["status"], record["final_state"]) == ("completed", [{"amount": 3}])
    (came,) = at.facts(e.SignalReceived)
    assert (came.firing, came.by, came.via) == ("a#1", "ann", "cli")


def test_messages_that_come_early_are_kept_and_taken_in_their_order() -> None:
    graph = compiled(
        [signal("a", name="x", output_key="a"), signal("b", name="x", output_key="b")], "a>b b>END", output_key="b"
    )
    at = accepted(graph)
    for word in ("first", "second", "third"):
        send(at, "x", word)
    assert at.run.mail == {"x": ["first", "second", "third"]}
    at.go(e.RunStarted())
    assert canonical_record(graph, at.log)["state"] == {"a": "first", "b": "second"}
    assert at.run.mail == {"x": ["third"]}


def test_the_last_kept_message_leaves_nothing_behind() -> None:
    at = send(accepted(PAID), "paid")
    at.go(e.RunStarted())
    assert (at.run.status, at.run.mail) == ("completed", {})


def test_of_two_that_wait_the_one_that_waits_longer_gets_it() -> None:
    nodes = [plain("s"), llm("m"), signal("b", name="x", output_key="b"), signal("a", name="x", output_key="a")]
    graph = compiled(nodes, "s>m s>a m>b a>END b>END", output_key="a")
    at = play(graph).answer("m#1")
    assert list(at.run.waits) == ["a#1", "b#1"]
    send(at, "x", 1)
    assert list(at.run.waits) == ["b#1"]
    send(at, "x", 2)
    assert canonical_record(graph, at.log)["state"] == {"a": 1, "b": 2}


def test_a_transient_name_takes_nothing_that_was_sent_before() -> None:
    graph = compiled([llm("m"), signal("a", buffer=False), signal("b", name="a")], "m>a a>b b>END")
    at = send(play(graph), "a", "early")
    at.answer("m#1")
    assert (list(at.run.waits), at.run.mail) == (["a#1"], {"a": ["early"]})
    send(at, "a", "now")
    assert at.run.status == "completed", "b keeps what comes early, and takes it"


def refused(at: Played, name: str, payload: Any = "hi") -> AgentGraphError:
    """The refusal of a message, which has changed nothing."""
    before = checkpoint.dump(at.run)
    with pytest.raises(AgentGraphError) as error:
        deliver(at.graph, at.run, name, payload, by="ann", via="cli")
    assert checkpoint.dump(at.run) == before
    return error.value


def test_what_nobody_can_take_is_refused_and_says_why() -> None:
    graph = compiled([llm("m"), signal("paid", buffer=False, schema={"type": "object"})], "m>paid paid>END")
    at = play(graph)
    unknown = refused(at, "payed", {})
    assert (unknown.code, unknown.details["known"]) == ("SIGNAL_NOT_FOUND", ["paid"])
    assert 'did you mean "paid"?' in unknown.message
    assert refused(at, "paid", {}).code == "SIGNAL_NOT_AWAITED"
    at.answer("m#1")
    wrong = refused(at, "paid", "text")
    assert (wrong.code, wrong.details["violations"]) == (
        "INPUT_INVALID",
        ["at the top: 'text' is not of type 'object'"],
    )
    assert refused(at, "paid", {"x": "y" * (4 * 2**20)}).code == "INPUT_TOO_LARGE"
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    assert refused(at, "paid", deep).code == "INPUT_TOO_DEEP"
    assert refused(at, "paid", {"n": float("nan")}).code == "INPUT_INVALID"
    send(at, "paid", {})
    assert refused(at, "paid", {}).code == "RUN_TERMINAL"


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "KEPT", 2)
    at = send(send(accepted(PAID), "paid"), "paid")
    full = refused(at, "paid")
    assert (full.code, full.details["kept"]) == ("SIGNAL_BUFFER_FULL", 2)


def test_no_message_opens_a_gate() -> None:
    graph = compiled([plain("s"), gate("g"), signal("a")], "s>g s>a", output_key="g")
    at = play(graph)
    assert refused(at, "g").code == "SIGNAL_NOT_FOUND"
    send(at, "a", {"decision": "approve"})
    assert [open_.status for open_ in at.run.open_approvals] == ["pending"]


@pytest.mark.parametrize(("late", "way"), [(True, ["y"]), (False, ["z"])])
def test_a_message_that_does_not_come_in_time_leads_elsewhere(late: bool, way: list[str]) -> None:
    nodes = [signal("a", expiry_ms=50, on_expire={"goto": ["y"]}), plain("y"), plain("z")]
    graph = compiled(nodes, "a>z y>END z>END", output_key="input")
    at = play(graph, {"input": 1})
    assert waits.wake_ms(at.run) == 1_050
    after(at, 1_050) if late else send(at, "a")
    assert [fact.targets for fact in at.facts(e.RouteTaken)] == [tuple(way)]
    assert at.run.status == "completed"


def test_without_a_way_out_a_message_that_does_not_come_fails_the_run() -> None:
    at = after(play(compiled([signal("a", expiry_ms=50)], "a>END")), 1_050)
    assert (at.run.status, at.run.error and at.run.error["code"]) == ("failed", "SIGNAL_EXPIRED")


def test_a_message_that_comes_in_the_moment_it_is_too_late_is_kept_for_nobody() -> None:
    at = play(compiled([signal("a", expiry_ms=50), llm("m")], "a>m m>END", output_key="x"))
    after(at, 1_050)
    assert refused(at, "a").code == "RUN_TERMINAL"


def test_messages_of_one_name_have_one_schema() -> None:
    spec = {
        "name": "g", "entry": "a", "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
        "nodes": [signal("a", name="x"), signal("b", name="x", schema={"type": "object"}), signal("c", name="y")],
    }  # fmt: skip
    (issue,) = [one for one in compile_graph(spec).issues if one.severity == "error"]
    assert (issue.code, issue.pointer, issue.related) == ("FIELD_CONFLICT", "/nodes/1/config/schema", ("/nodes/0",))
    spec["nodes"][0]["config"]["schema"] = {"type": "object"}  # type: ignore[index]  # a node
    assert compile_graph(spec).graph is not None


def test_a_message_reaches_a_graph_inside() -> None:
    inner = compiled([signal("s", name="x", schema={"type": "integer"}, output_key="m")], name="inner", output_key="m")
    middle = compiled([sub("u", "inner", output_key="m")], name="middle", output_key="m", inner=[inner])
    at = play(compiled([sub("v", "middle", output_key="o")], output_key="o", inner=[middle]))
    with pytest.raises(AgentGraphError, match="does not fit") as refused:
        send(at, "x", "no")
    assert (refused.value.code, [*at.run.waits]) == ("INPUT_INVALID", ["v#1/u#1/s#1"])
    assert send(at, "x", 3).run.status == "completed"


def test_graphs_inside_agree_on_the_schema_too() -> None:
    inner = compiled([signal("s", name="x")], name="inner")
    other = compiled([signal("t", name="x", schema={"type": "object"})], name="other")
    stored = {(graph.name, ""): graph for graph in (inner, other)}
    spec: dict[str, Any] = {
        "spec_version": "2", "name": "g", "entry": "a", "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
        "nodes": [signal("a", name="x"), sub("b", "inner"), sub("c", "other")],
    }  # fmt: skip
    found = [(one.code, one.pointer) for one in compile_graph(spec, stored=stored).issues if one.severity == "error"]
    assert ("FIELD_CONFLICT", "/nodes/2/config/graph_name") in found
    assert not any(pointer.startswith("/nodes/1") for _, pointer in found)


def test_a_wait_is_drawn_with_both_its_ways() -> None:
    graph = compiled([signal("a", expiry_ms=5, on_expire={"goto": ["late"]}), plain("late"), plain("z")],
                     "a>z z>END late>END", output_key="x")  # fmt: skip
    found = [(way.target, way.transitions, way.label) for way in ways(graph) if way.source == "a"]
    assert found == [("z", ("received",), ""), ("late", ("expired",), "expired")]
    text = mermaid(graph).text
    assert 'n0>"a"]' in text
    assert '|"expired"|' in text


# -- the log and snapshots -----------------------------------------------------------------------------------------


def test_what_waits_is_the_same_after_a_replay_and_from_a_snapshot() -> None:
    nodes = [plain("s"), timer("t", delay_ms=9), signal("b", name="x"), signal("a", expiry_ms=7), gate("g")]
    graph = compiled(nodes, "s>t s>b s>a s>g t>END b>END a>END g>END", output_key="g")
    at = play(graph)
    send(at, "x", {"n": 10**30})
    send(at, "x", "kept")
    again, loaded = folded(graph, at.log), checkpoint.load(graph, checkpoint.dump(at.run))
    assert again.waits == loaded.waits == at.run.waits
    assert again.mail == loaded.mail == {"x": ["kept"]}
    assert checkpoint.dump(again) == checkpoint.dump(loaded) == checkpoint.dump(at.run)


def test_a_snapshot_between_a_message_and_the_step_that_takes_it_keeps_the_message() -> None:
    at = play(PAID).feed(e.SignalReceived("paid", {"n": 1}, "a#1"))
    loaded = Played(PAID, checkpoint.load(PAID, checkpoint.dump(at.run)))
    assert loaded.go().run.status == "completed"
    timed = play(WAITS).feed(e.TimerFired("a#1"))
    assert Played(WAITS, checkpoint.load(WAITS, checkpoint.dump(timed.run))).go().run.status == "completed"


def test_what_came_of_the_clock_and_which_messages_came_are_recorded_choices() -> None:
    graph = compiled([plain("s"), timer("t", delay_ms=5), signal("m", name="go")], "s>t s>m", output_key="x")

    def choices(*order: str) -> Any:
        at = play(graph)
        for one in order:
            at = after(at, at.at_ms + 10) if one == "clock" else send(at, "go", one)
        return canonical_record(graph, at.log)["choices"]

    received = {"type": "signal_received", "name": "go", "payload": "hi"}
    assert choices("clock", "hi") == choices("hi", "clock") == [received, {"type": "timer_fired", "firing": "t#1"}]
    assert choices("clock") == [{"type": "timer_fired", "firing": "t#1"}]
    error = {"code": "MODEL_TIMEOUT", "message": "no", "class": "timeout"}
    retried = play(compiled([llm("a")], "a>END")).go(e.NodeRetried("a#1", error, 9))
    assert canonical_record(retried.graph, after(retried, 10**6).answer_all().log)["choices"] == []
