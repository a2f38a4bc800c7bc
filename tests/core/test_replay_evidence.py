"""A replay of runs that cite needs no source: the recorded comparison is taken for the citations it was made of."""

from __future__ import annotations

import json
from typing import Any

from agent_graph.core.events import EvidenceChecked
from agent_graph.core.replay import replay
from tests.core.played import Played, compiled, llm, plain, play, router, writes

CLAIM = {"text": "It is so.", "witness_id": "w", "span": {"start": 0, "end": 9}}
SAYS = json.dumps({"claims": [CLAIM]})
NAMED = {"witness_id": "w", "digest": "sha256:0", "locator_digest": "sha256:1"}


def graph(prompt: str = "cite", rule: str = "so", **config: Any) -> Any:
    citing = {"json_mode": True, "output_key": "said", "evidence_required": True, **config}
    router_ = router("r", "said.claims.0.text", {rule: ["yes"]}, default=["no"])
    nodes = [llm("a", prompt, **citing), router_, writes("yes", done=True), writes("no", done=False)]
    return compiled(nodes, "a>r yes>END no>END", output_key="done")


def recorded(**config: Any) -> Played:
    """The first answer cites what is not there, the second stands."""
    run = play(graph(**config)).answer("a#1", SAYS)
    run.calls.pop("a#1")
    run.go(EvidenceChecked("a#1", (NAMED,), ({"code": "WITNESS_TEXT_DIFFERS", "message": "no", "claim": 0},)))
    run.answer("a#1", SAYS)
    run.calls.pop("a#1")
    run.go(EvidenceChecked("a#1", (NAMED,)))
    assert run.run.status == "completed"
    return run


def test_the_same_graph_goes_the_recorded_way() -> None:
    run = recorded()
    replayed = replay(run.graph, run.log, recorded=run.graph)
    assert replayed.same
    assert replayed.asked_otherwise == ()


def test_another_rule_behind_it_goes_another_way_with_the_recorded_answers() -> None:
    run = recorded()
    other = graph(rule="otherwise")
    replayed = replay(other, run.log, recorded=run.graph)
    assert replayed.divergence is not None
    assert replayed.run.status == "completed"
    assert replayed.unanswered == ()


def test_a_graph_that_asks_for_no_evidence_leaves_the_record_at_the_comparison() -> None:
    run = recorded()
    replayed = replay(graph(evidence_required=False), run.log, recorded=run.graph)
    assert replayed.divergence is not None
    assert isinstance(replayed.divergence.recorded, EvidenceChecked)
    assert replayed.run.status == "completed"


def test_a_graph_that_asks_for_evidence_the_record_has_not_says_what_is_missing() -> None:
    plain = play(graph(evidence_required=False)).answer("a#1", SAYS)
    replayed = replay(graph(), plain.log, recorded=plain.graph)
    assert replayed.divergence is not None
    assert [one.firing for one in replayed.unanswered] == ["a#1"]


def test_a_call_that_was_under_way_where_the_ways_part_still_takes_its_recorded_answer() -> None:
    def beside(rule: str) -> Any:
        asked = [plain("f"), llm("a", "A", output_key="x"), llm("b", "B", output_key="y")]
        ways = [router("r", "x", {rule: ["yes"]}, default=["no"]), writes("yes", done=True), writes("no", done=False)]
        nodes = [*asked, *ways]
        return compiled(nodes, "f>a f>b a>r yes>END no>END b>END", output_key="done")

    run = play(beside("ok")).answer("a#1", "ok").answer("b#1", "well")
    assert run.run.status == "completed"
    replayed = replay(beside("never"), run.log, recorded=run.graph)
    assert replayed.divergence is not None
    assert (replayed.run.status, replayed.unanswered) == ("completed", ())
