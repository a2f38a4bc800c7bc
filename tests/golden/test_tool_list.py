"""What an assistant is shown, word for word; a wanted change is read as a diff after `make golden`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from agent_graph.mcp_server import proxy_facts
from agent_graph.mcp_server.instructions import INSTRUCTIONS
from agent_graph.mcp_server.server import build, published
from agent_graph.tools.toolsets import shown
from tests.fakes.opened import opened

HERE = Path(__file__).parent
WRITE = os.environ.get("AGENT_GRAPH_GOLDEN") == "write"


def _agrees(path: Path, text: str) -> bool:
    if WRITE:
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8") == text


PRINTS = """
import sys
from tests.golden.test_tool_list import text
sys.stdout.buffer.write(text().encode())
"""


def text() -> str:
    """Every tool that can be shown, as ``tools/list`` shows it."""
    tools = [
        tool.model_dump(by_alias=True, mode="json", exclude_none=True)
        for tool in published(shown(["core", "author", "test", "connect"]))
    ]  # fmt: skip
    return json.dumps(tools, indent=1, ensure_ascii=False) + "\n"


def test_the_tool_list_is_the_one_that_was_reviewed() -> None:
    assert _agrees(HERE / "tool_list.json", text())


async def test_what_a_front_says_first_is_what_the_server_says() -> None:
    async with opened() as deps, Client(build(deps), mode="legacy") as client:
        said = client.session.initialize_result
    assert said is not None
    body = said.model_dump(by_alias=True, mode="json", exclude_none=True)
    facts = {
        "capabilities": body["capabilities"],
        "server_info": {name: value for name, value in body["serverInfo"].items() if name != "version"},
        "versions": list(HANDSHAKE_PROTOCOL_VERSIONS),
    }
    assert _agrees(Path(proxy_facts.FILE), json.dumps(facts, indent=1) + "\n")


@pytest.mark.timeout(60)  # a process of its own, on a busy machine
@pytest.mark.parametrize("seed", ["0", "4711"])
def test_another_process_says_it_to_the_byte(seed: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", PRINTS], check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}
    )
    assert told.stdout.decode() == (HERE / "tool_list.json").read_text(encoding="utf-8")


def test_the_instructions_are_those_that_were_reviewed() -> None:
    assert _agrees(HERE / "instructions.txt", INSTRUCTIONS + "\n")
