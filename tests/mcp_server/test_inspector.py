"""The MCP Inspector, which validates answers as the TypeScript clients do, lists the tools and calls them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_server import inspector
from tests.mcp_server.process import SERVER, environment
from tests.mcp_server.whole_path import CORE

pytestmark = [pytest.mark.process, pytest.mark.timeout(inspector.INSTALL_S + 120)]


@pytest.fixture(scope="module")
def command() -> Path:
    try:
        return inspector.installed()
    except inspector.Missing as reason:
        pytest.skip(str(reason))


def _inspect(command: Path, folder: Path, script: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [str(command), "--cli", *SERVER, "--data-dir", str(folder), *arguments], env=environment(script),
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_lists_the_tools_and_starts_a_run(command: Path, tmp_path: Path, script: Path) -> None:
    folder = tmp_path / "data"
    listed = _inspect(command, folder, script, "--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]] == list(CORE)
    made = _inspect(
        command, folder, script, "--method", "tools/call", "--tool-name", "graph_template_instantiate",
        "--tool-arg", "template_id=parallel_council", "register=true",
    )  # fmt: skip
    assert made["structuredContent"]["ok"] is True, made
    run = _inspect(
        command, folder, script, "--method", "tools/call", "--tool-name", "graph_run_start",
        "--tool-arg", "graph_id=parallel_council", "input=Should we?",
    )  # fmt: skip
    assert run["structuredContent"]["data"]["status"] == "accepted"


def test_a_refusal_reaches_it_whole(command: Path, tmp_path: Path, script: Path) -> None:
    refused = _inspect(
        command, tmp_path / "data", script, "--method", "tools/call", "--tool-name", "graph_run_get",
        "--tool-arg", "run_id=run-none",
    )  # fmt: skip
    assert (refused["isError"], refused["structuredContent"]["error_code"]) == (True, "RUN_NOT_FOUND")
