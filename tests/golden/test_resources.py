"""Resources and prompts as a client is shown them, word for word; read the diff after `make golden`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_graph.mcp_server.prompts import PROMPTS
from agent_graph.mcp_server.prompts.serving import published
from agent_graph.mcp_server.resources.serving import resource_templates, static_resources
from agent_graph.mcp_server.resources.statement import read
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools, opened
from tests.tools.specs import gated

HERE = Path(__file__).parent
WRITE = os.environ.get("AGENT_GRAPH_GOLDEN") == "write"


def _agrees(path: Path, body: Any) -> bool:
    text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
    if WRITE:
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8") == text


def _dumped(row: Any) -> Any:
    return row.model_dump(by_alias=True, mode="json", exclude_none=True)


def test_the_resources_are_those_that_were_reviewed() -> None:
    listed = [_dumped(row) for row in static_resources() if not row.uri.startswith("graph://docs/")]
    assert _agrees(
        HERE / "resource_list.json",
        {"resources": listed, "resourceTemplates": [_dumped(row) for row in resource_templates()]},
    )  # fmt: skip


def test_the_prompts_are_those_that_were_reviewed() -> None:
    body = [{**_dumped(row), "words": PROMPTS[row.name].words.split("\n")} for row in published()]
    assert _agrees(HERE / "prompt_list.json", body)


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("graph", "graph://graphs/gated"),
        ("templates", "graph://templates"),
        ("template", "graph://templates/approval_gated_action"),
    ],
)
async def test_a_statement_is_the_one_that_was_reviewed(name: str, uri: str) -> None:
    async with opened() as deps:
        await Tools(deps).ok("graph_create", spec=gated())
        statement = await read(deps, uri, caller=Caller("assistant"))
        assert _agrees(HERE / f"resource_{name}.json", json.loads(statement.text))


@pytest.mark.parametrize("uri", ["graph://schema/spec-v2", "graph://docs/index"])
async def test_what_a_shipped_resource_says_of_itself_is_what_was_reviewed(uri: str) -> None:
    """Beside its data, which has tests of its own."""
    async with opened() as deps:
        statement = json.loads((await read(deps, uri, caller=Caller("assistant"))).text)
        del statement["data"]
        assert _agrees(HERE / f"resource_{uri.rpartition('/')[2]}.json", statement)
