"""What may be in memory before it is needed; measured in fresh processes, because imports cannot be undone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.template import instantiate
from agent_graph.engine.templates import get

HEAVY = {
    "aiosqlite", "httpx", "httpx2", "jsonschema", "mcp", "networkx", "pydantic", "re2", "rich", "starlette", "typer",
    "uvicorn", "xllamacpp",
}  # fmt: skip
RUNNING_WITHOUT = {
    "annotated_types", "httpx", "httpx2", "jsonschema", "mcp", "networkx", "pydantic", "rich", "starlette", "typer",
}  # fmt: skip


DRIVE = """
import json, pathlib
from agent_graph.core import events as e
from agent_graph.core.compile import load_graph
from agent_graph.core.effects import ModelAnswer, answer_to_json
from agent_graph.core.scheduler import Record, decide, evolve, new_run

stored = json.loads(pathlib.Path({path!r}).read_text(encoding="utf-8"))
graph = load_graph(stored["spec"], stored["version"], stored["compiled"])
run = new_run()

def tell(fact):
    evolve(graph, run, e.Event(run.seq, 0, fact))

tell(e.RunAccepted("r", graph.name, graph.version, "a question"))
tell(e.RunStarted())
while actions := decide(graph, run):
    for action in actions:
        if isinstance(action, Record):
            tell(action.fact)
        else:
            run.hand_over(action.firing)
            tell(e.ModelAnswered(action.firing, answer_to_json(ModelAnswer({text!r})), action.attempt))
assert run.status == "completed", (run.status, run.error)
"""
"""Loads a stored graph and drives it to its end, every model saying the same."""


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
        "agent_graph.store.sqlite",
    ],
)
def test_what_loads_and_drives_a_stored_graph_brings_neither_models_nor_protocols(module: str) -> None:
    assert not loaded_by(f"import {module}") & RUNNING_WITHOUT


def test_a_stored_council_is_driven_to_its_end_without_them(tmp_path: Path) -> None:
    made = compile_graph(instantiate(get("parallel_council"), "council", params={}))
    assert made.graph
    stored = {"spec": made.graph.spec, "version": made.graph.version, "compiled": made.compiled}
    path = tmp_path / "stored.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert not loaded_by(DRIVE.format(path=str(path), text="one more thought")) & RUNNING_WITHOUT


def test_the_version_is_told_without_the_engine() -> None:
    code = "import sys; sys.argv = ['agent-graph', '--version']\nfrom agent_graph.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass"
    assert not loaded_by(code) & {"httpx2", "mcp", "networkx", "pydantic", "jsonschema", "aiosqlite"}
