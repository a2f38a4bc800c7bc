"""What is published is in the form that every client keeps, and the lint that says so finds what it is for."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.jsonvalue import compact
from agent_graph.mcp_server import schema_lint
from agent_graph.mcp_server.instructions import INSTRUCTIONS, MOST_BYTES
from agent_graph.mcp_server.server import NAME, published
from agent_graph.tools.keeping import OPERATOR
from agent_graph.tools.registry import TOOLS as REGISTERED
from agent_graph.tools.toolsets import ORDER, shown

TOOLS = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in published(shown(["core"]))]
OTHERS = [
    tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    for tool in published(shown(sorted({tool.toolset for tool in REGISTERED.values()} - {"core", OPERATOR})))
]
CHANGING = {
    "graph_create", "graph_execute", "graph_run_start", "graph_run_cancel", "graph_run_resume", "graph_run_signal",
    "graph_approval_request", "graph_approval_decide", "graph_template_instantiate",
    "graph_source_witness_capture",
}  # fmt: skip


@pytest.mark.parametrize("tool", [*TOOLS, *OTHERS], ids=[tool["name"] for tool in [*TOOLS, *OTHERS]])
def test_MC02_no_client_has_a_reason_to_drop_the_tool(tool: dict[str, Any]) -> None:
    assert schema_lint.tool_faults(tool) == []


def test_the_list_is_small_and_always_in_the_same_order() -> None:
    size = len(compact({"tools": TOOLS}).encode())
    core = ORDER.index("graph_status") + 1
    assert len(TOOLS) <= core
    assert size * core / len(TOOLS) < schema_lint.LIST_BYTES, "also with those of core that are still to come"
    names = [tool["name"] for tool in [*TOOLS, *OTHERS]]
    assert names == [name for name in ORDER if name in names]


def test_every_registered_tool_has_its_place_and_none_of_the_operators_is_shown() -> None:
    operators = {name for name, tool in REGISTERED.items() if tool.toolset == OPERATOR}
    assert set(REGISTERED) - operators <= set(ORDER)
    assert not operators & set(ORDER)


@pytest.mark.parametrize("key", ["key", "anthropic/maxResultSizeChars", "io.modelcontextprotocol/ui", "com.a-b/x_1.y"])
def test_a_key_of_meta_as_the_protocol_has_it_is_no_fault(key: str) -> None:
    assert schema_lint.tool_faults({**TOOLS[0], "_meta": {key: 1}}) == []


def test_the_servers_name_leaves_room_for_the_tools() -> None:
    assert len(NAME) <= 12


def test_the_instructions_are_short_and_say_what_matters() -> None:
    assert len(INSTRUCTIONS.encode()) <= MOST_BYTES
    for word in ("Never poll", "graph_run_wait", "Never decide yourself", "graph_template_instantiate"):
        assert word in INSTRUCTIONS


@pytest.mark.parametrize("tool", TOOLS, ids=[tool["name"] for tool in TOOLS])
def test_what_changes_something_says_so_and_takes_an_idempotency_key(tool: dict[str, Any]) -> None:
    changes = tool["name"] in CHANGING
    assert tool["annotations"]["readOnlyHint"] is not changes
    assert ("idempotency_key" in tool["inputSchema"]["properties"]) is changes


def test_MC01_values_of_any_kind_have_their_types_spelled_out() -> None:
    by_name = {tool["name"]: tool["inputSchema"]["properties"] for tool in TOOLS}
    assert [branch["type"] for branch in by_name["graph_run_start"]["input"]["anyOf"]][:4] == [
        "object", "string", "number", "boolean",
    ]  # fmt: skip
    assert by_name["graph_create"]["spec"]["type"] == "object"


GOOD: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def _with(property_: Any, **more: Any) -> dict[str, Any]:
    return {**GOOD, "properties": {"x": property_}, **more}


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (None, "no schema"),
        ({**GOOD, "anyOf": [GOOD]}, "anyOf at the root"),
        ({**GOOD, "type": "array"}, "no object"),
        ({"type": "object"}, "no properties"),
        ({"type": "object", "properties": {}}, "additionalProperties"),
        ({**GOOD, "required": None}, "required"),
        ({**GOOD, "required": ["y"]}, "required"),
        ({**GOOD, "$defs": {}}, "$defs"),
        (_with(True), "in place of a schema"),
        (_with({"type": "string"}), "no description"),
        (_with({"description": "d"}), "no type"),
        (_with({"description": "d", "type": ["string", "null"]}), "a list of types"),
        (_with({"description": "d", "type": "null"}), "the type 'null'"),
        (_with({"description": "d", "$ref": "#/$defs/X"}), "$ref"),
        (_with({"description": "d", "type": "string", "$dynamicRef": "#x"}), "$dynamicRef"),
        (_with({"description": "d", "type": "string", "not": {"type": "string"}}), "not"),
        (_with({"description": "d", "type": "object", "patternProperties": {}}), "patternProperties"),
        (_with({"description": "d", "type": "array"}), "without items"),
        (_with({"description": "d", "type": "array", "items": {"type": "string"}, "prefixItems": []}), "prefixItems"),
        (_with({"description": "d", "type": "string", "default": None}), "null as default"),
        (_with({"description": "d", "type": "integer", "enum": [1]}), "enum"),
        (_with({"description": "d", "anyOf": [{"type": "string"}, {"type": "null"}]}), "the type 'null'"),
        (_with({"description": "d", "anyOf": [{"anyOf": [{"type": "string"}]}]}), "a union in a union"),
        (_with({"description": "d", "type": "array", "items": {}}), "no type"),
        (_with({"description": "d", "type": "object", "additionalProperties": {}}), "no type"),
        (_with({"description": "d", "type": "string", "maxLength": "long"}), "2020-12"),
    ],
)
def test_the_lint_finds(schema: Any, fault: str) -> None:
    assert any(fault in found for found in schema_lint.schema_faults(schema, closed=True))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "graph.create"}, "the name"),
        ({"name": "g" * 41}, "the name"),
        ({"description": "x" * 601}, "601 characters"),
        ({"description": "Does it."}, "no example"),
        ({"title": ""}, "no title"),
        ({"annotations": {}}, "readOnlyHint"),
        ({"annotations": {"readOnlyHint": True, "destructiveHint": True}}, "destroy"),
        ({"_meta": {"_internal": {}}}, "_meta"),
        ({"_meta": {"one word/key": {}}}, "_meta"),
        ({"outputSchema": None}, "outputSchema: there is no schema"),
    ],
)
def test_the_lint_finds_in_a_tool(change: dict[str, Any], fault: str) -> None:
    assert any(fault in found for found in schema_lint.tool_faults({**TOOLS[0], **change}))


def test_what_a_model_refers_to_is_written_in_its_place() -> None:
    from pydantic import BaseModel, Field

    from agent_graph.mcp_server.schemas import input_schema

    class Inner(BaseModel):
        n: int = Field(description="d")

    class Outer(BaseModel):
        one: Inner = Field(description="one of them")
        many: list[Inner] = Field(description="some of them")

    schema: Any = input_schema(Outer)
    assert schema_lint.schema_faults(schema, closed=True) == []
    assert schema["properties"]["many"]["items"]["properties"]["n"] == {"description": "d", "type": "integer"}
    assert schema["properties"]["one"]["description"] == "one of them"
    assert schema["required"] == ["one", "many"]
