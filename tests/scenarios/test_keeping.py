"""What users of such programs ran into with what is kept: field cases of storage and of graphs that change."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent_graph.engine.retention import Policy, plan, prune
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import Gates, opened
from tests.specs import gate, node, passthrough, put, spec, transform


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.timeout(60)
async def test_SQ06_a_long_loop_beside_a_large_input_grows_by_what_changes_and_gives_the_room_back(
    tmp_path: Path,
) -> None:
    graph = spec(
        node("l", "loop", entry="count", exit="END", max_iterations=200),
        transform("count", {"op": "increment", "path": "n"}), edges="count>l", output_key="n",
    )  # fmt: skip
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        await room.create(graph)
        await room.store.retention.compact()
        empty = bytes_in(tmp_path)
        row = await room.run(graph, {"n": 0, "large": "x" * 500_000})
        assert row.final_state == (200,)
        await room.at_rest()
        await room.store.retention.compact()
        grown = bytes_in(tmp_path) - empty
        assert grown <= 5_000_000
        planned = await plan(room.store, Policy(runs=1), now_ms=row.finished_at_ms or 0, run_ids=[row.run_id])
        done = (await prune(room.store, planned)).runs
        assert done == (row.run_id,)
        assert bytes_in(tmp_path) - empty <= 3 * 4096
        assert (await room.store.runs.get(row.run_id)).final_state == (200,)
    print(f"SQ06: {grown:,} bytes for 200 rounds beside 500,000")


def versioned(out: str, *between: str) -> Any:
    """The graph of AP12, a node put in before the last for its second version."""
    nodes = [passthrough("a"), gate("h"), *map(passthrough, between), put("b", out=out)]
    path = [each["id"] for each in nodes] + ["END"]
    edges = " ".join(f"{source}>{target}" for source, target in pairwise(path))
    return spec(*nodes, edges=edges, output_key="out", name="g")


async def test_AP12_a_waiting_run_goes_on_in_the_version_it_was_started_with(tmp_path: Path) -> None:
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        old = await room.start(versioned("v1"), {})
        await room.reaches(old, "waiting")
        new = await room.start(versioned("v2", "between"), {})
        await room.reaches(new, "waiting")
        refused = await room.call("graph_create", action="delete", graph_id="g")
        assert refused["error_code"] == "GRAPH_IN_USE"
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        for run_id in (old, new):
            (pending,) = await room.pending(run_id)
            assert (await room.decide(pending["approval_id"]))["ok"]
        assert (await room.ended(old)).final_state == ("v1",)
        assert (await room.ended(new)).final_state == ("v2",)
        assert [each for each, _ in await room.started(old)] == ["a#1", "h#1", "b#1"]
        assert [each for each, _ in await room.started(new)] == ["a#1", "h#1", "between#1", "b#1"]
