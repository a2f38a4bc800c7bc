"""The page on resources and prompts names what there is, and no more."""

from __future__ import annotations

import re

from agent_graph.mcp_server.prompts import PROMPTS
from agent_graph.mcp_server.resources.table import TABLE, Read
from tests.docs.pages import ROOT, table

PAGE = ROOT / "docs" / "reference" / "resources.md"


def test_every_address_is_documented_with_its_tool() -> None:
    _, rows = table(PAGE, "resources")
    tools = [row.source.tool if isinstance(row.source, Read) else "" for row in TABLE]
    assert [(row[0].strip("`"), row[2].strip("`")) for row in rows] == [
        (row.uri, tool) for row, tool in zip(TABLE, tools, strict=True)
    ]  # fmt: skip


def test_every_prompt_is_documented_with_what_it_asks_for() -> None:
    _, rows = table(PAGE, "prompts")
    asked = {row[0].strip("`"): re.findall(r"`(\w+)`(\?)?", row[1]) for row in rows}
    assert asked == {
        name: [(one.name, "" if one.required else "?") for one in prompt.arguments] for name, prompt in PROMPTS.items()
    }
