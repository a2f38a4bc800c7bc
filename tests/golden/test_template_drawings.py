"""Every template as it is drawn, word for word; a wanted change is read as a diff after `make golden`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.render import mermaid
from agent_graph.core.template import instantiate
from agent_graph.engine.templates import templates

GOLDEN = Path(__file__).parent / "diagrams" / "templates"


@pytest.mark.parametrize("template_id", templates())
def test_a_template_is_drawn_as_before(template_id: str) -> None:
    compiled = compile_graph(instantiate(templates()[template_id], template_id, params={}))
    assert compiled.graph is not None
    drawn = mermaid(compiled.graph).text
    file = GOLDEN / f"{template_id}.mmd"
    if os.environ.get("AGENT_GRAPH_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(drawn, encoding="utf-8")
    assert drawn == file.read_text(encoding="utf-8")


def test_no_drawing_is_left_of_a_template_that_is_gone() -> None:
    assert sorted(file.stem for file in GOLDEN.glob("*.mmd")) == list(templates())
