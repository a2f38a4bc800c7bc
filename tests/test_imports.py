"""What may be in memory before it is needed; measured in fresh processes, because imports cannot be undone."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "aiosqlite", "httpx", "httpx2", "jsonschema", "mcp", "networkx", "pydantic", "re2", "rich", "starlette", "typer",
    "uvicorn", "xllamacpp",
}  # fmt: skip
RUNNING_WITHOUT = {"httpx", "httpx2", "jsonschema", "mcp", "networkx", "pydantic", "rich", "starlette", "typer"}


def loaded_by(code: str) -> set[str]:
    """The top-level modules in a fresh interpreter after `code`."""
    program = (
        f"{code}\nimport sys\nprint(' '.join({{name.partition('.')[0] for name in sys.modules}}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("module", ["agent_graph", "agent_graph.errors", "agent_graph.settings"])
def test_importing_the_package_brings_nothing_heavy(module: str) -> None:
    assert not loaded_by(f"import {module}") & HEAVY


@pytest.mark.parametrize(
    "module",
    [
        "agent_graph.core.compile",
        "agent_graph.core.scheduler",
        "agent_graph.core.nodes",
        "agent_graph.engine.runner",
        "agent_graph.engine.supervisor",
    ],
)
def test_what_loads_and_drives_a_stored_graph_brings_neither_models_nor_protocols(module: str) -> None:
    assert not loaded_by(f"import {module}") & RUNNING_WITHOUT


def test_the_version_is_told_without_the_engine() -> None:
    code = "import sys; sys.argv = ['agent-graph', '--version']\nfrom agent_graph.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass"
    assert not loaded_by(code) & {"httpx2", "mcp", "networkx", "pydantic", "jsonschema", "aiosqlite"}
