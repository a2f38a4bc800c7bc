"""The canonical record: what a run is compared by, whatever the order, the time and the attempts."""

from __future__ import annotations

from agent_graph.core import approval
from agent_graph.core import events as e
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import canonical, digest
from agent_graph.core.record import canonical_record
from tests.core.played import Played, accepted, compiled, does, gate, llm, plain, play, stored

PAIR = compiled(
    [plain("s"), llm("a", output_key="ka"), llm("b", output_key="kb"), {"id": "j", "type": "join",
     "config": {"inputs": ["a", "kb", "nobody"], "output": "all"}}],
    "s>a s>b a>j b>j", output_key="all",
)  # fmt: skip


def record(at: Played) -> bytes:
    return canonical(canonical_record(at.graph, at.log))


def test_the_order_of_answers_is_no_part_of_it() -> None:
    one = play(PAIR).answer("a#1", "A").answer("b#1", "B")
    other = play(PAIR).answer("b#1", "B").answer("a#1", "A")
    assert record(one) == record(other)
    body = canonical_record(PAIR, one.log)
    assert [firing["path"] for firing in body["firings"]] == ["s#1", "a#1", "b#1", "j#1"]  # type: ignore[index,union-attr,call-overload]
    assert [firing["depth"] for firing in body["firings"]] == [1, 2, 2, 3]  # type: ignore[index,union-attr,call-overload]
    assert (body["status"], body["error_code"], body["final_state"]) == ("completed", None, [["A", "B", None]])


def test_another_answer_makes_another_record() -> None:
    assert record(play(PAIR).answer_all("A")) != record(play(PAIR).answer_all("B"))


def test_attempts_and_interruptions_are_no_part_of_it() -> None:
    calm = play(PAIR).answer_all()
    stopped = play(PAIR).resume().resume().answer_all()
    assert record(calm) == record(stopped)
    failed, failed_later = play(PAIR).fail("a#1"), play(PAIR).resume().fail("a#1")
    assert record(failed) == record(failed_later)
    assert canonical_record(PAIR, failed.log)["error_code"] == "MODEL_NOT_FOUND"


def test_a_log_read_back_has_the_same_record() -> None:
    at = play(PAIR, {"z": 1.0, "a": [1e16]}).answer_all()
    assert canonical(canonical_record(PAIR, [stored(event) for event in at.log])) == record(at)


def test_what_was_cancelled_and_why_the_frame_failed_are_recorded_choices() -> None:
    choices = canonical_record(PAIR, play(PAIR).fail("a#1").log)["choices"]
    assert choices == [
        {"type": "frame_failed", "error": {
            "code": "MODEL_NOT_FOUND", "message": "no", "class": "not_found", "node_id": "a", "node_path": "a#1",
        }},
        {"type": "firing_cancelled", "firing": "b#1", "reason": "the run failed"},
    ]  # fmt: skip


def decided(graph: Graph, at_ms: int) -> Played:
    at = accepted(graph, {"x": 1})
    at.at_ms = at_ms
    at.go(e.RunStarted())
    (open_,) = at.run.open_approvals
    at.feed(e.ApprovalVoted("g#1", open_.approval_id, {"decision": "approve", "decided_by": "ann"}))
    return at.vote("g#1", "approve")


def test_the_time_of_a_decision_is_no_part_of_it_however_the_decision_was_copied() -> None:
    copy = does(
        "copy", {"op": "append", "path": "kept", "from": "g"}, {"op": "set", "path": "deep", "value": {"at_ms": 5}},
        {"op": "copy", "from": "outputs.g", "path": "deep.down.here"},
    )  # fmt: skip
    graph = compiled([gate("g"), copy, plain("z")], "g>copy copy>z", output_key="deep")
    one, other = decided(graph, 1_000), decided(graph, 99_000)
    assert record(one) == record(other)
    body = canonical_record(graph, one.log)
    decision = {"decision": "approve", "note": "", "by": "ann", "via": "cli", "at_ms": 0}
    assert body["final_state"] == [{"at_ms": 5, "down": {"here": decision}}]
    assert body["approvals"] == [
        {"path": "g#1", "round": 1, "status": "approved", "votes": [{"decision": "approve", "decided_by": "ann"}]}
    ]


def test_routes_are_part_of_it() -> None:
    graph = compiled(
        [{"id": "r", "type": "router", "config": {"default": ["a", "END"]}}, plain("a")], output_key="__input__"
    )
    (first, _) = canonical_record(graph, play(graph).log)["firings"]  # type: ignore[misc]
    assert first["route"] == ["a", "END"]  # type: ignore[index]


def test_a_finish_that_came_too_late_is_no_firing() -> None:
    at = play(PAIR).cancel()
    before = record(at)
    at.feed(e.NodeFinished("a#1", output=("late",)))
    assert record(at) == before


def test_what_a_vote_on_a_budget_is_about_is_no_part_of_it_and_what_a_gate_asks_is() -> None:
    spent = compiled([llm("a")], output_key="outputs.a", budgets={"max_llm_calls": 1, "on_budget": "pause"})
    tokens = []
    for used in (3, 40):
        at = play(spent)
        at.feed(
            e.ApprovalOpened("on_budget", "apr-x", 1, "more?", {"used": used}, f"sha256:{used}", (), ("approve",), 5)
        )
        ballot = {"decision": "approve", "decided_by": "ann", "via": "cli", "subject_digest": f"sha256:{used}"}
        tokens.append(record(at.feed(e.ApprovalVoted("on_budget", "apr-x", ballot))))
    assert tokens[0] == tokens[1]
    gated = compiled([gate("g")], "g>END", output_key="g")
    (vote,) = canonical_record(
        gated,
        play(gated, "x")
        .feed(
            *approval.vote(
                play(gated, "x").run,
                play(gated, "x").run.open_approvals[0].approval_id,
                approval.Ballot("approve", "ann", "cli"),
                now_ms=5,
            )
        )
        .log,
    )["approvals"][0]["votes"]  # type: ignore[index,call-overload]
    assert vote["subject_digest"] == digest("x")  # type: ignore[index,call-overload]
