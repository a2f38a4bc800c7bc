"""graph_validate: all that is wrong with a graph, and what it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_graph.engine import catalog
from tests.fakes.opened import Tools
from tests.specs import llm, passthrough, put, spec

GOOD = spec(llm("a", "{run_input}", output_key="x"), edges="a>END")


async def test_a_good_graph_is_valid_and_nothing_is_stored(tools: Tools) -> None:
    data = await tools.ok("graph_validate", spec=GOOD)
    assert (data["valid"], data["judged"], data["level"]) == (True, True, "semantic")
    assert data["counts"] == {"error": 0, "warning": 0, "info": 0}
    assert data["graph_id"] == "case"
    assert "facts" not in data
    assert (await tools.ok("graph_list"))["graphs"] == []


async def test_a_wrong_graph_is_no_refusal(tools: Tools) -> None:
    data = await tools.ok("graph_validate", spec={**GOOD, "entry": "b"})
    assert (data["valid"], data["judged"], data["issues"][0]["code"]) == (False, False, "ENTRY_UNKNOWN")


async def test_the_levels_look_at_more_and_more(tools: Tools) -> None:
    raw = {**GOOD, "output_key": "zzz"}
    verdicts = {}
    for level in ("structure", "semantic", "strict"):
        data = await tools.ok("graph_validate", spec=raw, level=level)
        verdicts[level] = (data["valid"], len(data["issues"]))
    assert verdicts == {"structure": (True, 0), "semantic": (True, 2), "strict": (False, 2)}


async def test_a_stored_graph_is_checked_and_its_facts_are_told(tools: Tools) -> None:
    await tools.ok("graph_create", spec=GOOD)
    data = await tools.ok("graph_validate", graph_id="case", include_facts=True)
    assert data["facts"]["nodes"]["a"]["writes"] == ["x"]
    assert data["facts"]["model_calls"] == {"worst": 3, "likely": 1, "least": 1}


@pytest.mark.parametrize(("arguments", "code"), [
    ({}, "SOURCE_REQUIRED"), ({"spec": GOOD, "graph_id": "case"}, "SOURCE_AMBIGUOUS"),
    ({"graph_id": "nothing"}, "GRAPH_NOT_FOUND"), ({"spec": GOOD, "level": "hard"}, "INVALID_ARGUMENT"),
])  # fmt: skip
async def test_validate_refuses(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    assert (await tools.refused("graph_validate", **arguments))["error_code"] == code


async def test_a_large_graph_is_checked_beside_the_event_loop(tools: Tools) -> None:
    nodes = [passthrough(f"n{i}") for i in range(3_000)] + [put("z", x=1)]
    chain = " ".join(f"n{i}>n{i + 1}" for i in range(2_999))
    large = spec(*nodes, edges=f"{chain} n2999>z z>END")
    assert len(nodes) > catalog.LARGE
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.005)

    ticking = asyncio.create_task(tick())
    data = await tools.ok("graph_validate", spec=large)
    ticking.cancel()
    assert data["valid"]
    assert ticks > 3, "other work went on meanwhile"
