"""Every block of every page is checked by what it is: specs compile, scripts are read, diagrams are drawn."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agent_graph.cli.main import commands as commands_of
from agent_graph.core.compile import compile_graph
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.settings import SETTINGS, load
from tests.docs.pages import NAMES, PAGES, Block, blocks

BLOCKS = [block for page in PAGES for block in blocks(page)]
TOML = [block for block in BLOCKS if block.language == "toml"]
JSON = [block for block in BLOCKS if block.language == "json"]
DRAWN = [block for block in BLOCKS if block.language == "mermaid"]
KNOWN = {
    "sh": "test_shell", "json": "here", "mermaid": "here", "toml": "here", "text": "test_shell, test_scheduling",
    "python": "test_receiver",
}  # fmt: skip
"""What a block may be, and the test that looks at it."""


def names(found: list[Block]) -> list[str]:
    return [block.name for block in found]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert not Counter(block.language for block in blocks(page)).keys() - KNOWN.keys()


@pytest.mark.parametrize("block", TOML, ids=names(TOML))
def test_a_toml_block_is_a_settings_file_or_the_profile_it_is_marked_as(block: Block, tmp_path: Path) -> None:
    profiles = [one for one in TOML if one.mark.startswith("profile: ")]
    for one in profiles:
        written = tmp_path / "policies" / f"{one.mark.partition(': ')[2]}.toml"
        written.parent.mkdir(exist_ok=True)
        written.write_text(one.text, encoding="utf-8")
    if block in profiles:
        assert block.mark.partition(": ")[2] in load({"data_dir": str(tmp_path)}, environ={}).policies.own
        return
    (tmp_path / "settings.toml").write_text(block.text, encoding="utf-8")
    assert "settings.toml" in load({"data_dir": str(tmp_path)}, environ={}).sources.values()


@pytest.mark.parametrize("block", JSON, ids=names(JSON))
def test_a_json_block_is_a_graph_a_script_a_clients_configuration_or_says_what_else(
    block: Block, tmp_path: Path
) -> None:
    body: Any = json.loads(block.text)
    if "nodes" in body:
        compiled = compile_graph(body)
        assert compiled.graph is not None, compiled.issues
        assert not [issue for issue in compiled.issues if issue.severity == "error"]
    elif "replies" in body:
        script = tmp_path / "script.json"
        script.write_text(block.text, encoding="utf-8")
        ScriptedModel.from_file(script)
    elif "mcpServers" in body or "servers" in body:
        server = body.get("mcpServers", body.get("servers"))["agent-graph"]
        assert server["command"].endswith("/.venv/bin/agent-graph")
        assert server["args"][0] == "mcp"
        mcp = get_command(commands_of()).commands["mcp"]  # type: ignore[attr-defined]  # it is a group
        assert {each for each in server["args"] if each.startswith("-")} <= {o for p in mcp.params for o in p.opts}
        assert set(server.get("env", {})) <= {setting.env for setting in SETTINGS}
    else:
        assert block.mark.startswith("data: "), "say in a comment above the block what it is"


@pytest.mark.parametrize("block", DRAWN, ids=names(DRAWN))
def test_a_diagram_is_mermaid(block: Block) -> None:
    merman = pytest.importorskip("merman", reason="the parser `merman` is not installed (extra `dev`)")
    verdict = merman.MermanEngine(None, merman.MermanEngineServices()).validate(block.text, None)
    assert verdict.valid, verdict.error


@pytest.mark.parametrize("page", [page for page in PAGES if page.name == "scheduling.md"])
def test_the_diagram_above_a_graph_has_its_nodes(page: Path) -> None:
    merman = pytest.importorskip("merman", reason="the parser `merman` is not installed (extra `dev`)")
    engine = merman.MermanEngine(None, merman.MermanEngineServices())
    found = blocks(page)
    pairs = [(a, b) for a, b in pairwise(found) if b.mark.startswith("graph: ")]
    assert pairs
    for above, graph in pairs:
        drawn = {node["label"] for node in json.loads(engine.parse_json(above.text, None))["nodes"]} - {"END"}
        assert drawn == {node["id"] for node in json.loads(graph.text)["nodes"]}, graph.name
