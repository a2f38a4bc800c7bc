"""No false alarms: graphs that are right are told nothing but infos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.template import instantiate
from agent_graph.engine.templates import templates

ROOT = Path(__file__).parent.parent.parent
SOUND = sorted((Path(__file__).parent / "sound").glob("*.json"))
EXAMPLES = [
    path for path in sorted((ROOT / "examples").rglob("*.json"))
    if "nodes" in json.loads(path.read_text(encoding="utf-8"))
]  # fmt: skip


def alarms(spec: Any) -> list[str]:
    found = compile_graph(spec)
    said = [f"{issue.code} at {issue.pointer}: {issue.message}" for issue in found.issues if issue.severity != "info"]
    assert found.graph is not None or said
    return said


def test_the_corpus_is_large_and_every_graph_in_it_decides_something() -> None:
    specs = [json.loads(path.read_text(encoding="utf-8")) for path in SOUND]
    assert len(specs) >= 25
    for spec in specs:
        assert len(spec["nodes"]) >= 8
        assert {node["type"] for node in spec["nodes"]} & {"router", "loop"}


@pytest.mark.parametrize("path", [*SOUND, *EXAMPLES], ids=lambda path: path.stem)
def test_a_sound_graph_gives_no_errors_and_no_warnings(path: Path) -> None:
    assert alarms(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("name", list(templates()))
def test_a_template_gives_no_errors_and_no_warnings(name: str) -> None:
    template = templates()[name]
    assert alarms(instantiate(template, name, params=template.sample["params"])) == []
