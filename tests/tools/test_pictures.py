"""graph_render as a picture: what is drawn, what a label cannot do, and what is too large."""

from __future__ import annotations

import base64
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from agent_graph.mcp_server.answers import answer
from agent_graph.tools.pictures import NODES
from agent_graph.tools.registry import success
from tests.tools.conftest import Tools

HOSTILE = '</svg><script>alert(1)</script><img src=x onerror="alert(2)"> <a href="javascript:alert(3)">'
SVG = "{http://www.w3.org/2000/svg}"
HARMLESS = {"svg", "style", "defs", "marker", "filter", "feDropShadow", "g", "path", "rect", "circle", "ellipse",
            "polygon", "line", "polyline", "text", "tspan", "title", "desc"}  # fmt: skip


def chain(length: int, label: str = "") -> dict[str, Any]:
    nodes = [{"id": f"n{place}", "type": "passthrough", "label": label or f"step {place}"} for place in range(length)]
    edges = [{"from": f"n{place}", "to": f"n{place + 1}"} for place in range(length - 1)]
    return {"name": "chain", "entry": "n0", "nodes": nodes, "edges": [*edges, {"from": f"n{length - 1}", "to": "END"}]}


async def whole(tools: Tools, **arguments: Any) -> str:
    """The text of every part."""
    text, offset = "", 0
    while True:
        drawn = await tools.ok("graph_render", offset=offset, **arguments)
        text += drawn["text"]
        if not drawn.get("next_offset"):
            return text
        offset = drawn["next_offset"]


async def test_an_svg_comes_in_parts_that_make_one_document(tools: Tools) -> None:
    before = await tools.everything()
    first = await tools.ok("graph_render", spec=chain(3), format="svg")
    assert (first["format"], first["media_type"], first["truncated"]) == ("svg", "image/svg+xml", True)
    root = ElementTree.fromstring(await whole(tools, spec=chain(3), format="svg"))
    assert root.tag == f"{SVG}svg"
    said = "".join("".join(each.itertext()) for each in root.iter(f"{SVG}text"))
    assert all(f"step {place}" in said for place in range(3))
    assert await tools.everything() == before


async def test_a_label_is_no_markup_in_a_picture(tools: Tools) -> None:
    root = ElementTree.fromstring(await whole(tools, spec=chain(2, HOSTILE), format="svg"))
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= HARMLESS
    attributes = [(name, value) for each in root.iter() for name, value in each.attrib.items()]
    assert not [name for name, _ in attributes if name.lower().startswith("on") or name.lower().endswith("href")]
    assert not [value for _, value in attributes if "javascript:" in value.lower()]


async def test_a_png_is_an_image_and_no_text_of_the_answer(tools: Tools) -> None:
    data = await tools.ok("graph_render", spec=chain(2), format="png")
    assert base64.b64decode(data["data"]).startswith(b"\x89PNG")
    shown = answer(success(data, max_bytes=1_000))
    assert [block.type for block in shown.content] == ["text", "image"]
    assert shown.structured_content is not None
    assert shown.structured_content["data"]["bytes"] == data["bytes"]
    assert "data" not in shown.structured_content["data"]
    assert data["data"] not in shown.content[0].model_dump_json()


async def test_boxes_for_a_terminal_name_every_node(tools: Tools) -> None:
    drawn = await tools.ok("graph_render", spec=chain(2), format="ascii")
    assert "step 0" in drawn["text"]
    assert "step 1" in drawn["text"]


@pytest.mark.parametrize("kind", ["svg", "png", "ascii"])
async def test_more_than_a_picture_shows_is_refused(tools: Tools, kind: str) -> None:
    refusal = await tools.refused("graph_render", spec=chain(NODES + 1), format=kind)
    assert refusal["error_code"] == "INPUT_TOO_LARGE"
    assert refusal["details"] == {"limit": NODES, "nodes": NODES + 1}


async def test_what_the_drawing_program_gives_up_on_is_refused(tools: Tools) -> None:
    assert (await tools.refused("graph_render", spec=chain(NODES), format="png"))["error_code"] == "INPUT_TOO_LARGE"


@pytest.mark.parametrize(("kind", "module"), [("svg", "mmdr"), ("png", "mmdr"), ("ascii", "termaid")])
async def test_without_the_extra_the_refusal_says_what_to_install(
    tools: Tools, kind: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    refusal = await tools.refused("graph_render", spec=chain(2), format=kind)
    assert refusal["error_code"] == "CAPABILITY_MISSING"
    assert "agent-graph[draw]" in refusal["error"]
