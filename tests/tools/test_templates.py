"""graph_template_list, graph_template_instantiate and graph_status."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.opened import Tools

IDS = [
    "analysis_pipeline", "approval_gated_action", "classifier_router", "council_deliberation", "debate",
    "extract_then_verify", "map_reduce",
    "parallel_council", "plan_critique_refine", "ranked_council", "review_with_changes",
]  # fmt: skip


async def test_templates_come_with_schema_and_sample_and_are_not_cut(tools: Tools) -> None:
    data = await tools.ok("graph_template_list")
    assert set(data) == {"templates"}
    assert [row["template_id"] for row in data["templates"]] == IDS
    for row in data["templates"]:
        assert set(row) == {"template_id", "version", "title", "description", "params", "sample"}
        assert row["params"]["type"] == "object"
    found = await tools.ok("graph_template_list", query="GATED")
    assert [row["template_id"] for row in found["templates"]] == ["approval_gated_action"]


async def test_instantiate_answers_the_spec_and_stores_it_only_when_asked(tools: Tools) -> None:
    before = await tools.everything()
    data = await tools.ok("graph_template_instantiate", template_id="parallel_council", name="mine")
    assert set(data) == {"template_id", "graph_id", "graph_version", "registered", "spec"}
    assert (data["registered"], data["spec"]["name"]) == (False, "mine")
    assert await tools.everything() == before
    stored = await tools.ok("graph_template_instantiate", template_id="parallel_council", name="mine", register=True)
    assert (stored["registered"], stored["graph_version"]) == (True, data["graph_version"])
    assert (await tools.ok("graph_inspect", graph_id="mine"))["graph_version"] == data["graph_version"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"template_id": "nothing"}, "TEMPLATE_NOT_FOUND"),
        ({}, "INVALID_ARGUMENT"),
        ({"template_id": "parallel_council", "params": {"wordz": 1}}, "TEMPLATE_PARAMS_INVALID"),
        ({"template_id": "parallel_council", "params": "no"}, "INVALID_ARGUMENT"),
        ({"template_id": "parallel_council", "registered": True}, "UNKNOWN_ARGUMENT"),
        ({"template_id": "parallel_council", "name": "no good name!", "register": True}, "SPEC_INVALID"),
    ],
)
async def test_instantiate_refuses(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    assert (await tools.refused("graph_template_instantiate", **arguments))["error_code"] == code


async def test_a_template_under_a_taken_name_is_refused(tools: Tools) -> None:
    await tools.ok("graph_template_instantiate", template_id="parallel_council", name="mine", register=True)
    refusal = await tools.refused(
        "graph_template_instantiate", template_id="council_deliberation", name="mine", register=True
    )
    assert refusal["error_code"] == "GRAPH_VERSION_CONFLICT"


async def test_status_of_the_server_says_who_answers_and_what_there_is(tools: Tools) -> None:
    run = await _ran(tools)
    await tools.deps.supervisor.rest()  # a run has ended a moment before its driver has gone home
    data = await tools.ok("graph_status")
    assert (data["resource"], data["storage"], data["runs"]) == ("server", "volatile", {"completed": 1})
    assert data["provider"] == {
        "ok": True, "provider": "scripted", "host": "scripted", "default_model": "scripted", "models": ["scripted"],
    }  # fmt: skip
    assert data["capacity"]["active"] == 0
    assert (await tools.ok("graph_status", resource="graph", graph_id=run["graph_id"]))["node_count"] == 5
    assert (await tools.ok("graph_status", resource="run", run_id=run["run_id"]))["status"] == "completed"
    events = await tools.ok("graph_status", resource="events", run_id=run["run_id"])
    assert events["events"] > 5
    assert (await tools.ok("graph_status", resource="templates"))["templates"] == IDS
    assert await tools.ok("graph_status", resource="receipt", run_id=run["run_id"]) == {
        "resource": "receipt", "run_id": run["run_id"], "status": "completed", "ready": True,
        "events": events["events"], "kept": True, "chain_verified": True, "sealed": True, "key_mode": "keyed",
    }  # fmt: skip


async def _ran(tools: Tools) -> Any:
    await tools.ok("graph_template_instantiate", template_id="parallel_council", name="mine", register=True)
    return await tools.ended("mine", "Should we?")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"resource": "weather"}, "INVALID_RESOURCE"),
        ({"resource": "run"}, "INVALID_ARGUMENT"),
        ({"resource": "run", "run_id": "run-none"}, "RUN_NOT_FOUND"),
        ({"resource": "graph", "graph_id": "nobody"}, "GRAPH_NOT_FOUND"),
        ({"resorce": "run"}, "UNKNOWN_ARGUMENT"),
    ],
)
async def test_status_refuses(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    assert (await tools.refused("graph_status", **arguments))["error_code"] == code


async def test_a_parameter_that_is_none_is_told_with_the_nearest_and_all(tools: Tools) -> None:
    refusal = await tools.refused(
        "graph_template_instantiate", template_id="parallel_council", params={"wordz": 1, "zzzzzz": 2}
    )
    first, second = refusal["details"]["problems"]
    names = ", ".join(refusal["details"]["params_schema"]["properties"])
    assert first.startswith("there is no parameter 'wordz'; did you mean ")
    assert first.endswith(f"? there are {names}")
    assert second == f"there is no parameter 'zzzzzz'; there are {names}"
