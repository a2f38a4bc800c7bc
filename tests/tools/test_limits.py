"""Every limit in the table, set to something small, changes what happens, with its code and nothing made or changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from typing import Any

import pytest

from agent_graph.core.jsonvalue import size
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, gated, keep

Case = Callable[[], Awaitable[None]]
CASES: dict[str, list[Case]] = {}


def of(name: str) -> Callable[[Case], Case]:
    """A case of the limit `name`."""

    def add(case: Case) -> Case:
        CASES.setdefault(name, []).append(case)
        return case

    return add


@asynccontextmanager
async def tools(text: str = "fine", **limits: int) -> AsyncIterator[Tools]:
    model = ScriptedModel([], default=Reply(text=text))
    async with opened(model, limits=replace(DEFAULTS, **limits)) as deps:
        yield Tools(deps)


async def issues_of(raw: dict[str, Any], **limits: int) -> set[tuple[str, str]]:
    """(code, pointer) of what a spec is refused with; without the limit it is taken."""
    async with tools() as free:
        await free.ok("graph_create", spec=raw)
    async with tools(**limits) as bound:
        refusal = await bound.refused("graph_create", spec=raw)
        assert refusal["error_code"] == "SPEC_INVALID"
        return {(issue["code"], issue["pointer"]) for issue in refusal["details"]["issues"]}


async def failed_run(raw: dict[str, Any], value: Any = "hello", *, text: str = "fine", **limits: int) -> Any:
    """The error of a run, whose record keeps the limits; without them it completes."""
    for bounds in ({}, limits):
        async with tools(text, **bounds) as here:
            await here.ok("graph_create", spec=raw)
            run = await here.ended(raw["name"], value)
            events = (await here.ok("graph_run_events", run_id=run["run_id"]))["events"]
            assert events[0].get("limits", {}) == bounds
            assert run["status"] == ("failed" if bounds else "completed"), run
    return run["error"]


async def refused_input(value: Any, raw: dict[str, Any] | None = None, **limits: int) -> str:
    """The code a run is refused with, by what is not there without the limit."""
    raw = raw or keep()
    async with tools() as free:
        await free.ok("graph_create", spec=raw)
        await free.run(raw["name"], value)
    async with tools(**limits) as bound:
        await bound.ok("graph_create", spec=raw)
        return str((await bound.refused("graph_run_start", graph_id=raw["name"], input=value))["error_code"])


@of("spec_bytes")
async def a_spec_of_more_bytes_is_refused() -> None:
    raw = {**keep(), "description": "x" * 1_000}
    assert await issues_of(raw, spec_bytes=1_000) == {("LIMIT_EXCEEDED", "")}


@of("nodes")
async def a_graph_of_more_nodes_is_refused() -> None:
    assert await issues_of(council(), nodes=2) == {("LIMIT_EXCEEDED", "/nodes")}


@of("edges")
async def a_graph_of_more_edges_is_refused() -> None:
    assert await issues_of(council(), edges=1) == {("LIMIT_EXCEEDED", "/edges")}


def council() -> dict[str, Any]:
    names = ("a", "b", "c")
    return {
        "name": "steps", "entry": "a", "nodes": [{"id": name, "type": "passthrough"} for name in names],
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
    }  # fmt: skip


@of("regex_chars")
async def longer_patterns_are_refused_wherever_they_stand() -> None:
    rule = {"path": "x", "op": "regex", "value": "a" * 20}
    routed = {
        "name": "patterns", "entry": "r",
        "input_schema": {"type": "string", "pattern": "b" * 20},
        "nodes": [
            {"id": "r", "type": "router", "config": {
                "rules": [{"all": [rule], "targets": ["l"]}], "default": ["l"]}},
            {"id": "l", "type": "loop", "config": {"entry": "say", "exit": "j", "until": {"not": rule}}},
            {"id": "say", "type": "llm", "config": {
                "prompt": "x", "output_schema": {"type": "string", "pattern": "c" * 20, "maxLength": 50}}},
            {"id": "j", "type": "join", "config": {"inputs": ["say"], "mode": "quorum", "of": rule}},
        ],
        "edges": [{"from": "say", "to": "l"}],
    }  # fmt: skip
    assert await issues_of(routed, regex_chars=19) == {
        ("REGEX_INVALID", "/input_schema/pattern"),
        ("REGEX_INVALID", "/nodes/0/config/rules/0/all/0/value"),
        ("REGEX_INVALID", "/nodes/1/config/until/not/value"),
        ("REGEX_INVALID", "/nodes/2/config/output_schema/pattern"),
        ("REGEX_INVALID", "/nodes/3/config/of/value"),
    }


@of("input_bytes")
async def a_longer_input_is_refused() -> None:
    assert await refused_input("x" * 99, input_bytes=100) == "INPUT_TOO_LARGE"


@of("json_depth")
async def a_deeper_input_is_refused() -> None:
    assert await refused_input({"a": [[[[[[[1]]]]]]]}, json_depth=7) == "INPUT_TOO_DEEP"


@of("json_depth")
async def a_deeper_spec_and_a_deeper_text_of_one_are_refused() -> None:
    deep = {**keep(), "input_schema": {"items": {"items": {"items": {"items": {}}}}}}
    assert await issues_of(deep, json_depth=5) == {("LIMIT_EXCEEDED", "")}
    async with tools(json_depth=5) as bound:
        refusal = await bound.refused("graph_create", spec='{"name": [[[[[[]]]]]]}')
        assert refusal["error_code"] == "INPUT_TOO_DEEP"


@of("json_depth")
async def a_higher_depth_lets_deeper_texts_in() -> None:
    text = '{"deep": ' + "[" * 300 + "]" * 300 + "}"
    async with tools(json_depth=400) as free:
        await free.ok("graph_create", spec=keep())
        run = await free.ended("keep", text)
        assert isinstance((await free.ok("graph_run_state", run_id=run["run_id"], path=""))["value"]["deep"], list)


@of("prompt_bytes")
async def a_longer_prompt_fails_its_node() -> None:
    error = await failed_run(echo(), "x" * 100, prompt_bytes=99)
    assert (error["code"], error["details"]) == ("VALUE_TOO_LARGE", {"limit": 99})


@of("prompt_bytes")
async def a_longer_prompt_of_a_gate_fails_its_node() -> None:
    async with tools(prompt_bytes=10) as bound:
        await bound.ok("graph_create", spec=gated())
        assert (await bound.ended("gated", {"draft": "d"}))["error"]["code"] == "VALUE_TOO_LARGE"


@of("value_bytes")
async def a_larger_value_fails_its_node() -> None:
    error = await failed_run(echo(), text="y" * 100, value_bytes=101)
    assert error["code"] == "VALUE_TOO_LARGE"
    assert "101 bytes (value_bytes)" in error["message"]


@of("state_bytes")
async def a_larger_state_fails_its_node_and_is_kept() -> None:
    error = await failed_run(echo(), {"kept": "x" * 90}, text="y" * 100, state_bytes=200)
    assert error["code"] == "VALUE_TOO_LARGE"
    assert "200 bytes (state_bytes)" in error["message"]


@of("state_bytes")
async def an_input_larger_than_a_state_may_be_is_refused() -> None:
    assert await refused_input({"a": "x" * 100}, state_bytes=100) == "INPUT_TOO_LARGE"


@of("active_runs")
async def no_more_runs_are_driven_at_once() -> None:
    release = asyncio.Event()

    async def answer(_call: Any) -> str:
        await release.wait()
        return "fine"

    async with opened(ScriptedModel(answer), limits=replace(DEFAULTS, active_runs=1, queued_runs=1)) as deps:
        here = Tools(deps)
        await here.ok("graph_create", spec=echo())
        for _ in range(2):
            await here.run("echo")
        assert deps.supervisor.load() == {"active": 1, "queued": 1}
        refusal = await here.refused("graph_run_start", graph_id="echo", input="x")
        assert refusal["error_code"] == "RUN_CAPACITY"
        release.set()


CASES["queued_runs"] = CASES["active_runs"]  # the queue is what those wait in


@of("page")
async def no_page_has_more_rows() -> None:
    async with tools(page=1) as bound:
        for name in ("one", "two"):
            await bound.ok("graph_create", spec=keep(name))
            await bound.ended(name)
        run_id = (await bound.ok("graph_run_list"))["runs"][0]["run_id"]
        for name, rows, arguments in (
            ("graph_list", "graphs", {}), ("graph_run_list", "runs", {}),
            ("graph_run_events", "events", {"run_id": run_id}),
        ):  # fmt: skip
            page = await bound.ok(name, **arguments)
            assert (len(page[rows]), page["truncated"]) == (1, True), name


@of("wait_ms")
async def no_call_waits_longer() -> None:
    async with tools(wait_ms=1) as bound:
        await bound.ok("graph_create", spec=gated())
        run_id = await bound.run("gated", {"draft": "d"})
        async with asyncio.timeout(5):
            assert (await bound.ok("graph_run_wait", run_id=run_id, timeout_ms=600_000))["timed_out"]
            await bound.ok("graph_run_wait", run_id=run_id, until="waiting")
            seen = (await bound.ok("graph_run_events", run_id=run_id))["next_cursor"]
            assert (await bound.ok("graph_run_events", run_id=run_id, cursor=seen, wait_ms=600_000))["events"] == []


@of("result_bytes")
async def no_answer_is_longer() -> None:
    async with tools("y" * 20_000, result_bytes=8_000) as bound:
        await bound.ok("graph_create", spec=echo())
        run = await bound.ended("echo")
        envelope = await bound.envelope("graph_run_state", run_id=run["run_id"], path="")
        assert size(envelope) <= 8_000
        assert envelope["ok"]
        assert "truncated" in str(envelope)


@of("witness_bytes")
async def no_witness_is_larger() -> None:
    async with tools(witness_bytes=8) as bound:
        await bound.ok("graph_source_witness_capture", locator="a page", content="x" * 8)
        refused = await bound.refused("graph_source_witness_capture", locator="a page", content="x" * 9)
        assert (refused["error_code"], refused["details"]["limit"]) == ("INPUT_TOO_LARGE", 8)


def test_every_limit_has_a_case() -> None:
    assert set(CASES) == {f.name for f in fields(Limits)}


EACH = {case.__name__: case for cases in CASES.values() for case in cases}


@pytest.mark.parametrize("name", EACH)
async def test_a_limit_that_is_set_is_obeyed(name: str) -> None:
    await EACH[name]()
