"""Starting runs in the console: of a stored graph, or of one made of a template by a form of its parameters."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.console.fields import PREFIX, fields, typed_object
from agent_graph.core.limits import DEFAULTS
from agent_graph.tools.deps import Deps
from tests.console.browser import Browser, House
from tests.fakes.opened import Tools
from tests.mcp_server.served import token_for
from tests.tools.specs import echo, keep

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["task"],
    "properties": {
        "task": {"type": "string", "maxLength": 100, "description": "What is to be done"},
        "long": {"type": "string", "default": "many words"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "share": {"type": "number"},
        "order": {"enum": ["asc", "desc", 7], "default": "asc"},
        "twice": {"type": "boolean", "default": True},
        "names": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
        "more": {"type": "object", "default": {"k": [1]}},
    },
}


def typed(**values: str) -> dict[str, str]:
    return {PREFIX + name: value for name, value in values.items()}


def read(**values: str) -> Any:
    return typed_object(SCHEMA, typed(**values), limits=DEFAULTS)


def test_each_kind_of_property_has_its_field_with_its_default() -> None:
    shown = {field.name: (field.kind, field.value) for field in fields(SCHEMA, None)}
    assert shown == {
        "task": ("line", ""), "long": ("text", "many words"), "count": ("number", "3"), "share": ("number", ""),
        "order": ("choice", "asc"), "twice": ("switch", "on"), "names": ("lines", "a\nb"),
        "more": ("json", '{"k":[1]}'),
    }  # fmt: skip
    assert fields({"type": "object"}, None) == fields(None, None) == fields({"properties": 3}, None) == ()


def test_what_is_typed_comes_back_as_the_schema_means_it() -> None:
    said = read(
        task="go", long="x", count="4", share="0.5", order="7", twice="on", names=" a \n\nb", more='{"k": null}'
    )
    assert said == {
        "task": "go", "long": "x", "count": 4, "share": 0.5, "order": 7, "twice": True, "names": ["a", "b"],
        "more": {"k": None},
    }  # fmt: skip


def test_what_is_left_empty_is_left_out_and_what_cannot_be_read_stays_a_text() -> None:
    assert read(task="go", long="", count=" ", order="", names="", more="") == {
        "task": "go",
        "long": "",
        "twice": False,
    }
    assert read(count="many", order="other", more="{") == {"count": "many", "long": "", "order": "other", "more": "{",
                                                          "twice": False}  # fmt: skip


async def test_a_template_is_drawn_and_started_by_its_form(ann: Browser, tools: Tools) -> None:
    page = await ann.get("/templates/map_reduce")
    assert "Drawing of the graph it makes" in page.html
    assert "hedgehog" in page.forms["start-form"]["input"]
    after = await ann.send(page, "start-form", name="mine", **{PREFIX + "width": "2", "input": '{"task": "x"}'})
    assert after.response.url.path.startswith("/runs/run-"), after.html
    graph = await tools.ok("graph_inspect", graph_id="mine")
    assert next(node for node in graph["nodes"] if node["id"] == "map")["config"]["max_parallelism"] == 2
    assert [run["graph_id"] for run in (await tools.ok("graph_run_list"))["runs"]] == ["mine"]
    again = await ann.send(page, "start-form", name="mine", **{PREFIX + "width": "2", "input": '{"task": "x"}'})
    assert again.response.url.path == after.response.url.path


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({PREFIX + "width": "none"}, "TEMPLATE_PARAMS_INVALID"), ({"input": "{"}, "INPUT_INVALID"),
        ({"name": "no name!"}, "SPEC_INVALID"),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_said_on_the_page_and_kept(
    ann: Browser, tools: Tools, fault: dict[str, str], code: str
) -> None:
    page = await ann.send(await ann.get("/templates/map_reduce"), "start-form", **{"thread_id": "t", **fault})
    assert (page.status, page.text("code")) == (400, f"{code}"), page.html
    assert page.forms["start-form"]["thread_id"] == "t"
    assert page.forms["start-form"] | fault == page.forms["start-form"]
    assert (await tools.ok("graph_run_list"))["runs"] == []
    assert (await tools.ok("graph_list"))["graphs"] == []


async def test_a_graph_of_that_name_is_not_replaced(ann: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo("map_reduce"))
    page = await ann.send(await ann.get("/templates/map_reduce"), "start-form")
    assert (page.status, page.text("code")) == (409, "GRAPH_VERSION_CONFLICT")
    assert (await tools.ok("graph_run_list"))["runs"] == []


async def test_a_graph_is_started_with_a_text_or_with_json(ann: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    for value, kind in (("[1, 2]", "text"), ('{"a": 1}', "json")):
        after = await ann.send(await ann.get("/graphs/keep"), "start-form", input=value, input_is=kind, thread_id="t1")
        assert after.text("notice") == "The run was started."
        run_id = after.response.url.path.removeprefix("/runs/")
        run = await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
        assert run["run"]["thread_id"] == "t1"
        given = (await tools.ok("graph_run_events", run_id=run_id))["events"][0]["input"]
        assert given == ({"a": 1} if kind == "json" else "[1, 2]")


async def test_a_graph_that_says_what_it_takes_asks_for_just_that(ann: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep("asks") | {"input_schema": SCHEMA})
    page = await ann.get("/graphs/asks")
    assert page.forms["start-form"][PREFIX + "count"] == "3"
    wrong = await ann.send(page, "start-form", **{PREFIX + "count": "12"})
    assert wrong.status == 400, wrong.html
    assert wrong.forms["start-form"][PREFIX + "count"] == "12"
    assert (await tools.ok("graph_run_list"))["runs"] == []
    started = await ann.send(page, "start-form", **{PREFIX + "task": "go"})
    assert started.response.url.path.startswith("/runs/run-")


async def test_who_may_only_look_sees_the_drawing_and_starts_nothing(house: House, deps: Deps, tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    async with house.browser() as eve:
        await eve.log_in(await token_for(deps, "eve", "runs:read"))
        for path in ("/templates/map_reduce", "/graphs/keep"):
            page = await eve.get(path)
            assert "runs:write" in page.text("lacks"), path
            assert "<svg" in page.html
            assert "start-form" not in page.forms
            forced = await eve.post(path, {"form_key": page.forms["/logout"]["form_key"], "input": "x", "name": "n"})
            assert (forced.status, forced.text("code")) == (403, "INSUFFICIENT_SCOPE"), path
    assert (await tools.ok("graph_run_list"))["runs"] == []
    assert [one["graph_id"] for one in (await tools.ok("graph_list"))["graphs"]] == ["keep"]


async def test_a_template_or_graph_that_is_not_there_is_not_found(ann: Browser) -> None:
    page = await ann.get("/templates/none")
    assert (page.status, page.text("code")) == (404, "TEMPLATE_NOT_FOUND")
    key = page.forms["/logout"]["form_key"]
    for path, code in (("/templates/none", "TEMPLATE_NOT_FOUND"), ("/graphs/none", "GRAPH_NOT_FOUND")):
        answer = await ann.post(path, {"form_key": key})
        assert (answer.status, answer.text("code")) == (404, code)
