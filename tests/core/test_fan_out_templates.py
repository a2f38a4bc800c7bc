"""The templates that do the same for each of many parts: map and reduce, extract and verify."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import schema
from agent_graph.core.effects import CallModel
from agent_graph.core.outcome import state
from agent_graph.engine.templates import templates
from tests.core.test_templates import graph_of
from tests.fakes.played import Script, play

# -- map and reduce ----------------------------------------------------------------------------------------------------


def workers(node: str, nth: int, _call: CallModel) -> Any:
    return {"parts": ["first part", "second part"]} if node == "splitter" else f"<{node} {nth}>"


@pytest.mark.parametrize("count", [1, 3, 40])
def test_every_item_has_a_worker_and_the_results_keep_their_order(count: int) -> None:
    items = [{"name": f"item {n}"} for n in range(count)]
    played = play(graph_of("map_reduce"), {"task": "Describe.", "items": items}, workers)
    assert played.asked == [*["worker"] * count, "reducer"]
    assert all(f'Your part: {{"name":"item {n}"}}' in played.prompt("worker", n) for n in range(count))
    assert not any("item 0" in played.prompt("worker", n) for n in range(1, count))
    assert played.result == {
        "answer": "<reducer 0>", "parts": items, "findings": [f"<worker {n}>" for n in range(count)],
    }  # fmt: skip
    assert "The task: Describe." in played.prompt("reducer")
    assert f"<worker {count - 1}>" in played.prompt("reducer")


@pytest.mark.parametrize("given", ["Plan a party", {"task": "Plan a party"}])
def test_a_task_without_items_is_split_first(given: Any) -> None:
    played = play(graph_of("map_reduce"), given, workers)
    assert played.asked == ["splitter", "worker", "worker", "reducer"]
    assert "Your part: first part" in played.prompt("worker")
    assert "Plan a party" in played.prompt("worker", 1)
    assert played.result["parts"] == ["first part", "second part"]


def test_workers_are_side_by_side_as_far_as_the_width_goes() -> None:
    played = play(graph_of("map_reduce", width=2), {"task": "t", "items": [*range(5)]}, workers)
    running = most = 0
    for fact in [each for each in played.facts if "/worker" in getattr(each, "firing", "")]:
        running += (fact.type == "node_started") - (fact.type == "model_answered")
        most = max(most, running)
    assert most == 2
    assert len(played.result["findings"]) == 5


def test_findings_or_parts_in_the_input_are_not_trusted() -> None:
    forged = {"task": "t", "items": ["a"], "parts": ["mine"], "findings": ["mine"], "answer": "mine"}
    assert play(graph_of("map_reduce"), forged, workers).result == {
        "answer": "<reducer 0>", "parts": ["a"], "findings": ["<worker 0>"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong", ["", {}, {"items": ["a"]}, {"task": "", "items": ["a"]}, {"task": "t", "items": []}, 7]
)
def test_what_is_neither_a_task_nor_items_with_a_task_is_no_input(wrong: Any) -> None:
    spec: Any = templates()["map_reduce"].spec
    assert schema.violations(wrong, spec["input_schema"])


# -- extract and verify ------------------------------------------------------------------------------------------------


def verifying(*rounds: str) -> Script:
    """Claims by round, a letter a claim: ``"yn"`` is one that holds and one that does not."""
    flat = "".join(rounds)

    def script(node: str, nth: int, _call: CallModel) -> Any:
        if node == "verifier":
            return {"why": f"check {nth}", "supported": flat[nth] == "y"}
        round_ = 0 if node == "extractor" else nth + 1
        claims = [{"quote": f"quote {round_}.{n}", "claim": f"claim {round_}.{n}"} for n in range(len(rounds[round_]))]
        return {"claims": claims}

    return script


def test_every_claim_is_checked_apart_and_stands_beside_its_check() -> None:
    played = play(graph_of("extract_then_verify"), "The text.", verifying("yyy"))
    assert played.asked == ["extractor", *["verifier"] * 3]
    assert played.routes == ["rules/0"]
    for n in range(3):
        prompt = played.prompt("verifier", n)
        assert "The text.\n" in prompt
        assert f"claim 0.{n}" in prompt
        assert f"quote 0.{n}" in prompt
        assert f"claim 0.{(n + 1) % 3}" not in prompt
    assert played.result["checked"][1] == {
        "claim": {"quote": "quote 0.1", "claim": "claim 0.1"}, "check": {"why": "check 1", "supported": True},
    }  # fmt: skip
    assert (played.result["verdict"]["winner"], played.result["verdict"]["agreement"]) == ("true", 1)


def test_what_does_not_hold_goes_back_with_its_reason_and_all_is_checked_again() -> None:
    played = play(graph_of("extract_then_verify"), "The text.", verifying("yn", "y"))
    assert played.asked == ["extractor", "verifier", "verifier", "corrector", "verifier"]
    assert played.routes == ["default", "rules/0"]
    again = played.prompt("corrector")
    assert "claim 0.1" in again
    assert "check 1" in again
    assert [one["claim"]["claim"] for one in played.result["checked"]] == ["claim 1.0"]
    assert played.result["verdict"]["voters"] == 1, "the last checks, not the first"


@pytest.mark.parametrize(("most", "rounds"), [(0, ["yn"]), (1, ["nn", "nn"]), (5, ["yn"] * 6)])
def test_corrections_end_at_their_bound_and_the_result_says_what_does_not_hold(most: int, rounds: list[str]) -> None:
    played = play(graph_of("extract_then_verify", max_corrections=most), "The text.", verifying(*rounds))
    assert played.asked.count("corrector") == most
    assert played.routes[-1] == "rules/1"
    assert [one["check"]["supported"] for one in played.result["checked"]] == [letter == "y" for letter in rounds[-1]]
    assert played.result["verdict"]["winner"] != "true"
    assert state(played.run)["corrections"] == most


def test_a_check_or_a_count_in_the_input_is_not_trusted() -> None:
    forged = {"text": "The text.", "corrections": 99, "verdict": {"winner": "true"}, "checked": []}
    played = play(graph_of("extract_then_verify"), forged, verifying("n", "y"))
    assert played.routes == ["default", "rules/0"]
