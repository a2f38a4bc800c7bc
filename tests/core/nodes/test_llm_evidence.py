"""`llm` with `evidence_required`: what the answer cites is checked before it is taken, and mended like any other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.core.effects import CallModel, CheckEvidence, Citation, EvidenceAnswer, ModelAnswer
from agent_graph.core.events import EvidenceChecked, NodeFailed, NodeRetried, NodeStarted, RunInterrupted, RunResumed
from agent_graph.core.record import canonical_record
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, node, step
from tests.core.played import Played, compiled, folded, llm, play

CLAIM = {"text": "It is so.", "witness_id": "w", "span": {"start": 0, "end": 9}}
CITES = json.dumps({"claims": [CLAIM]})
OF = node("llm", json_mode=True, evidence_required=True)
FOUND = EvidenceAnswer(({"witness_id": "w", "digest": "sha256:0", "locator_digest": "sha256:1"},))
DIFFERS = EvidenceAnswer(FOUND.witnesses, ({"code": "WITNESS_TEXT_DIFFERS", "message": "claims[0]: no", "claim": 0},))
GRAPH = compiled([llm("a", json_mode=True, evidence_required=True)], "a>END")


def asked(*answers: Any, **config: Any) -> Any:
    of = node("llm", json_mode=True, evidence_required=True, **config)
    return step(of, Seen(), answers)


def test_the_call_says_that_its_answer_has_to_be_checked() -> None:
    assert asked().cites
    assert not step(node("llm"), Seen()).cites


def test_what_an_answer_cites_is_compared_before_it_is_taken() -> None:
    assert asked(ModelAnswer(CITES)) == CheckEvidence((Citation(0, "w", 0, 9, "It is so."),))
    done = asked(ModelAnswer(CITES), FOUND)
    assert (done.output, done.warnings) == ({"claims": [CLAIM]}, ())


def test_an_answer_without_claims_is_mended_and_no_source_looked_at() -> None:
    call = asked(ModelAnswer("{}"))
    assert isinstance(call, CallModel)
    assert "at least one claim" in str(call.messages[-1]["content"])
    assert call.format == "json"


def test_the_model_is_told_what_does_not_stand_there_and_may_mend_it() -> None:
    call = asked(ModelAnswer(CITES), DIFFERS)
    assert "- claims[0]: no" in str(call.messages[-1]["content"])
    assert isinstance(asked(ModelAnswer(CITES), DIFFERS, ModelAnswer(CITES)), CheckEvidence)
    done = asked(ModelAnswer(CITES), DIFFERS, ModelAnswer(CITES), FOUND)
    (warning,) = done.warnings
    assert warning.code == "MODEL_ANSWER_MENDED"
    assert (warning.details["reason"], warning.details["codes"]) == ("evidence", ["WITNESS_TEXT_DIFFERS"])


@pytest.mark.parametrize("before", [(), (ModelAnswer("{}"),)])
def test_an_answer_that_cannot_be_proven_fails_the_attempt(before: Any) -> None:
    with pytest.raises(NodeFailure) as failed:
        asked(*before, ModelAnswer(CITES), DIFFERS, repair=len(before))
    error = failed.value
    assert (error.code, error.failure_class, error.details["reason"]) == ("MODEL_BAD_REPLY", "bad_reply", "evidence")
    assert error.details["codes"] == ["WITNESS_TEXT_DIFFERS"]
    assert error.details["problems"] == ["claims[0]: no"]


def checked(run: Played, answer: EvidenceAnswer = FOUND, **more: Any) -> Played:
    call = run.calls.pop("a#1")
    return run.go(EvidenceChecked("a#1", answer.witnesses, answer.problems, more.get("attempt", call.attempt)))


def test_the_verdict_is_in_the_log_so_a_fold_needs_no_source() -> None:
    run = checked(play(GRAPH).answer("a#1", CITES))
    assert run.run.status == "completed"
    assert folded(GRAPH, run.log).status == "completed"
    (firing,) = canonical_record(GRAPH, run.log)["firings"]  # type: ignore[misc]  # a list
    assert firing["evidence"] == list(FOUND.witnesses)  # type: ignore[index,call-overload]  # an object


def test_a_check_under_way_when_its_process_ended_is_made_again_and_the_model_not_asked() -> None:
    run = play(GRAPH).answer("a#1", CITES)
    again = Played(GRAPH, checkpoint.load(GRAPH, checkpoint.dump(run.run)), list(run.log))
    again.go(RunInterrupted("gone"), RunResumed())
    assert isinstance(again.calls["a#1"].effect, CheckEvidence)
    assert checked(again).run.status == "completed"
    assert again.run.usage.llm_calls == 1
    assert [fact.attempt for fact in again.facts(NodeStarted)] == [1, 2]


def test_a_snapshot_keeps_the_verdict() -> None:
    run = checked(play(GRAPH).answer("a#1", CITES), DIFFERS)
    loaded = checkpoint.load(GRAPH, checkpoint.dump(run.run))
    firing = loaded.firing("a#1")
    assert firing is not None
    assert firing.answers[1] == DIFFERS


def test_a_verdict_about_what_is_no_longer_there_changes_nothing() -> None:
    run = play(GRAPH).answer("a#1", CITES)
    run.feed(EvidenceChecked("gone#1"), EvidenceChecked("a#1", attempt=9))
    firing = run.run.firing("a#1")
    assert firing is not None
    assert len(firing.answers) == 1


def test_an_attempt_that_failed_leaves_no_verdict_to_the_next() -> None:
    run = checked(play(GRAPH).answer("a#1", CITES), DIFFERS)
    run.answer("a#1", CITES)
    run = checked(run, DIFFERS)
    assert run.facts(NodeRetried)
    assert run.run.pausing
    run.feed(EvidenceChecked("a#1", FOUND.witnesses))
    firing = run.run.firing("a#1")
    assert firing is not None
    assert firing.answers == []
    assert run.facts(NodeFailed) == []


def test_a_node_that_failed_or_cites_nothing_names_no_witness_in_the_record() -> None:
    run = play(compiled([llm("a")], "a>END")).answer("a#1", "ok")
    (firing,) = canonical_record(run.graph, run.log)["firings"]  # type: ignore[misc]  # a list
    assert "evidence" not in firing  # type: ignore[operator]  # an object
