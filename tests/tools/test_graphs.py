"""graph_create, graph_list, graph_inspect, graph_render: what they answer and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_graph.core.limits import DEFAULTS
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, gated, keep


async def test_create_answers_with_the_keys_of_the_contract(tools: Tools) -> None:
    data = await tools.ok("graph_create", spec=keep())
    assert set(data) == {"graph_id", "graph_version", "topology_hash", "action", "created", "issues", "warnings"}
    assert (data["graph_id"], data["action"], data["created"]) == ("keep", "create", True)
    assert data["graph_version"].startswith("sha256:")


async def test_the_same_graph_again_creates_nothing(tools: Tools) -> None:
    first = await tools.ok("graph_create", spec=keep())
    again = await tools.ok("graph_create", spec=keep())
    assert (again["created"], again["graph_version"]) == (False, first["graph_version"])


async def test_the_ids_stand_beside_the_data_too(tools: Tools) -> None:
    envelope = await tools.envelope("graph_create", spec=keep())
    assert set(envelope) == {"ok", "data", "graph_id", "graph_version"}


async def test_MC01_a_spec_may_come_as_the_text_of_its_json(tools: Tools) -> None:
    from agent_graph.core.jsonvalue import compact

    as_object = await tools.ok("graph_create", spec=keep(), action="validate")
    as_text = await tools.ok("graph_create", spec=compact(keep()), action="validate")
    assert as_text == as_object


async def test_validate_stores_nothing(tools: Tools) -> None:
    before = await tools.everything()
    data = await tools.ok("graph_create", spec=keep(), action="validate")
    assert (data["created"], data["action"]) == (False, "validate")
    assert await tools.everything() == before


async def test_create_from_a_template(tools: Tools) -> None:
    data = await tools.ok("graph_create", template={"id": "council_deliberation", "name": "mine"})
    assert data["graph_id"] == "mine"


async def test_all_issues_come_at_once_with_pointers_and_a_suggestion(tools: Tools) -> None:
    spec = {**keep(), "entrie": "x", "nodes": [{"id": "pass", "type": "passthrough"}, {"id": "pass", "type": "lllm"}]}
    refusal = await tools.refused("graph_create", spec=spec)
    issues = refusal["details"]["issues"]
    assert refusal["error_code"] == "SPEC_INVALID"
    assert len(issues) >= 2
    assert all(issue["code"] and "pointer" in issue for issue in issues)
    assert any("entry" in str(issue) for issue in issues)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "SOURCE_REQUIRED"),
        ({"spec": keep(), "template": {"id": "council_deliberation"}}, "SOURCE_AMBIGUOUS"),
        ({"spec": keep(), "action": "destroy"}, "INVALID_ACTION"),
        ({"action": "delete"}, "INVALID_ARGUMENT"),
        ({"action": "delete", "graph_id": "nobody"}, "GRAPH_NOT_FOUND"),
        ({"template": {"id": "no_such_template"}}, "TEMPLATE_NOT_FOUND"),
        ({"template": {"name": "x"}}, "INVALID_ARGUMENT"),
        ({"template": {"id": "council_deliberation", "nam": "x"}}, "INVALID_ARGUMENT"),
        ({"template": {"id": "council_deliberation", "params": {"words": -1}}}, "TEMPLATE_PARAMS_INVALID"),
        ({"spec": "not json"}, "INVALID_ARGUMENT"),
        ({"spec": "{not json"}, "INPUT_INVALID"),
        ({"spec": [1]}, "INVALID_ARGUMENT"),
        ({"spec": {**keep(), "nodes": []}}, "SPEC_INVALID"),
        ({"spec": {**keep(), "spec_version": "9"}}, "SPEC_INVALID"),
        ({"spek": keep()}, "UNKNOWN_ARGUMENT"),
        ({"spec": {**keep(), "description": "\ud83d"}}, "INPUT_INVALID"),
        ({"spec": {**keep(), "metadata": {"x": float("nan")}}}, "INPUT_INVALID"),
        ({"spec": {**keep(), "metadata": {"x": "y" * (DEFAULTS.spec_bytes + 100_000)}}}, "INPUT_TOO_LARGE"),
    ],
)  # fmt: skip
async def test_create_refuses(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    assert (await tools.refused("graph_create", **arguments))["error_code"] == code


async def test_a_spec_over_the_limits_of_nodes_is_refused() -> None:
    async with opened(limits=replace(DEFAULTS, nodes=2)) as deps:
        spec = {**keep(), "nodes": [{"id": f"n{i}", "type": "passthrough"} for i in range(3)], "entry": "n0"}
        refusal = await Tools(deps).refused("graph_create", spec=spec)
        assert refusal["error_code"] == "SPEC_INVALID"


async def test_another_graph_under_the_name_needs_overwrite_and_the_old_one_stays(tools: Tools) -> None:
    first = await tools.ok("graph_create", spec=echo())
    other = echo(prompt="again: {input}")
    refusal = await tools.refused("graph_create", spec=other)
    assert refusal["error_code"] == "GRAPH_VERSION_CONFLICT"
    stale = await tools.refused("graph_create", spec=other, expected_version="sha256:" + "0" * 64)
    assert stale["error_code"] == "GRAPH_VERSION_CONFLICT"
    second = await tools.ok("graph_create", spec=other, expected_version=first["graph_version"])
    assert second["created"] is True
    old = await tools.ok("graph_inspect", graph_id="echo", graph_version=first["graph_version"])
    assert [row["graph_version"] for row in old["versions"]] == [second["graph_version"], first["graph_version"]]
    third = await tools.ok("graph_create", spec=echo(), overwrite=True)
    assert third["graph_version"] == first["graph_version"]


async def test_delete_hides_a_graph_unless_runs_of_it_live(tools: Tools) -> None:
    created = await tools.ok("graph_create", spec=gated())
    run_id = await tools.run("gated", {"draft": "hello"})
    assert (await tools.refused("graph_create", action="delete", graph_id="gated"))["error_code"] == "GRAPH_IN_USE"
    await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
    await tools.ok("graph_run_wait", run_id=run_id)
    gone = await tools.ok("graph_create", action="delete", graph_id="gated")
    assert (set(gone), gone["action"]) == (set(created), "delete")
    assert (await tools.refused("graph_inspect", graph_id="gated"))["error_code"] == "GRAPH_NOT_FOUND"
    assert (await tools.ok("graph_list"))["graphs"] == []


async def test_list_pages_by_cursor(tools: Tools) -> None:
    for name in ("a", "b", "c"):
        await tools.ok("graph_create", spec=keep(name))
    first = await tools.ok("graph_list", limit=2)
    assert set(first) == {"graphs", "next_cursor", "truncated"}
    assert [row["graph_id"] for row in first["graphs"]] == ["a", "b"]
    assert set(first["graphs"][0]) == {
        "graph_id", "graph_version", "description", "node_count", "edge_count", "updated_at_ms",
    }  # fmt: skip
    assert first["truncated"] is True
    rest = await tools.ok("graph_list", limit=2, cursor=first["next_cursor"])
    assert [row["graph_id"] for row in rest["graphs"]] == ["c"]
    assert (rest["next_cursor"], rest["truncated"]) == (None, False)
    assert [row["graph_id"] for row in (await tools.ok("graph_list", query="B"))["graphs"]] == ["b"]


async def test_MC08_a_page_is_no_larger_than_an_answer_and_misses_nothing(tools: Tools) -> None:
    from agent_graph.core.jsonvalue import size

    for number in range(60):
        await tools.ok("graph_create", spec={**keep(f"g{number:02}"), "description": "d" * 1_500})
    seen: list[str] = []
    cursor = ""
    while True:
        envelope: Any = await tools.envelope("graph_list", limit=200, cursor=cursor)
        assert size(envelope) <= DEFAULTS.result_bytes
        assert "cut" not in envelope["data"]
        seen += [row["graph_id"] for row in envelope["data"]["graphs"]]
        cursor = envelope["data"]["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"g{number:02}" for number in range(60)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"limit": 0}, "INVALID_ARGUMENT"),
        ({"limit": 201}, "INVALID_ARGUMENT"),
        ({"cursor": "nonsense"}, "INVALID_ARGUMENT"),
        ({"filter": "x"}, "UNKNOWN_ARGUMENT"),
    ],
)
async def test_list_refuses(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    assert (await tools.refused("graph_list", **arguments))["error_code"] == code


async def test_inspect_shows_all_and_hides_secrets(tools: Tools) -> None:
    await tools.ok("graph_create", spec={**gated(), "metadata": {"api_key": "sk-123456789"}})
    data = await tools.ok("graph_inspect", graph_id="gated")
    assert set(data) == {
        "graph_id", "graph_version", "topology_hash", "entry", "nodes", "edges", "reducers", "facts", "mermaid",
        "versions",
    }  # fmt: skip
    assert data["entry"] == "gate"
    assert data["nodes"][0]["config"]["prompt"] == "May this be sent?"
    assert "sk-123456789" not in str(data)
    assert data["mermaid"].startswith("flowchart TD")


@pytest.mark.parametrize("tool", ["graph_inspect", "graph_render"])
async def test_unknown_graphs_and_versions_are_told_apart(tools: Tools, tool: str) -> None:
    await tools.ok("graph_create", spec=keep())
    assert (await tools.refused(tool, graph_id="nobody"))["error_code"] == "GRAPH_NOT_FOUND"
    unknown = await tools.refused(tool, graph_id="keep", graph_version="sha256:" + "0" * 64)
    assert unknown["error_code"] == "GRAPH_VERSION_NOT_FOUND"


async def test_render_as_mermaid_and_as_json(tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo(prompt="Say {input}"))
    drawn = await tools.ok("graph_render", graph_id="echo", direction="LR")
    assert set(drawn) == {"graph_id", "graph_version", "format", "text", "counts", "warnings"}
    assert (drawn["format"], drawn["text"].splitlines()[0]) == ("mermaid", "flowchart LR")
    plain = await tools.ok("graph_render", graph_id="echo", format="json")
    assert set(plain) == {"graph_id", "graph_version", "entry", "nodes", "edges", "topology_hash"}
    assert "config" not in plain["nodes"][0]
    detailed = await tools.ok("graph_render", graph_id="echo", format="json", include_details=True)
    assert detailed["nodes"][0]["config"]["prompt"] == "Say {input}"


async def test_render_of_a_spec_stores_nothing(tools: Tools) -> None:
    before = await tools.everything()
    assert "say" in (await tools.ok("graph_render", spec=echo()))["text"]
    assert await tools.everything() == before


async def test_render_of_a_run_is_coloured_by_it(tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    run = await tools.ended("echo", "hello")
    plain = await tools.ok("graph_render", graph_id="echo")
    coloured = await tools.ok("graph_render", run_id=run["run_id"])
    assert coloured["graph_version"] == run["graph_version"]
    assert coloured["text"] != plain["text"]
    assert "completed" in coloured["text"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "RENDER_SOURCE_REQUIRED"),
        ({"graph_id": "keep", "spec": keep()}, "RENDER_SOURCE_AMBIGUOUS"),
        ({"run_id": "run-1", "spec": keep()}, "RENDER_SOURCE_AMBIGUOUS"),
        ({"run_id": "run-1"}, "RUN_NOT_FOUND"),
        ({"graph_id": "keep", "format": "gif"}, "INVALID_ARGUMENT"),
        ({"graph_id": "keep", "direction": "UP"}, "INVALID_ARGUMENT"),
        ({"spec": {**keep(), "nodes": []}}, "SPEC_INVALID"),
    ],
)
async def test_render_refuses(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    await tools.ok("graph_create", spec=keep())
    assert (await tools.refused("graph_render", **arguments))["error_code"] == code


async def test_render_of_a_run_under_another_graphs_name_is_ambiguous(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run = await tools.ended("keep")
    refusal = await tools.refused("graph_render", run_id=run["run_id"], graph_id="other")
    assert refusal["error_code"] == "RENDER_SOURCE_AMBIGUOUS"


async def test_raw_and_escaped_text_make_the_same_graph(tools: Tools) -> None:
    import json

    spec = echo(prompt="Größe → 中文 {input}")
    raw = await tools.ok("graph_create", spec=json.dumps(spec, ensure_ascii=False), action="validate")
    escaped = await tools.ok("graph_create", spec=json.dumps(spec, ensure_ascii=True), action="validate")
    assert raw["graph_version"] == escaped["graph_version"]


async def test_a_graph_that_is_not_there_is_told_with_what_was_probably_meant(tools: Tools) -> None:
    async def told(name: str) -> str:
        refusal = await tools.refused("graph_run_start", graph_id=name, input="x")
        assert refusal["error_code"] == "GRAPH_NOT_FOUND"
        return str(refusal["error"])

    await tools.ok("graph_create", spec=keep())
    assert await told("kep") == "there is no graph 'kep'; did you mean 'keep'?"
    assert "that is a template: make a graph of it first (graph_create" in await told("council_deliberation")
    assert "only with register: true" in await told("zzz")


async def test_a_model_deletes_no_graph_where_that_is_the_operators(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    strict = Tools(replace(tools.deps, deletion="operator"))
    refusal = await strict.refused("graph_create", action="delete", graph_id="keep")
    assert (refusal["error_code"], refusal["retryable"]) == ("AUTHENTICATED_OPERATOR_REQUIRED", False)
    assert (await strict.ended("keep", "x"))["status"] == "completed"
    operator = Tools(strict.deps, Caller("cli", "a test"))
    assert (await operator.ok("graph_create", action="delete", graph_id="keep"))["action"] == "delete"
    assert (await tools.ok("graph_list"))["graphs"] == []
