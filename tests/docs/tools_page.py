"""The page of the tools as it follows from the registry; its examples are those that the tools' descriptions hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.mcp_server.schemas import input_schema
from agent_graph.tools.registry import Tool
from agent_graph.tools.toolsets import shown

TOOLSETS = {
    "core": "Shown to every assistant.", "author": "For writing graphs.", "test": "For testing graphs.",
    "connect": "For connections.",
}  # fmt: skip
EXAMPLE = "Example: "


def described(tool: Tool) -> tuple[str, JsonObject]:
    """What a tool's description says, and the arguments of its example."""
    said, _, example = tool.description.rpartition(EXAMPLE)
    arguments, end = json.JSONDecoder().raw_decode(example)
    assert end == len(example), f"{tool.name}: the example is the last thing in its description"
    return said.strip(), arguments


def tools_page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Tools"
    yield ""
    yield "<!-- written from the code by `make golden` -->"
    yield ""
    yield "Every door has the same tools: an assistant calls them over MCP, a terminal with"
    yield '`agent-graph call TOOL JSON`. An answer is `{"ok": true, "data": {...}}`, a refusal `{"ok": false,'
    yield '"error_code", "error", "details"?, "retryable"}` with a code of [errors](errors.md).'
    yield ""
    yield "Over MCP an answer is cut at about 30 kB: `truncated` is true and `cut` names the places. Lists go on"
    yield "with `next_cursor`, events with theirs; a long text is read whole from `graph_run_state` or `graph_run_get`,"
    yield "in parts, each from the `next_offset` of the one before. What changes something takes an `idempotency_key`."
    yield "The examples are run by the tests, with ids that are there."
    for toolset, said in TOOLSETS.items():
        tools = shown([toolset])
        if tools:
            yield from ("", f"## Toolset `{toolset}`", "", said)
        for tool in tools:
            yield from _tool(tool)


def _tool(tool: Tool) -> Iterator[str]:
    said, example = described(tool)
    yield from ("", f"### {tool.name}", "", f"{said}", "")
    yield f"{_hints(tool)} Scope `{tool.scope}`."
    schema: Any = input_schema(tool.params)
    if schema["properties"]:
        yield from ("", "| argument | type | default | meaning |", "|---|---|---|---|")
    for name, rule in schema["properties"].items():
        needed = name in schema.get("required", [])
        default = "required" if needed else f"`{json.dumps(rule['default'])}`" if "default" in rule else ""
        yield f"| `{name}` | {_type(rule)} | {default} | {rule['description'].replace('|', chr(92) + '|')} |"
    yield from ("", "<!-- data: arguments of a tool -->", "```json", json.dumps(example), "```")


def _type(rule: Any) -> str:
    if "enum" in rule:
        return ", ".join(f"`{value}`" for value in rule["enum"])
    if "anyOf" in rule:
        return "any JSON"
    return str(rule["type"])


def _hints(tool: Tool) -> str:
    if tool.read_only:
        return "Only reads."
    words = ["Changes something"]
    words += ["can end or hide what is there"] if tool.destructive else []
    words += ["calling it twice does no more than once"] if tool.idempotent else []
    words += ["reaches model hosts"] if tool.open_world else []
    return "; ".join(words) + "."
