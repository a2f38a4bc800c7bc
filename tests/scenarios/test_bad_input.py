"""Bad input: each refused with its code, nothing created and nothing changed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import open_app
from agent_graph.errors import StoreForeign
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.settings import load
from tests.engine.room import Room, opened
from tests.specs import Json, gate, llm, passthrough, put, router, rule, spec

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
GOOD = spec(passthrough("p"), edges="p>END")


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


SPECS: dict[str, tuple[Any, str]] = {
    "an unknown field": (GOOD | {"edgs": []}, "UNKNOWN_FIELD"),
    "an unknown field of a node": (spec(llm("a", promt="x"), edges="a>END"), "UNKNOWN_FIELD"),
    "an edge to an unknown node": (spec(passthrough("p"), edges="p>q"), "UNKNOWN_NODE"),
    "an unknown entry": (spec(passthrough("p"), edges="p>END", entry="q"), "ENTRY_UNKNOWN"),
    "an id twice": (spec(passthrough("p"), passthrough("p"), edges="p>END"), "DUPLICATE_NODE"),
    "an edge twice": (spec(passthrough("p"), passthrough("q"), edges="p>q p>q q>END"), "DUPLICATE_EDGE"),
    "a reserved key": (spec(put("p", __secret=1), edges="p>END"), "RESERVED_KEY"),
    "a reserved book": (spec(put("p", outputs=1), edges="p>END"), "RESERVED_KEY"),
    "an unknown version": (GOOD | {"spec_version": "3"}, "SPEC_VERSION_UNSUPPORTED"),
    "a pattern too long": (spec(router("r", rule("x", "regex", "a" * 1001, "END"), default=["END"])), "REGEX_INVALID"),
    "no nodes": (GOOD | {"nodes": []}, ""),
    "a node type of later": (
        spec({"id": "p", "type": "tool", "config": {}}, edges="p>END"),
        "NODE_TYPE_UNAVAILABLE",
    ),
    "a budget of nothing": (GOOD | {"budgets": {"max_nodes": 0}}, "FIELD_INVALID"),
    "a budget no run can keep": (
        spec(llm("a"), llm("b"), edges="a>b b>END") | {"budgets": {"max_llm_calls": 1}},
        "BUDGET_BELOW_SHORTEST_PATH",
    ),
}


@pytest.mark.parametrize(("bad", "code"), SPECS.values(), ids=SPECS)
async def test_a_bad_spec_is_refused_with_its_issue_and_stores_nothing(bad: Any, code: str) -> None:
    async with opened(ScriptedModel()) as room:
        before = await room.counts()
        refused = await room.call("graph_create", spec=bad, idempotency_key="k")
        assert not refused["ok"]
        assert refused["error_code"] in ("SPEC_INVALID", "SPEC_VERSION_UNSUPPORTED", "NODE_TYPE_UNAVAILABLE")
        found = {issue["code"]: issue for issue in refused["details"]["issues"]}
        assert not code or code in found
        assert all(issue["pointer"].startswith("/") for issue in found.values())
        assert await room.counts() == before
        assert await room.store.requests.get("k") is None


async def test_an_unknown_field_comes_with_a_suggestion() -> None:
    async with opened(ScriptedModel()) as room:
        refused = await room.call("graph_create", spec=spec(llm("a", promt="x"), edges="a>END"))
        (issue,) = [each for each in refused["details"]["issues"] if each["code"] == "UNKNOWN_FIELD"]
        assert "prompt" in issue["message"]
        assert issue["pointer"] == "/nodes/0/config/promt"


async def test_a_spec_nested_too_deep_is_refused() -> None:
    async with opened(ScriptedModel()) as room:
        before = await room.counts()
        for levels in (250, 10_000, 100_000):
            refused = await room.call("graph_create", spec=spec(put("p", x=deep(levels)), edges="p>END"))
            assert refused["error_code"] == "INPUT_TOO_DEEP"
        assert await room.counts() == before


@pytest.mark.parametrize("text", ["{not json", "[1, 2", '{"a": NaN}', '{"a": 1, "a": 2}', '{"a": "\\ud800"}'])
async def test_a_spec_that_is_no_json_is_refused(text: str) -> None:
    async with opened(ScriptedModel()) as room:
        before = await room.counts()
        refused = await room.call("graph_create", spec=text)
        assert refused["error_code"] in ("INPUT_INVALID", "INVALID_ARGUMENT")
        assert await room.counts() == before


WIDE = spec(*(passthrough(f"n{i}") for i in range(20)), edges=" ".join(f"n0>n{i}" for i in range(1, 20)))


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"nodes": 19}, "LIMIT_EXCEEDED"), ({"edges": 18}, "LIMIT_EXCEEDED"), ({"spec_bytes": 500}, ""),
    ],
)  # fmt: skip
async def test_a_spec_over_a_limit_is_refused(limits: dict[str, int], code: str) -> None:
    async with opened(ScriptedModel(), None, clock=None, recover=True, **limits) as room:
        before = await room.counts()
        refused = await room.call("graph_create", spec=WIDE)
        assert refused["error_code"] in ("SPEC_INVALID", "INPUT_TOO_LARGE", "INPUT_TOO_DEEP")
        assert not code or code in {issue["code"] for issue in refused["details"]["issues"]}
        assert await room.counts() == before


INPUTS: dict[str, tuple[Any, str]] = {
    "against the schema": ({"n": "x"}, "INPUT_INVALID"),
    "without what is required": ({}, "INPUT_INVALID"),
    "a reserved key": ({"n": 1, "__input__": 1}, "RESERVED_KEY"),
    "a book of the engine": ({"n": 1, "outputs": {}}, "RESERVED_KEY"),
    "ten megabytes": ({"n": 1, "x": "x" * 10_000_000}, "INPUT_TOO_LARGE"),
    "a lone surrogate": ({"n": 1, "x": "\ud800"}, "INPUT_INVALID"),
    "a lone surrogate in a key": ({"n": 1, "\udfff": 1}, "INPUT_INVALID"),
    "no number": ({"n": 1, "x": math.nan}, "INPUT_INVALID"),
    "no end": ({"n": 1, "x": math.inf}, "INPUT_INVALID"),
    "ten thousand levels": ({"n": 1, "x": deep(10_000)}, "INPUT_TOO_DEEP"),
    "a hundred thousand levels": ({"n": 1, "x": deep(100_000)}, "INPUT_TOO_DEEP"),
}


@pytest.mark.parametrize(("bad", "code"), INPUTS.values(), ids=INPUTS)
async def test_a_bad_input_is_refused_and_makes_no_run(bad: Any, code: str) -> None:
    model = ScriptedModel([Reply(text="fine")])
    graph = spec(llm("a", output_key="o"), edges="a>END", input_schema=SCHEMA)
    async with opened(model) as room:
        await room.create(graph)
        before = await room.counts()
        refused = await room.call("graph_run_start", graph_id="case", input=bad, idempotency_key="k")
        assert (refused["ok"], refused["error_code"]) == (False, code)
        assert await room.counts() == before
        assert await room.store.requests.get("k") is None
        assert model.calls == []
        assert (await room.run(graph, {"n": 1})).status == "completed"  # and the session lives


UNKNOWN: dict[str, tuple[str, Json, str]] = {
    "graph": ("graph_run_start", {"graph_id": "none", "input": {}}, "GRAPH_NOT_FOUND"),
    "version": ("graph_run_start", {"graph_id": "case", "graph_version": "sha256:0"}, "GRAPH_VERSION_NOT_FOUND"),
    "run to wait for": ("graph_run_wait", {"run_id": "none"}, "RUN_NOT_FOUND"),
    "run to cancel": ("graph_run_cancel", {"run_id": "none", "reason": "x"}, "RUN_NOT_FOUND"),
    "run's state": ("graph_run_state", {"run_id": "none"}, "RUN_NOT_FOUND"),
    "run's events": ("graph_run_events", {"run_id": "none"}, "RUN_NOT_FOUND"),
    "approval": ("graph_approval_get", {"approval_id": "none"}, "APPROVAL_NOT_FOUND"),
    "approval to decide": (
        "graph_approval_decide", {"approval_id": "none", "decision": "approve", "decided_by": "A"},
        "APPROVAL_NOT_FOUND",
    ),
    "argument": ("graph_run_wait", {"run": "none"}, "UNKNOWN_ARGUMENT"),
    "tool": ("graph_run_stat", {}, "TOOL_NOT_FOUND"),
}  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "code"), UNKNOWN.values(), ids=UNKNOWN)
async def test_what_is_not_there_is_said_so_and_nothing_changes(tool: str, arguments: Json, code: str) -> None:
    async with opened(ScriptedModel()) as room:
        run_id = await gated(room)
        before, log = await room.counts(), await room.log(run_id)
        refused = await room.call(tool, **arguments)
        assert (refused["ok"], refused["error_code"]) == (False, code)
        assert await room.counts() == before
        assert await room.log(run_id) == log


async def gated(room: Room) -> str:
    run_id = await room.start(spec(gate("h"), edges="h>END", output_key="h"), {})
    await room.reaches(run_id, "waiting")
    return run_id


async def test_a_folder_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    import sqlite3

    database = tmp_path / "agent-graph.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE graphs (name TEXT PRIMARY KEY, spec_json TEXT)")
        connection.execute("INSERT INTO graphs VALUES ('theirs', '{}')")
    connection.close()
    before = database.read_bytes()
    with pytest.raises(StoreForeign):
        async with open_app(load({"data_dir": str(tmp_path)}, environ={})):
            pass
    assert database.read_bytes() == before
