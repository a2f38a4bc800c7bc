"""END_RUN ends the run: what is under way is cancelled, what had ended counts, who ended it says the result."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import checkpoint, waits
from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph
from agent_graph.core.failure import follow_up
from agent_graph.core.record import canonical_record
from agent_graph.core.render import mermaid
from agent_graph.core.ways import taken
from agent_graph.errors import AgentGraphError
from tests.core.played import Played, compiled, folded, gate, llm, plain, play, router, sub, writes

RACE = compiled(
    [plain("s"), llm("a", output_key="x"), llm("b", output_key="x"), gate("g"), llm("c", output_key="y")],
    "s>a s>b s>g s>c a>END_RUN b>END_RUN g>END c>END", output_key="x",
)  # fmt: skip


def test_the_first_to_reach_it_ends_the_run_with_what_it_wrote() -> None:
    at = play(RACE).answer("b#1", "fast")
    record: Any = canonical_record(RACE, at.log)
    assert (record["status"], record["final_state"], record["state"]) == ("completed", ["fast"], {"x": "fast"})
    assert {fact.firing for fact in at.facts(e.FiringCancelled)} == {"a#1", "g#1", "c#1"}
    assert {fact.reason for fact in at.facts(e.FiringCancelled)} == {"the run was ended"}
    assert [gate_.status for gate_ in at.run.gates.values()] == ["withdrawn"]
    assert [choice["firing"] for choice in record["choices"]] == ["a#1", "g#1", "c#1"]


def test_what_had_ended_before_is_in_the_state_and_what_had_not_is_not() -> None:
    at = play(RACE).answer("c#1", "kept").answer("a#1", "slow")
    assert canonical_record(RACE, at.log)["state"] == {"x": "slow", "y": "kept"}


def test_nothing_starts_after_it() -> None:
    graph = compiled([plain("s"), plain("a"), plain("b"), plain("c")], "s>a s>b a>END_RUN b>c c>END", output_key="in")
    at = play(graph, {"in": 1})
    started = [fact.firing for fact in at.facts(e.NodeStarted)]
    assert started == ["s#1", "a#1"]
    assert at.run.status == "completed"


def test_a_token_that_waits_for_others_is_lost_with_them() -> None:
    graph = compiled(
        [plain("s"), writes("a", x=1), llm("b"), plain("j"), llm("r")], "s>a s>b s>r a>j b>j j>END r>END_RUN",
        output_key="x",
    )  # fmt: skip
    at = play(graph, {"x": 0}).answer("r#1")
    assert canonical_record(graph, at.log)["final_state"] == [0], "a's token had not ended"


@pytest.mark.parametrize(
    "node",
    [
        router("r", "in", {"stop": ["END_RUN"]}, default=["a"]),
        {"id": "r", "type": "human_approval", "config": {"on_reject": ["END_RUN"]}},
        {"id": "r", "type": "signal", "config": {"expiry_ms": 5, "on_expire": {"goto": ["END_RUN"]}}},
        {"id": "r", "type": "llm", "config": {"on_error": {"goto": ["END_RUN"]}}},
    ],
)
def test_it_can_be_chosen_wherever_a_node_chooses(node: dict[str, Any]) -> None:
    graph = compiled([plain("s"), node, llm("m"), plain("a")], "s>r s>m r>a a>END m>END", output_key="in")
    if node["type"] == "router":
        graph = compiled([plain("s"), node, llm("m"), plain("a")], "s>r s>m a>END m>END", output_key="in")
    at = play(graph, {"in": "stop"})
    match node["type"]:
        case "human_approval":
            at.vote("r#1", "reject")
        case "signal":
            at.go(*waits.due(at.run, 10**9))
        case "llm":
            failed = e.NodeFailed("r#1", {"code": "MODEL_NOT_FOUND", "message": "no", "class": "not_found"})
            at.go(follow_up(at.run, failed))
    assert (at.run.status, at.run.usage.nodes) == ("completed", 2 if node["type"] != "llm" else 1)
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["m#1"]


def test_it_may_stand_beside_other_targets() -> None:
    nodes = [router("r", "in", {"stop": ["a", "END_RUN", "END"]}, default=[]), llm("a")]
    at = play(compiled(nodes, "a>END", output_key="in"), {"in": "stop"})
    assert at.run.status == "completed"
    assert at.facts(e.NodeStarted)[-1].firing == "r#1"


def test_a_run_that_is_ended_without_its_result_has_failed() -> None:
    graph = compiled([plain("s"), llm("a", output_key="x"), llm("b")], "s>a s>b a>END b>END_RUN", output_key="x")
    at = play(graph).answer("b#1")
    assert (at.run.status, at.run.error and at.run.error["code"]) == ("failed", "OUTPUT_KEY_NOT_WRITTEN")


def test_the_one_who_ended_it_says_the_result_when_nothing_else_does() -> None:
    nodes = [router("r", "in", {"x": ["a"]}, default=["b"]), llm("a", output_key="x"), llm("b", output_key="y")]
    graph = compiled(nodes, "a>END_RUN b>END")
    for word, firing in (("x", "a#1"), ("z", "b#1")):
        at = play(graph, {"in": word}).answer(firing, "said")
        assert canonical_record(graph, at.log)["final_state"] == ["said"]


def test_between_its_token_and_its_end_a_run_takes_nothing_from_outside() -> None:
    graph = compiled([plain("s"), llm("a"), gate("g"), {"id": "w", "type": "signal"}], "s>a s>g s>w a>END_RUN",
                     output_key="in")  # fmt: skip
    at = play(graph, {"in": 1})
    call = at.calls["a#1"]
    at.feed(e.ModelAnswered("a#1", {"text": "x"}, call.attempt), e.NodeFinished("a#1", (), ("x",), ("x",)))
    from agent_graph.core.approval import Ballot, vote
    from agent_graph.core.signals import deliver

    (open_,) = at.run.open_approvals
    assert (at.run.ending, at.run.status, waits.due(at.run, 10**15)) == (True, "running", ())
    with pytest.raises(AgentGraphError) as late:
        vote(at.run, open_.approval_id, Ballot("approve", "", "cli"), now_ms=5)
    assert late.value.code == "APPROVAL_WITHDRAWN"
    with pytest.raises(AgentGraphError) as refused:
        deliver(graph, at.run, "w", 1, by="", via="")
    assert refused.value.code == "RUN_TERMINAL"
    for cut in range(len(at.log), len(at.log) + 1):
        again = folded(graph, at.log[:cut])
        loaded = checkpoint.load(graph, checkpoint.dump(again))
        assert checkpoint.dump(loaded) == checkpoint.dump(at.run)
        assert Played(graph, loaded).go().run.status == "completed"


def test_no_conflict_is_proved_in_a_graph_that_can_end_the_run() -> None:
    """The second writer may never come to its end."""
    spec = {
        "name": "g", "entry": "s", "output_key": "x", "nodes": [plain("s"), writes("a", x=1), writes("b", x=2)],
        "edges": [{"from": "s", "to": to} for to in "ab"] + [{"from": "a", "to": "END_RUN"}],
    }  # fmt: skip
    made = compile_graph(spec)
    assert made.graph is not None
    assert canonical_record(made.graph, play(made.graph).log)["state"] == {"x": 1}


def test_it_is_drawn_and_counted() -> None:
    at = play(RACE).answer("b#1")
    text = mermaid(RACE).text
    assert 'stop((("END_RUN")))' in text
    assert "n1 --> stop" in text
    counts = taken(RACE, [event.fact for event in at.log])
    assert counts["b", "", "END_RUN"] == 1
    assert ("a", "", "END_RUN") not in counts


# -- in frames -----------------------------------------------------------------------------------------------------


INNER = compiled(
    [plain("s"), llm("a", output_key="x"), llm("slow", output_key="y")], "s>a s>slow a>END_RUN slow>END",
    name="inner", output_key="x",
)  # fmt: skip
OUTER = compiled(
    [plain("s"), sub("sub", "inner", output_key="x"), llm("next"), llm("other")],
    "s>sub s>other sub>next next>END other>END", output_key="x", inner=[INNER],
)  # fmt: skip


def test_inside_a_graph_inside_it_ends_the_run_with_what_that_graph_came_to() -> None:
    at = play(OUTER).answer("sub#1/a#1", "the end")
    record: Any = canonical_record(OUTER, at.log)
    assert (record["status"], record["final_state"]) == ("completed", ["the end"])
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["sub#1/slow#1", "other#1"]
    assert at.facts_of("sub")[0].targets == ("END_RUN",)
    assert ("sub", "", "next") not in taken(OUTER, [event.fact for event in at.log])


def test_a_graph_inside_that_is_ended_without_its_result_fails_its_node() -> None:
    inner = compiled([plain("s"), llm("a"), llm("slow", output_key="y")], "s>a s>slow a>END_RUN slow>END",
                     name="inner", output_key="y")  # fmt: skip
    graph = compiled([sub("sub", "inner", on_error="continue"), llm("next")], "sub>next next>END", inner=[inner])
    at = play(graph).answer("sub#1/a#1")
    assert list(at.calls) == ["sub#1/slow#1", "next#1"] or list(at.calls) == ["next#1"]
    assert at.facts(e.NodeFailed)[0].error["code"] == "OUTPUT_KEY_NOT_WRITTEN"


def test_the_end_of_a_run_from_inside_survives_a_cut_at_every_event() -> None:
    at = play(OUTER).answer("sub#1/a#1", "the end")
    whole = canonical_record(OUTER, at.log)
    for cut in range(2, len(at.log) + 1):
        again = Played(OUTER, checkpoint.load(OUTER, checkpoint.dump(folded(OUTER, at.log[:cut]))), at.log[:cut])
        again.go()
        if "sub#1/a#1" in again.calls:
            again.answer("sub#1/a#1", "the end")
        assert canonical_record(OUTER, again.log) == whole, cut


def test_in_an_item_of_a_fan_out_it_ends_the_run_with_what_the_items_came_to() -> None:
    over = {"id": "m", "type": "parallel", "config": {
        "for_each": {"path": "xs"}, "entry": "pick", "join": "done", "output_key": "all"}}  # fmt: skip
    inner = compiled([llm("w", "{input}", output_key="x")], "w>END_RUN", name="inner", output_key="x")
    nodes = [over, router("pick", "item", {"stop": ["ends"]}, default=["draft"]), llm("draft", output_key="y"),
             sub("ends", "inner", output_key="y"), {"id": "done", "type": "join", "config": {"inputs": ["y"]}},
             llm("last")]  # fmt: skip
    graph = compiled(nodes, "draft>done ends>done done>last last>END", output_key="all", inner=[inner])
    at = play(graph, {"xs": ["a", "stop", "b"]}).answer("m#1[0]/draft#1", "A")
    at.answer("m#1[1]/ends#1/w#1", "the end")
    record: Any = canonical_record(graph, at.log)
    assert record["status"] == "completed", record
    assert [fact.firing for fact in at.facts(e.FiringCancelled)] == ["m#1[2]/draft#1"]
    assert "last#1" not in at.calls
    assert len(record["final_state"][0]) == 2, "the items that had come to their end"
