"""What one step becomes: facts, an effect, a gate, or a failure; whatever is raised is a fact."""

from __future__ import annotations

from dataclasses import replace

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.graph import Graph
from agent_graph.core.scheduler import Record, decide
from agent_graph.core.step import call_of
from tests.core.played import accepted, compiled, does, gate, llm, plain, play, router, writes


def test_a_failure_of_a_step_is_a_fact_with_its_code_class_and_details() -> None:
    at = play(compiled([llm("a", "{nothing}")]), {"k": 1})
    (failed,) = at.facts(e.NodeFailed)
    assert (failed.error["code"], failed.error["class"], failed.attempt) == ("PROMPT_VALUE_MISSING", "invalid", 1)
    assert at.calls == {}
    assert at.run.error is not None
    assert (at.run.error["node_id"], at.run.error["node_path"]) == ("a", "a#1")


def test_the_call_a_firing_stands_at_is_told_and_nothing_changes() -> None:
    graph = compiled([llm("a", "say {input}"), llm("b", "more")], "a>b")
    at = play(graph, "x")
    before = checkpoint.dump(at.run)
    firing = at.run.firing("a#1")
    assert firing is not None
    call = call_of(at.run, firing)
    assert call == at.calls["a#1"].effect
    assert checkpoint.dump(at.run) == before
    at = play(compiled([gate("ok")]), "x")
    waits = at.run.firing("ok#1")
    assert waits is not None
    assert call_of(at.run, waits) is None


def broken(graph: Graph) -> Graph:
    """A node whose prepared part is not what its type made."""
    return replace(graph, nodes=(replace(graph.nodes[0], prepared=None),))


def test_a_bug_in_a_node_is_its_failure_and_not_raised() -> None:
    at = play(broken(compiled([llm("a")])))
    assert at.run.error is not None
    assert (at.run.error["code"], at.run.error["class"], "details" in at.run.error) == ("INTERNAL", "bug", False)
    assert "node type llm" in str(at.run.error["message"])


def test_a_gate_is_opened_under_an_id_of_its_run_firing_and_round() -> None:
    at = play(compiled([gate("g", expiry_ms=9)]), {"x": 1})
    (opened,) = at.facts(e.ApprovalOpened)
    assert opened.approval_id.startswith("apr-")
    assert (opened.round, opened.subject, opened.expiry_ms) == (1, {"x": 1}, 9)
    again = accepted(at.graph, {"x": 1})
    again.run.run_id = "run-2"
    again.go(e.RunStarted())
    assert again.facts(e.ApprovalOpened)[0].approval_id != opened.approval_id


def test_a_conflict_is_told_when_the_firing_where_it_met_starts() -> None:
    graph = compiled(
        [plain("s"), router("r1", "k", {"1": ["a"]}, default=[]), router("r2", "k", {"2": ["b"]}, default=[]),
         writes("a", x=1), writes("b", x=2), plain("end")],
        "s>r1 s>r2 a>end b>end", output_key="x",
    )  # fmt: skip
    at = play(graph, {"k": "12"})
    (conflict,) = at.facts(e.WriteConflict)
    assert (conflict.firing, conflict.key, conflict.winner, conflict.losers) == ("end#1", "x", "b#1", ("a#1",))
    assert at.told.index("write_conflict") < at.told.index("node_finished", at.told.index("write_conflict"))


def test_facts_of_a_step_that_the_log_holds_already_are_not_told_again() -> None:
    at = accepted(compiled([router("r", "k", {}, default=["a"]), does("a", {"op": "delete", "path": "k"})]), {"k": 1})
    at.feed(e.RunStarted(), e.NodeStarted("r#1"), e.RouteTaken("r#1", "default", ("a",)))
    assert decide(at.graph, at.run) == (Record(e.NodeFinished("r#1", targets=("a",))),)
