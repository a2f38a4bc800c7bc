"""What an assistant is shown, word for word; a wanted change is read as a diff after `make golden`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from agent_graph.mcp_server.instructions import INSTRUCTIONS
from agent_graph.mcp_server.server import published
from agent_graph.tools.toolsets import shown

HERE = Path(__file__).parent
WRITE = os.environ.get("AGENT_GRAPH_GOLDEN") == "write"


def _agrees(path: Path, text: str) -> bool:
    if WRITE:
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8") == text


def test_the_tool_list_is_the_one_that_was_reviewed() -> None:
    tools = [
        tool.model_dump(by_alias=True, mode="json", exclude_none=True)
        for tool in published(shown(["core"]))
    ]  # fmt: skip
    assert _agrees(HERE / "tool_list.json", json.dumps(tools, indent=1, ensure_ascii=False) + "\n")


def test_the_instructions_are_those_that_were_reviewed() -> None:
    assert _agrees(HERE / "instructions.txt", INSTRUCTIONS + "\n")
