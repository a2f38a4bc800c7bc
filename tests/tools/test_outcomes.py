"""Template outcomes and candidates: counted from real runs, kept whatever retention takes, promoted by the operator."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.engine import outcomes
from agent_graph.errors import ModelRefused
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, gated, keep

OPERATOR = Caller("cli", "agent-graph")


async def _answer(call: CallModel) -> str:
    if "fail" in str(call.messages):
        raise ModelRefused("no")
    return "done"


@pytest.fixture
async def filed(tmp_path: Path) -> AsyncIterator[Tools]:
    async with opened(ScriptedModel(_answer), folder=tmp_path) as deps:
        yield Tools(deps)


async def versions(tools: Tools, template_id: str) -> Any:
    return (await tools.ok("graph_template_outcomes", template_id=template_id))["versions"]


async def listed(tools: Tools, state: str = "candidate") -> Any:
    return (await tools.ok("graph_template_candidates", state=state))["candidates"]


async def test_what_runs_of_a_template_came_to_is_counted_by_its_version(filed: Tools) -> None:
    assert await versions(filed, "parallel_council") == []
    await filed.ok("graph_create", template={"id": "parallel_council", "name": "one"})
    await filed.ok("graph_template_instantiate", template_id="parallel_council", name="two", register=True)
    await filed.ended("one", "x")
    await filed.ended("two", "x")
    await filed.ended("two", "fail")
    (version,) = await versions(filed, "parallel_council")
    template = filed.deps.catalog.templates.get("parallel_council")
    assert version == {
        "template_version": template.version, "current": True, "graphs": 2, "runs": 3, "completed": 2, "failed": 1,
        "cancelled": 0, "success_rate": 0.667, "per_run": version["per_run"], "errors": {"MODEL_REFUSED": 1},
        "first_at_ms": version["first_at_ms"], "last_at_ms": version["last_at_ms"],
    }  # fmt: skip
    assert version["per_run"]["llm_calls"] == 3.0
    assert version["first_at_ms"] <= version["last_at_ms"]


async def test_a_graph_that_was_changed_by_hand_is_no_outcome_of_its_template(filed: Tools) -> None:
    made = await filed.ok("graph_template_instantiate", template_id="parallel_council", name="mine")
    spec = {**made["spec"], "description": "changed, and its metadata still name the template"}
    await filed.ok("graph_create", spec=spec)
    await filed.ended("mine", "x")
    assert await versions(filed, "parallel_council") == []


async def test_outcomes_outlive_the_runs(filed: Tools) -> None:
    await filed.ok("graph_create", template={"id": "parallel_council", "name": "one"})
    run = await filed.ended("one", "x")
    before = await versions(filed, "parallel_council")
    operator = Tools(filed.deps, OPERATOR)
    pruned = await operator.ok("graph_store_prune", run_ids=[run["run_id"]], forget=True)
    assert [row["run_id"] for row in pruned["runs"]] == [run["run_id"]]
    assert (await filed.refused("graph_run_get", run_id=run["run_id"]))["error_code"] == "RUN_NOT_FOUND"
    assert await versions(filed, "parallel_council") == before


async def test_a_run_is_counted_once_whatever_is_asked_of_it_later(filed: Tools) -> None:
    await filed.ok("graph_create", spec=gated())
    run_id = await filed.run("gated", {"draft": "x"})
    await filed.ok("graph_run_wait", run_id=run_id, until="waiting")
    await filed.ok("graph_run_cancel", run_id=run_id, reason="enough", idempotency_key="a")
    await filed.ok("graph_run_wait", run_id=run_id)
    await filed.ok("graph_run_cancel", run_id=run_id, reason="again", idempotency_key="b")
    ((row),) = await listed(filed, "all")
    assert (row["runs"], row["cancelled"], row["success_rate"]) == (1, 1, None)
    assert row["per_run"] == {"llm_calls": None, "tokens": None, "wall_clock_ms": None}


async def test_the_rule_is_said_and_holds(filed: Tools) -> None:
    await filed.ok("graph_create", spec=echo())
    answer = await filed.ok("graph_template_candidates")
    assert (answer["candidates"], answer["truncated"], answer["total"]) == ([], False, 0)
    assert answer["rule"] == outcomes.RULE
    for done in range(1, outcomes.LEAST_RUNS + 1):
        await filed.ended("echo", "x")
        rows = await listed(filed, "all")
        assert [row["state"] for row in rows] == ["candidate" if done == outcomes.LEAST_RUNS else "not_yet"]
    assert (await listed(filed))[0]["graph_id"] == "echo"
    await filed.ended("echo", "fail")
    (row,) = await listed(filed, "not_yet")
    assert row["lacking"] == ["75% of the runs completed, not 80%"]
    await filed.ok("graph_create", spec=echo(prompt="Anew: {input}"), overwrite=True)
    assert await listed(filed, "all") == []  # another version has a record of its own
    await filed.ok("graph_create", template={"id": "parallel_council", "name": "one"})
    await filed.ended("one", "x")
    assert await listed(filed, "all") == []  # and what came of a template is one


async def test_the_operator_promotes_and_then_it_is_a_template_like_others(filed: Tools, tmp_path: Path) -> None:
    stored = await filed.ok("graph_create", spec=echo(description="Says it.\nAnd no more."))
    for _ in range(3):
        await filed.ended("echo", "x")
    operator = Tools(filed.deps, OPERATOR)
    made = await operator.ok("graph_template_promote", graph_id="echo", template_id="sayer", sample="Hello?")
    assert made == {
        "template_id": "sayer", "version": "1", "title": "Says it.", "graph_id": "echo",
        "graph_version": stored["graph_version"], "file": str(tmp_path / "templates" / "sayer.json"),
    }  # fmt: skip
    (row,) = (await filed.ok("graph_template_list", query="sayer"))["templates"]
    assert (row["title"], row["sample"]) == ("Says it.", {"input": "Hello?", "params": {}})
    assert [one["state"] for one in await listed(filed, "all")] == ["promoted"]
    await filed.ok("graph_template_instantiate", template_id="sayer", name="mine", register=True)
    assert (await filed.ended("mine", "x"))["final_state"] == "done"
    assert [(one["template_version"], one["completed"]) for one in await versions(filed, "sayer")] == [("1", 1)]
    assert "sayer" in (await filed.ok("graph_status", resource="templates"))["templates"]

    assert (await operator.refused("graph_template_promote", graph_id="echo", template_id="sayer"))["error_code"] == (
        "TEMPLATE_EXISTS"
    )
    again = await operator.ok("graph_template_promote", graph_id="echo", template_id="sayer", overwrite=True)
    assert again["version"] == "2"
    (first,) = await versions(filed, "sayer")
    assert (first["template_version"], first["current"]) == ("1", False)


@pytest.mark.parametrize(
    ("spec", "arguments", "code"),
    [
        (keep(), {"graph_id": "nobody"}, "GRAPH_NOT_FOUND"),
        (keep(), {"graph_id": "keep", "template_id": "Not an id"}, "INVALID_ARGUMENT"),
        (keep(), {"graph_id": "keep", "template_id": "debate"}, "INVALID_ARGUMENT"),
        (echo(prompt="{$words} of {input}"), {"graph_id": "echo"}, "INVALID_ARGUMENT"),
    ],
    ids=["no-graph", "no-id", "ships", "place"],
)
async def test_promotion_refuses_and_writes_nothing(
    filed: Tools, tmp_path: Path, spec: Any, arguments: Any, code: str
) -> None:
    await filed.ok("graph_create", spec=spec)
    refusal = await Tools(filed.deps, OPERATOR).refused("graph_template_promote", **arguments)
    assert refusal["error_code"] == code
    assert not (tmp_path / "templates").exists()


async def test_nothing_is_promoted_where_nothing_is_kept(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    refusal = await Tools(tools.deps, OPERATOR).refused("graph_template_promote", graph_id="keep")
    assert refusal["error_code"] == "INVALID_ARGUMENT"
    assert "in memory" in refusal["error"]


async def test_a_file_that_is_no_template_is_passed_over_and_logged(
    filed: Tools, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = await filed.ok("graph_template_list")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "broken.json").write_text("{", encoding="utf-8")
    other = {**json.loads(_shipped("debate")), "title": "another"}
    (tmp_path / "templates" / "debate.json").write_text(json.dumps(other), encoding="utf-8")
    assert await filed.ok("graph_template_list") == before
    assert await filed.ok("graph_template_list") == before
    assert caplog.text.count("broken.json") == 1
    assert (await filed.refused("graph_template_outcomes", template_id="broken"))["error_code"] == "TEMPLATE_NOT_FOUND"


def _shipped(template_id: str) -> str:
    from agent_graph.engine.templates import folder

    return (folder() / f"{template_id}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [{"state": "best"}, {"state": 1}])
async def test_an_unknown_state_is_refused(tools: Tools, arguments: Any) -> None:
    assert (await tools.refused("graph_template_candidates", **arguments))["error_code"] == "INVALID_ARGUMENT"
    assert (await tools.refused("graph_template_outcomes"))["error_code"] == "INVALID_ARGUMENT"
