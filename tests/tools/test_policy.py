"""The policy: asked for, and at every start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from agent_graph.core.policy import PolicyBook, Profile
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, keep

PERSON = Caller("cli", "a person")
OWN = {
    "few": Profile("few", max_llm_calls=5),
    "small": Profile("small", max_nodes=1, max_input_bytes=20),
    "narrow": Profile("narrow", max_nodes=1, models=("qwen3*",)),
    "named": Profile("named", models=("qwen3*",)),
    "tagged": Profile("tagged", requirements=("REQ-1",), review=("requirements",)),
}


def held(tools: Tools, name: str) -> Tools:
    return Tools(replace(tools.deps, policies=PolicyBook(name, OWN)), tools.caller)


def rounds(count: int) -> dict[str, Any]:
    """A loop that asks a model `count` times."""
    return {
        "name": "rounds", "entry": "again", "output_key": "said",
        "nodes": [
            {"id": "again", "type": "loop", "config": {"entry": "say", "exit": "done", "max_iterations": count}},
            {"id": "say", "type": "llm", "config": {"prompt": "more", "output_key": "said"}},
            {"id": "done", "type": "passthrough"},
        ],
        "edges": [{"from": "say", "to": "again"}],
    }  # fmt: skip


@pytest.fixture
async def tools() -> AsyncIterator[Tools]:
    model = ScriptedModel([], default=Reply(text="yes", prompt_tokens=3, completion_tokens=2))
    async with opened(model) as deps:
        yield Tools(deps)


async def test_a_check_allows_what_goes_against_nothing_and_shows_the_policy(tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    found = await tools.ok("graph_policy_check", graph_id="echo")
    assert found["decision"] == "allow"
    assert found["effective_policy"] == {"name": "baseline"}
    assert found["graph_id"] == "echo"
    assert found["forecast"]["recorded"] is None
    loose = await tools.ok("graph_policy_check", spec=echo("never_stored"))
    assert loose["decision"] == "allow"
    assert "graph_id" not in loose


async def test_the_check_and_the_start_agree(tools: Tools) -> None:
    await tools.ok("graph_create", spec=rounds(2))
    await tools.ok("graph_create", spec=echo())
    for name in (*OWN, "baseline", "strict"):
        mine = held(tools, name)
        for graph_id in ("rounds", "echo"):
            for value in ("short", "far too long for that"):
                asked = await mine.ok("graph_policy_check", graph_id=graph_id, input=value)
                envelope = await mine.envelope("graph_run_start", graph_id=graph_id, input=value)
                assert envelope["ok"] is (asked["decision"] == "allow"), (name, graph_id, value, asked, envelope)


async def test_a_denied_start_creates_nothing_and_says_what_is_in_the_way(tools: Tools) -> None:
    await tools.ok("graph_create", spec=rounds(2))
    refused = await held(tools, "small").refused("graph_run_start", graph_id="rounds", input="x")
    assert refused["error_code"] == "POLICY_DENIED"
    assert refused["error"] == ("the policy small does not let rounds run. max_nodes: nodes: 3, at most 1 allowed.")
    assert refused["details"]["decision"] == "deny"
    assert refused["details"]["effective_policy"]["name"] == "small"


async def test_a_refusal_names_up_to_five_violations_a_sentence_each(tools: Tools) -> None:
    spec = rounds(2)
    spec["nodes"] += [{"id": f"n{i}", "type": "llm", "config": {"prompt": "x"}} for i in range(5)]
    spec["edges"] += [{"from": "done", "to": f"n{i}"} for i in range(5)]
    await tools.ok("graph_create", spec=spec)
    refused = await held(tools, "narrow").refused("graph_run_start", graph_id="rounds", input="x", model="other")
    one = "the model other is not allowed; allowed are qwen3*."
    assert refused["error"].startswith("the policy narrow does not let rounds run. max_nodes: nodes: 8, at most 1")
    assert refused["error"].endswith(f"models (node n2): {one} There are 2 more.")
    assert refused["error"].count(one) == 4
    assert len(refused["details"]["violations"]) == 7


async def test_what_is_for_review_only_a_person_may_start(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    mine = held(tools, "tagged")
    refused = await mine.refused("graph_run_start", graph_id="keep", input="x")
    assert refused["error_code"] == "POLICY_DENIED"
    assert "A person may start it: agent-graph run keep" in str(refused["error"])
    assert refused["details"]["decision"] == "review"
    run_id = await Tools(mine.deps, PERSON).run("keep", "x")
    assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
    accepted = (await tools.ok("graph_run_events", run_id=run_id))["events"][0]
    waived = [{"rule": "requirements", "message": "no node carries the requirement REQ-1"}]
    assert accepted["policy"] == {"profile": "tagged", "waived": waived}


async def test_a_bound_on_calls_is_the_budget_of_a_run_that_asks_for_none(tools: Tools) -> None:
    """PO01: the sixth call is refused and what was done is kept."""
    await tools.ok("graph_create", spec=rounds(10))
    mine = held(tools, "few")
    run_id = await mine.run("rounds", "x")
    waited = await mine.ok("graph_run_wait", run_id=run_id)
    assert waited["status"] == "failed"
    assert waited["run"]["error"]["code"] == "BUDGET_EXHAUSTED"
    assert "max_llm_calls of 5, set by the policy few, is used up" in waited["run"]["error"]["message"]
    own = await mine.run("rounds", "x", budgets={"max_llm_calls": 3})
    assert "policy" not in (await mine.ok("graph_run_wait", run_id=own))["run"]["error"]["message"]
    assert waited["run"]["usage"]["llm_calls"] == 5
    assert (await mine.ok("graph_run_state", run_id=run_id, path="/said"))["value"] == "yes"


async def test_a_model_that_comes_from_a_default_nobody_set_is_denied_where_models_are_bounded(tools: Tools) -> None:
    """PO01: the check knows what the run would ask."""
    await tools.ok("graph_create", spec=echo())
    mine = held(tools, "named")
    assert (await mine.ok("graph_policy_check", graph_id="echo"))["violations"][0]["code"] == "MODEL_NOT_ALLOWED"
    assert (await mine.refused("graph_run_start", graph_id="echo"))["error_code"] == "POLICY_DENIED"
    assert (await mine.ok("graph_policy_check", graph_id="echo", model="qwen3:8b"))["decision"] == "allow"
    assert (await mine.envelope("graph_run_start", graph_id="echo", model="qwen3:8b"))["ok"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"policy_profile": "nope"}, "POLICY_PROFILE_UNKNOWN"),
        ({"policy": {"max_llm_callz": 3}}, "POLICY_RULE_UNKNOWN"),
        ({"policy": {"max_llm_calls": 0}}, "POLICY_VALUE_INVALID"),
        ({"policy_profile": "few", "policy": {"max_llm_calls": 6}}, "POLICY_OVERRIDE_LOOSENS"),
    ],
)
async def test_what_cannot_be_read_denies(tools: Tools, asked: dict[str, Any], code: str) -> None:
    mine = held(tools, "baseline")
    found = await mine.ok("graph_policy_check", spec=echo(), **asked)
    assert found["decision"] == "deny"
    assert [one["code"] for one in found["violations"]] == [code]


async def test_a_forecast_rests_on_completed_runs_of_this_very_version(tools: Tools) -> None:
    await tools.ok("graph_create", spec=rounds(2))
    for _ in range(3):
        await tools.ok("graph_run_wait", run_id=await tools.run("rounds", "x"))
    found = (await tools.ok("graph_policy_check", graph_id="rounds"))["forecast"]["recorded"]
    assert found["runs"] == 3
    assert found["llm_calls"] == {"p50": 2, "p95": 2, "runs": 3}
    assert found["tokens"] == {"p50": 10, "p95": 10, "runs": 3}
    assert found["wall_clock_ms"]["runs"] == 3
    await tools.ok("graph_create", spec=rounds(3), overwrite=True)
    assert (await tools.ok("graph_policy_check", graph_id="rounds"))["forecast"]["recorded"] is None


async def test_a_forecast_says_the_worst_case_within_the_budgets_apart_from_what_was_recorded(tools: Tools) -> None:
    await tools.ok("graph_create", spec=rounds(10))
    free = (await tools.ok("graph_policy_check", graph_id="rounds"))["forecast"]
    assert free["worst_case"]["llm_calls"] == {"worst": 30, "likely": 1, "least": 0}
    assert free["worst_case"]["tokens"] is free["recorded"] is None
    asked = {"max_llm_calls": 9, "max_tokens": 500}
    bounded = await held(tools, "few").ok("graph_policy_check", graph_id="rounds", budgets=asked)
    assert bounded["forecast"]["worst_case"]["llm_calls"]["worst"] == 5
    assert bounded["forecast"]["worst_case"]["tokens"] == 500
    assert [one["code"] for one in bounded["warnings"]] == ["BUDGET_MAY_RUN_OUT"]


async def test_a_check_needs_one_graph(tools: Tools) -> None:
    assert (await tools.refused("graph_policy_check"))["error_code"] == "SOURCE_REQUIRED"
    both = await tools.refused("graph_policy_check", graph_id="x", spec=echo())
    assert both["error_code"] == "SOURCE_AMBIGUOUS"
    wrong = await tools.refused("graph_policy_check", spec={"name": "x"})
    assert wrong["error_code"] == "SPEC_INVALID"
    assert (await tools.refused("graph_policy_check", graph_id="x"))["error_code"] == "GRAPH_NOT_FOUND"
    budgets = await tools.refused("graph_policy_check", spec=echo(), budgets={"max_calls": 3})
    assert budgets["error_code"] == "INVALID_BUDGETS"
